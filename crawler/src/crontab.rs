//! Five-field crontab schedules, in UTC: minute, hour, day of the month, month, day of the week.
//!
//! Days of the week are numbered as in crontab: 0 and 7 are Sunday. If both the day of the month and the day of the week are restricted,
//! either may match, as in every crontab since 1979. The `cron` crate supports neither rule and requires seconds, so fields are translated
//! here.

use std::fmt;

use chrono::{DateTime, Utc};
use cron::Schedule;

/// Names of the days as the `cron` crate knows them, Sunday first.
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
/// Short spellings.
const NICKNAMES: [(&str, &str); 5] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
];

/// A schedule.
#[derive(Debug, Clone)]
pub struct Crontab {
    text: String,
    /// One schedule, or two if either the day of the month or the day of the week may match.
    schedules: Vec<Schedule>,
}

/// The text is not a valid schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{text}\" is not a schedule: {reason}; write five fields (minute hour day month weekday), like \"0 3 * * *\""
)]
pub struct CrontabError {
    text: String,
    reason: String,
}

impl Crontab {
    /// Reads a schedule.
    pub fn parse(text: &str) -> Result<Self, CrontabError> {
        let wrong = |reason: String| CrontabError { text: text.to_owned(), reason };
        let trimmed = text.trim();
        let spelt = NICKNAMES.iter().find(|(name, _)| *name == trimmed).map_or(trimmed, |(_, fields)| fields);
        let fields: Vec<&str> = spelt.split_whitespace().collect();
        let &[minute, hour, day, month, weekday] = fields.as_slice() else {
            return Err(wrong(format!("it has {} fields", fields.len())));
        };
        let is_crontab = |c: char| c.is_ascii_alphanumeric() || "*,/-".contains(c);
        if let Some(other) = spelt.chars().find(|c| !is_crontab(*c) && !c.is_whitespace()) {
            return Err(wrong(format!("'{other}' has no meaning in a crontab")));
        }
        let weekdays = weekdays(weekday).map_err(&wrong)?;
        let days: Vec<(&str, &str)> = match (day, weekdays.as_str()) {
            (_, "*") | ("*", _) => vec![(day, &weekdays)],
            _ => vec![(day, "*"), ("*", &weekdays)],
        };
        let build = |(day, weekdays): &(&str, &str)| {
            format!("0 {minute} {hour} {day} {month} {weekdays}").parse::<Schedule>()
        };
        let schedules = days.iter().map(build).collect::<Result<Vec<_>, _>>();
        let schedules = schedules.map_err(|_| wrong("a field is out of its range".to_owned()))?;
        let schedule = Self { text: trimmed.to_owned(), schedules };
        // the same dates exist in any four years
        let is_possible = schedule.next_after(DateTime::UNIX_EPOCH).is_some();
        if is_possible { Ok(schedule) } else { Err(wrong("no date matches, such as 31 February".to_owned())) }
    }

    /// The first time after `now`; none after the last year that the `cron` crate knows, 2100.
    pub fn next_after(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.schedules.iter().filter_map(|schedule| schedule.after(&now).next()).min()
    }

    /// The next times after `now`.
    pub fn upcoming(&self, now: DateTime<Utc>, count: usize) -> Vec<DateTime<Utc>> {
        let next = |after: &DateTime<Utc>| self.next_after(*after);
        std::iter::successors(self.next_after(now), next).take(count).collect()
    }
}

impl PartialEq for Crontab {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Crontab {}

impl fmt::Display for Crontab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The field of weekdays as a list of names.
fn weekdays(field: &str) -> Result<String, String> {
    if field == "*" {
        return Ok("*".to_owned());
    }
    let mut chosen = [false; 7];
    for part in field.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let step: usize =
            step.parse().ok().filter(|step| *step > 0).ok_or_else(|| format!("the step of \"{part}\""))?;
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (0, 6),
            Some((from, to)) => (day(from)?, day(to)?),
            None if part.contains('/') => (day(range)?, 6),
            None => (day(range)?, day(range)?),
        };
        // 5-0 is Friday to Sunday, as 5-7 is
        let to = if to < from { to + 7 } else { to };
        for index in (from..=to).step_by(step) {
            if let Some(chosen) = chosen.get_mut(index % 7) {
                *chosen = true;
            }
        }
    }
    let names = DAYS.iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(name, _)| *name);
    Ok(names.collect::<Vec<_>>().join(","))
}

fn day(text: &str) -> Result<usize, String> {
    let named = DAYS.iter().position(|name| text.eq_ignore_ascii_case(name));
    let numbered = text.parse().ok().filter(|number| *number <= 7);
    named.or(numbered).ok_or_else(|| format!("\"{text}\" is not a day of the week"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thursday.
    const NOW: &str = "2026-01-01T12:30:00Z";

    fn upcoming(text: &str) -> Vec<String> {
        let times = Crontab::parse(text).unwrap().upcoming(NOW.parse().unwrap(), 3);
        times.iter().map(|time| time.format("%a %m-%d %H:%M").to_string()).collect()
    }

    #[test]
    fn reads_five_fields_like_crontab() {
        for (text, times) in [
            ("0 3 * * *", ["Fri 01-02 03:00", "Sat 01-03 03:00", "Sun 01-04 03:00"]),
            ("*/20 * * * *", ["Thu 01-01 12:40", "Thu 01-01 13:00", "Thu 01-01 13:20"]),
            ("30 12 * * *", ["Fri 01-02 12:30", "Sat 01-03 12:30", "Sun 01-04 12:30"]),
            ("0 0 * * 0", ["Sun 01-04 00:00", "Sun 01-11 00:00", "Sun 01-18 00:00"]),
            ("0 0 * * 7", ["Sun 01-04 00:00", "Sun 01-11 00:00", "Sun 01-18 00:00"]),
            ("0 0 * * 1-5", ["Fri 01-02 00:00", "Mon 01-05 00:00", "Tue 01-06 00:00"]),
            ("0 0 * * 5-7", ["Fri 01-02 00:00", "Sat 01-03 00:00", "Sun 01-04 00:00"]),
            ("0 0 * * sun,wed", ["Sun 01-04 00:00", "Wed 01-07 00:00", "Sun 01-11 00:00"]),
            ("0 0 * * */3", ["Sat 01-03 00:00", "Sun 01-04 00:00", "Wed 01-07 00:00"]),
            ("0 0 13 * 5", ["Fri 01-02 00:00", "Fri 01-09 00:00", "Tue 01-13 00:00"]),
            ("0 0 29 2 *", ["Tue 02-29 00:00", "Sun 02-29 00:00", "Fri 02-29 00:00"]),
            ("@weekly", ["Sun 01-04 00:00", "Sun 01-11 00:00", "Sun 01-18 00:00"]),
        ] {
            assert_eq!(upcoming(text), times, "{text}");
        }
    }

    #[test]
    fn rejects_invalid_schedules() {
        for (text, reason) in [
            ("", "0 fields"),
            ("0 3 * *", "4 fields"),
            ("0 0 3 * * *", "6 fields"),
            ("60 3 * * *", "range"),
            ("0 0 * * 8", "day of the week"),
            ("0 0 L * *", "range"),
            ("0 0 ? * *", "'?'"),
            ("0 0 * * mon/0", "step"),
            ("0 0 31 2 *", "no date matches"),
            ("0 0 31 4,6 *", "no date matches"),
        ] {
            let error = Crontab::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("0 3 * * *"), "{text}: {error}");
        }
    }
}
