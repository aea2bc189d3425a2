//! Converts responses to robots.txt records, and stored records to verdicts.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::header::{
    ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};
use manifest::Host;
use policy::freshness::CacheRecord;
use policy::robots::{PRODUCT_TOKEN, RobotsCause, StoredVerdict};
use policy::{RobotsKind, RobotsVerdict};
use store::RobotsRecord;

use crate::clock;
use egress::Head;

/// The record of a response with its body, and the verdict, which also depends on earlier failures.
pub(super) fn record_of(
    host: &Host,
    verdict: RobotsVerdict,
    answer: Option<(&Head, Option<Arc<[u8]>>)>,
    before: Option<&RobotsRecord>,
) -> (RobotsRecord, Arc<RobotsVerdict>) {
    let now = clock::now();
    let walls_in_row = before.filter(|record| is_wall(record)).map_or(1, next_in_row);
    let verdict = verdict.after_bot_walls(walls_in_row);
    let failures_in_row = match (verdict.cause(), verdict.kind()) {
        // bot walls are counted separately from other failures
        (Some(RobotsCause::BotWall), _) => walls_in_row,
        (_, RobotsKind::Unreachable) => before.map_or(1, next_in_row),
        _ => 0,
    };
    let (head, body) = answer.map_or((None, None), |(head, body)| (Some(head), body));
    let max_age =
        head.and_then(|head| CacheRecord::of(head.status.as_u16(), &head.headers, now).stated_lifetime());
    let is_rules = verdict.kind() == RobotsKind::Rules;
    let validator =
        |name: &HeaderName| head.filter(|_| is_rules).and_then(|head| head.headers.get(name)).map(to_latin1);
    let record = RobotsRecord {
        host: host.clone(),
        kind: verdict.kind(),
        cause: verdict.cause().map(|cause| cause.as_str().to_owned()),
        status: head.map(|head| head.status.as_u16()),
        body: body.filter(|_| is_rules),
        fetched_at: now,
        expires_at: verdict.expires_at(now, max_age, failures_in_row),
        failures_in_row,
        etag: validator(&ETAG),
        last_modified: validator(&LAST_MODIFIED),
    };
    (record, Arc::new(verdict))
}

/// When a robots.txt is requested again. If its host asked for a delay for the first time in a row, this is at the end of the delay.
pub(super) fn requested_again_at(record: &RobotsRecord, asked_until: Option<DateTime<Utc>>) -> DateTime<Utc> {
    let is_limited = record.cause.as_deref() == Some(RobotsCause::RateLimited.as_str());
    let asked_until =
        asked_until.filter(|until| is_limited && record.failures_in_row == 1 && *until > record.fetched_at);
    asked_until.map_or(record.expires_at, |until| record.expires_at.min(until))
}

fn is_wall(record: &RobotsRecord) -> bool {
    record.cause.as_deref() == Some(RobotsCause::BotWall.as_str())
}

const fn next_in_row(before: &RobotsRecord) -> u32 {
    before.failures_in_row.saturating_add(1)
}

/// The verdict of a stored record.
pub(super) fn restore(record: &RobotsRecord) -> RobotsVerdict {
    let stored = StoredVerdict {
        kind: record.kind,
        cause: record.cause.as_deref().and_then(RobotsCause::of_stored),
        status: record.status,
        body: record.body.as_deref(),
    };
    RobotsVerdict::restore(stored, PRODUCT_TOKEN)
}

/// The record of a copy that was confirmed by 304.
pub(super) fn renewed(record: &RobotsRecord, verdict: &RobotsVerdict, head: &Head) -> RobotsRecord {
    let now = clock::now();
    let max_age = CacheRecord::of(200, &head.headers, now).stated_lifetime();
    let expires_at = verdict.expires_at(now, max_age, 0);
    RobotsRecord { fetched_at: now, expires_at, failures_in_row: 0, ..record.clone() }
}

pub(super) fn conditions_of(record: &RobotsRecord) -> HeaderMap {
    let given = [(IF_NONE_MATCH, &record.etag), (IF_MODIFIED_SINCE, &record.last_modified)];
    given.into_iter().filter_map(|(name, text)| Some((name, from_latin1(text.as_ref()?)?))).collect()
}

/// Converts each byte of a header value to one character, so that validators are sent back byte for byte.
fn to_latin1(value: &HeaderValue) -> String {
    value.as_bytes().iter().map(|byte| char::from(*byte)).collect()
}

fn from_latin1(text: &str) -> Option<HeaderValue> {
    let bytes: Option<Vec<u8>> = text.chars().map(|character| u8::try_from(character).ok()).collect();
    HeaderValue::from_bytes(&bytes?).ok()
}

#[cfg(test)]
mod tests {
    use policy::RobotsResponse;

    use super::*;

    fn record(verdict: RobotsVerdict, before: Option<&RobotsRecord>) -> RobotsRecord {
        record_of(&Host::parse("a.example").unwrap(), verdict, None, before).0
    }

    #[test]
    fn counts_failures_in_a_row_until_an_answer_arrives() {
        let failed = || RobotsVerdict::Unreachable(RobotsCause::BodyNotRead);
        let first = record(failed(), None);
        let second = record(failed(), Some(&first));
        assert_eq!((first.failures_in_row, second.failures_in_row), (1, 2));
        let none = RobotsResponse::Answered { status: 404, body: None };
        let answered = record(RobotsVerdict::of(none, PRODUCT_TOKEN), Some(&second));
        assert_eq!(answered.failures_in_row, 0);
        let wall = record(RobotsVerdict::Unreachable(RobotsCause::BotWall), Some(&second));
        assert_eq!(wall.failures_in_row, 1, "bot walls are counted separately");
    }

    #[test]
    fn a_robots_txt_is_requested_again_when_the_first_delay_ends() {
        let limited = || RobotsVerdict::Unreachable(RobotsCause::RateLimited);
        let first = record(limited(), None);
        let asked = first.fetched_at + chrono::TimeDelta::minutes(10);
        assert_eq!(requested_again_at(&first, Some(asked)), asked);
        assert_eq!(requested_again_at(&first, None), first.expires_at);
        assert_eq!(requested_again_at(&first, Some(asked + chrono::TimeDelta::days(1))), first.expires_at);
        for other in [
            record(limited(), Some(&first)),
            record(RobotsVerdict::Unreachable(RobotsCause::ServerError), None),
        ] {
            assert_eq!(requested_again_at(&other, Some(asked)), other.expires_at);
        }
    }

    #[test]
    fn restores_the_verdict_of_a_record_and_its_validators() {
        let body = b"User-agent: *\nDisallow: /private\n".as_slice();
        let answer = RobotsResponse::Answered { status: 200, body: Some(body) };
        let record = RobotsRecord {
            body: Some(body.into()),
            status: Some(200),
            etag: Some("\"\u{e9}\"".to_owned()),
            ..record(RobotsVerdict::of(answer, PRODUCT_TOKEN), None)
        };
        assert!(!restore(&record).decide("/private").is_allowed());
        assert!(restore(&record).decide("/").is_allowed());
        let conditions = conditions_of(&record);
        assert_eq!(conditions.get(IF_NONE_MATCH).map(HeaderValue::as_bytes), Some(b"\"\xe9\"".as_slice()));
        assert!(!conditions.contains_key(IF_MODIFIED_SINCE));
    }
}
