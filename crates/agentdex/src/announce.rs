//! The announcements of the program on standard output: sentences, or one JSON object per line with `--format json`.

use std::io::{self, Write as _};

use chrono::{DateTime, Utc};
use crawler::Summary;
use crawler::output::OutputFormat;
use serde::Serialize;
use settings::command_line::with_flags;
use settings::escape::shell_word as quoted;

/// One announcement. The JSON uses the names of the variants and fields.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Announcement<'a> {
    /// The sites of the demo are running.
    Demo { sites: usize, address: String, data_dir: String },
    /// The dashboard and the API can be reached.
    Serving {
        url: &'a str,
        /// The database, without the password.
        #[serde(skip)]
        database: String,
        #[serde(skip)]
        is_single_pass: bool,
    },
    /// A pass has ended.
    Crawled {
        #[serde(flatten)]
        summary: &'a Summary,
        #[serde(skip)]
        reading: &'a ReadingFlags,
    },
    /// Commands for the results.
    Indexed {
        url: &'a str,
        program: String,
        data_dir: &'a str,
        #[serde(skip)]
        reading: &'a ReadingFlags,
    },
    /// The pass found nothing, or there are no results yet.
    NothingFound {
        url: &'a str,
        program: String,
        data_dir: &'a str,
        #[serde(skip)]
        reading: &'a ReadingFlags,
        /// Reasons from the pass, or from the visits of the last day if nothing was due.
        reasons: Vec<String>,
        /// Manifests in the index, of earlier visits.
        manifests_kept: u64,
        /// Whether the text about the pass already contains the reasons.
        #[serde(skip)]
        are_shown: bool,
    },
    /// A pass has ended or was stopped, and the program exits.
    Ended {
        program: String,
        #[serde(skip)]
        is_single_pass: bool,
        #[serde(skip)]
        results: Results,
        #[serde(skip)]
        reading: &'a ReadingFlags,
        /// Reasons from the visits of the last day, if nothing was due and nothing has been found.
        #[serde(skip)]
        reasons: Vec<String>,
    },
    /// Sites are visited when they are due.
    GoingOn { next_due_at: Option<DateTime<Utc>> },
    /// The continuous crawl after the first pass was stopped.
    Stopped,
}

/// What there is to search after the last pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Results {
    Nothing,
    Some,
    /// The pass found nothing, and the index has this number of manifests of earlier visits.
    OfEarlierVisits(u64),
}

/// The flags with which other commands read the database and the index of this crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadingFlags(pub(crate) Vec<String>);

impl ReadingFlags {
    /// The flags as shell words.
    fn quoted(&self) -> String {
        self.0.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    /// A space and the flags as shell words, to be added to a command.
    fn added(&self) -> String {
        format!(" {}", self.quoted())
    }
}

impl Announcement<'_> {
    /// Writes the announcement to standard output.
    pub(crate) fn print(&self, format: OutputFormat) -> anyhow::Result<()> {
        let text = match format {
            OutputFormat::Text => settings::escape::lines(&self.text()).into_owned(),
            OutputFormat::Json => settings::escape::json(&serde_json::to_string(self)?).into_owned(),
        };
        Ok(write(&text)?)
    }

    fn text(&self) -> String {
        match self {
            Self::Demo { sites, address, data_dir } => {
                format!("A small web of {sites} sites runs on {address}. Its files are in {data_dir}.")
            }
            Self::Serving { url, database, is_single_pass: false } => format!(
                "Dashboard and API: {url}. Results are stored in {database}, and appear while the crawl runs."
            ),
            Self::Serving { url, database, is_single_pass: true } => {
                format!(
                    "Dashboard and API until the pass has ended: {url}. Results are stored in {database}."
                )
            }
            Self::Ended { program, reading, is_single_pass, results, reasons } => {
                let (program, flags) = (quoted(program), reading.quoted());
                let more = if *is_single_pass {
                    "; without --once it goes on, and keeps serving the results"
                } else {
                    ""
                };
                let search = match results {
                    Results::Nothing => String::new(),
                    Results::Some | Results::OfEarlierVisits(_) => {
                        format!("\n  {program} search {flags} book flight")
                    }
                };
                let kept = match results {
                    Results::Nothing => "Nothing has been found yet.".to_owned(),
                    Results::Some => "Everything is kept.".to_owned(),
                    Results::OfEarlierVisits(manifests) => of_earlier_visits(*manifests),
                };
                let reasons = match reasons.as_slice() {
                    [] => " ".to_owned(),
                    reasons => format!("\n{}", with_flags(&lines_of(reasons), &reading.added())),
                };
                format!(
                    "{kept}{reasons}To see the state of the crawl:\n  {program} status {flags}{search}\n\
                     The same command continues the crawl{more}."
                )
            }
            Self::Crawled { summary, reading } => {
                with_flags(&crawler::cli::summary_text(summary), &reading.added())
            }
            Self::Indexed { url, program, reading, .. } => {
                next_steps("Everything found is in the index.", url, program, reading)
            }
            Self::NothingFound { url, program, reading, reasons, manifests_kept, are_shown, .. } => {
                let reasons = if *are_shown { &[] } else { reasons.as_slice() };
                match manifests_kept {
                    0 => nothing_found(url, program, reading, reasons),
                    kept => next_steps(&of_earlier_visits(*kept), url, program, reading),
                }
            }
            Self::GoingOn { next_due_at } => {
                let next = match next_due_at {
                    Some(at) if *at <= now() => "A site is due now.".to_owned(),
                    Some(at) => format!("The next site is due at {}.", at.format("%Y-%m-%d %H:%M:%S UTC")),
                    None => "No site is due.".to_owned(),
                };
                format!("The crawl continues. {next} Press Ctrl-C to stop; everything is kept.")
            }
            Self::Stopped => "Stopped. Everything is kept: the same command continues the crawl.".to_owned(),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the announcement is for a person who reads it now")]
fn now() -> DateTime<Utc> {
    Utc::now()
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// What is left to search after a pass that found nothing. The reasons are in the report of the pass.
fn of_earlier_visits(manifests: u64) -> String {
    let noun = if manifests == 1 { "manifest" } else { "manifests" };
    format!("This pass found nothing. The index still has {manifests} {noun} of earlier visits.")
}

/// The next steps. Commands name this program as it was started, so that they can be copied.
fn next_steps(results: &str, url: &str, program: &str, reading: &ReadingFlags) -> String {
    let (program, flags) = (quoted(program), reading.quoted());
    format!(
        "\n{results} Open {url} or try\n  curl '{url}/search?q=book+flight'\n  \
         {program} search {flags} book flight\n{}",
        state_of_the_crawl(url, &program, &flags)
    )
}

/// How to see the state of the crawl.
fn state_of_the_crawl(url: &str, program: &str, flags: &str) -> String {
    format!(
        "The state of the crawl is at {url}/crawl and in the terminal:\n  {program} status {flags}\n\
         To check this machine:\n  {program} doctor {flags}"
    )
}

fn lines_of(sentences: &[String]) -> String {
    sentences.iter().flat_map(|sentence| [sentence, "\n"]).collect()
}

/// Advice while no manifest is stored.
fn nothing_found(url: &str, program: &str, reading: &ReadingFlags, reasons: &[String]) -> String {
    let (program, flags) = (quoted(program), reading.quoted());
    let reasons = with_flags(&lines_of(reasons), &reading.added());
    format!("\nNothing has been found yet.\n{reasons}{}", state_of_the_crawl(url, &program, &flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(words: &[&str]) -> ReadingFlags {
        ReadingFlags(words.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn suggests_valid_commands() {
        let demo = reading(&["--data-dir", "agentdex-data/demo"]);
        let text = next_steps("Done.", "http://127.0.0.1:8080", "target/release/agentdex", &demo);
        let mut commands = 0;
        for line in text.lines().filter_map(|line| line.strip_prefix("  target/release/")) {
            crate::cli::command().try_get_matches_from(line.split(' ')).unwrap();
            commands += 1;
        }
        assert_eq!(commands, 3, "{text}");
        assert!(text.contains("To check this machine:\n  target/release/agentdex doctor"), "{text}");
        let elsewhere =
            reading(&["--data-dir", "Ann's data", "--database-url", "postgres://ann:***@host/agentdex"]);
        let text = next_steps("Done.", "http://127.0.0.1:8080", "./agentdex", &elsewhere);
        let flags = r"--data-dir 'Ann'\''s data' --database-url 'postgres://ann:***@host/agentdex'";
        for command in ["search", "status", "doctor"] {
            assert!(text.contains(&format!("  ./agentdex {command} {flags}")), "{text}");
        }
    }

    #[test]
    fn the_ending_without_results_has_the_reasons_and_valid_commands() {
        let reasons = vec!["3 of 3 visits: the name does not exist. Check it.".to_owned()];
        let flags = reading(&["--data-dir", "agentdex-data"]);
        let text = nothing_found("http://127.0.0.1:8080", "target/release/agentdex", &flags, &reasons);
        assert!(text.contains("\nNothing has been found yet.\n3 of 3 visits: the name"), "{text}");
        assert!(!text.contains("search"), "{text}");
        let commands: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("  target/release/")).collect();
        assert_eq!(
            commands,
            ["agentdex status --data-dir agentdex-data", "agentdex doctor --data-dir agentdex-data"]
        );
        for command in commands {
            crate::cli::command().try_get_matches_from(command.split(' ')).unwrap();
        }
    }

    #[test]
    fn announcements_are_objects_with_an_event() {
        let flags = reading(&["--data-dir", "d"]);
        let summary = Summary { sites_visited: 3, ..Summary::default() };
        let json =
            serde_json::to_value(Announcement::Crawled { summary: &summary, reading: &flags }).unwrap();
        assert_eq!((&json["event"], &json["sites_visited"]), (&"crawled".into(), &3.into()));
        let demo =
            Announcement::Demo { sites: 35, address: "127.0.0.1:1".to_owned(), data_dir: "d".to_owned() };
        let json = serde_json::to_value(demo).unwrap();
        assert_eq!((&json["event"], &json["sites"]), (&"demo".into(), &35.into()));
        let json = serde_json::to_value(Announcement::GoingOn { next_due_at: None }).unwrap();
        assert_eq!(json["event"], "going_on");
        let nothing_found = |manifests_kept| Announcement::NothingFound {
            url: "http://127.0.0.1:8080",
            program: "agentdex".to_owned(),
            data_dir: "d",
            reading: &flags,
            reasons: vec!["no name".to_owned()],
            manifests_kept,
            are_shown: true,
        };
        let json = serde_json::to_value(nothing_found(0)).unwrap();
        assert_eq!((&json["reasons"][0], &json["manifests_kept"]), (&"no name".into(), &0.into()));
        let text = nothing_found(0).text();
        assert!(!text.contains("no name"), "the text about the pass already contains it: {text}");
        let kept = nothing_found(3).text();
        let expected =
            "\nThis pass found nothing. The index still has 3 manifests of earlier visits. Open http";
        assert!(kept.starts_with(expected) && kept.contains("search --data-dir d book flight"), "{kept}");
        let serving = |is_single_pass| {
            let database = "sqlite:d/agentdex.db".to_owned();
            Announcement::Serving { url: "http://127.0.0.1:8080", database, is_single_pass }
        };
        let expected =
            "Dashboard and API: http://127.0.0.1:8080. Results are stored in sqlite:d/agentdex.db, and";
        assert!(serving(false).text().starts_with(expected), "{}", serving(false).text());
        assert!(serving(true).text().contains("until the pass has ended: http://127.0.0.1:8080."));
        let json = serde_json::to_value(serving(false)).unwrap();
        assert_eq!(json, serde_json::json!({ "event": "serving", "url": "http://127.0.0.1:8080" }));
        let ended = |is_single_pass, results| {
            let program = "agentdex".to_owned();
            let reasons = Vec::new();
            Announcement::Ended { program, is_single_pass, results, reading: &flags, reasons }.text()
        };
        let unresolved = Announcement::Ended {
            program: "agentdex".to_owned(),
            is_single_pass: true,
            results: Results::Nothing,
            reading: &flags,
            reasons: vec!["2 of 2 visits: no name. Check `agentdex doctor --only dns`.".to_owned()],
        };
        let expected = "Nothing has been found yet.\n2 of 2 visits: no name. Check `agentdex doctor --only dns --data-dir d`.\nTo see";
        assert!(unresolved.text().starts_with(expected), "{}", unresolved.text());
        assert!(
            ended(true, Results::Some).ends_with("without --once it goes on, and keeps serving the results.")
        );
        assert!(
            ended(false, Results::Some).ends_with("The same command continues the crawl."),
            "--once was not given"
        );
        assert!(ended(true, Results::Some).contains("search"));
        assert!(!ended(true, Results::Nothing).contains("search"));
        let kept = ended(true, Results::OfEarlierVisits(1));
        assert!(
            kept.starts_with("This pass found nothing. The index still has 1 manifest of earlier"),
            "{kept}"
        );
        assert!(!kept.contains("Everything"), "{kept}");
        let said = |at| Announcement::GoingOn { next_due_at: at }.text();
        assert!(said(Some(DateTime::UNIX_EPOCH)).contains("continues. A site is due now."));
        assert!(said(DateTime::from_timestamp(4_102_444_800, 0)).contains("due at 2100-01-01 00:00:00 UTC."));
    }
}
