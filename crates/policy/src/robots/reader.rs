//! Parses robots.txt record by record, and keeps the rules that apply to one crawler.
//!
//! Groups that name the crawler are combined, and groups of `*` are then ignored. Rules before the first User-agent line apply to no
//! crawler. Other fields, such as Crawl-delay and Sitemap, do not end a group (RFC 9309 §2.2.1, §2.2.4). Names are compared without a
//! version or further words: `agentdex/1.0 (x)` is agentdex. A line may name several crawlers.
//!
//! Whether a User-agent line with invisible characters begins a group depends on the crawler. Here both interpretations apply: the Disallow
//! rules after it apply to the crawlers that it names and to those named before it, and its Allow rules are ignored.

use std::time::Duration;

use super::decision::RuleLine;
use super::file::{CRAWL_DELAY_MAX, CrawlDelay, RobotsFile, RobotsNote, RobotsNoteKind};
use super::line::{self, Field, Record, Spelling, Text};
use super::pattern::Pattern;
use super::rule::{Rule, RuleKind, Rules};
use super::usage::Usages;

/// Maximum number of notes kept from one file.
const NOTES_MAX: usize = 50;
/// Maximum number of Agentmap lines kept from one file.
const AGENTMAPS_MAX: usize = 100;
/// A text contains at most one control character per this number of bytes. In compressed data, about one byte in ten is a control
/// character.
const CONTROLS_ONE_IN: usize = 20;
/// Maximum number of characters of a value that are reported.
const TEXT_CHARS_MAX: usize = 200;

impl RobotsFile {
    /// Parses a body for the crawler with this product token. Never fails: every parseable line is used (§2.3.1.5).
    pub fn parse(body: &[u8], product_token: &str) -> Self {
        Self::of_text(&line::text(body), product_token)
    }

    /// Parses a body that is text. `None` if it is compressed or binary, so that its rules are not known.
    pub(super) fn parse_text(body: &[u8], product_token: &str) -> Option<Self> {
        let text = line::text(body);
        (!is_compressed(body) && is_text(&text.bytes)).then(|| Self::of_text(&text, product_token))
    }

    fn of_text(text: &Text<'_>, product_token: &str) -> Self {
        let mut reader = Reader::new(product_token);
        if looks_like_html(&text.bytes) {
            reader.note(RobotsNoteKind::Html, None, b"");
        }
        if text.bytes_cut > 0 {
            reader.note(RobotsNoteKind::Cut, None, format!("{} bytes", text.bytes_cut).as_bytes());
        }
        for record in line::records(&text.bytes) {
            reader.read(&record);
        }
        reader.finish()
    }
}

/// The combined groups that name the crawler, or the combined groups of `*`.
#[derive(Debug, Default)]
struct Group {
    present: bool,
    rules: Vec<Rule>,
    delay: Option<CrawlDelay>,
    usages: Usages,
}

impl Group {
    fn delay_at_least(&mut self, delay: Option<CrawlDelay>) {
        self.delay = longer(self.delay, delay);
    }
}

fn longer(one: Option<CrawlDelay>, other: Option<CrawlDelay>) -> Option<CrawlDelay> {
    one.into_iter().chain(other).max_by_key(|delay| (delay.wait, std::cmp::Reverse(delay.line)))
}

/// The crawlers that a User-agent line names: one, or several in a list. A name ends at the first character that a product token cannot
/// contain (§2.2.1), such as the slash before a version.
fn agents(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| matches!(byte, b',' | b';' | b'|')).map(|part| {
        let part = part.trim_ascii_start();
        let part = part.strip_prefix(b"\"").or_else(|| part.strip_prefix(b"'")).unwrap_or(part);
        if part.first() == Some(&b'*') {
            return part.split(|byte| byte.is_ascii_whitespace() || *byte == b'/').next().unwrap_or(part);
        }
        // a product token may not contain digits, but names of crawlers do
        let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let end = part.iter().position(|byte| !is_token(byte)).unwrap_or(part.len());
        part.get(..end).unwrap_or(part)
    })
}

/// Whether a body is compressed without a Content-Encoding: it begins like gzip (RFC 1952 §2.3.1), zlib with a window of 32 KiB (RFC 1950
/// §2.2) or Zstandard (RFC 8878 §3.1.1). Read as text, it would have no rules.
fn is_compressed(body: &[u8]) -> bool {
    const STARTS: [&[u8]; 6] =
        [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"];
    STARTS.iter().any(|start| body.starts_with(start))
}

/// Whether bytes are text: in compressed data and images about a tenth of the bytes are control characters. Text with a few control
/// characters still contains a known field.
fn is_text(bytes: &[u8]) -> bool {
    // ESC begins escape sequences of ISO-2022-JP
    let is_control = |byte: &&u8| **byte < b' ' && !matches!(**byte, b'\t'..=b'\r' | 0x1b);
    let controls = bytes.iter().filter(is_control).count();
    let has_field = || line::records(bytes).any(|record| record.field != Field::Unknown);
    controls == 0 || (controls <= bytes.len() / CONTROLS_ONE_IN && has_field())
}

/// Whether an HTML page was served instead of a file: it begins with a tag.
fn looks_like_html(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"<")
}

/// The position of the reader in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    BeforeGroups,
    InAgents,
    InRules,
}

struct Reader<'t> {
    token: &'t str,
    position: Position,
    /// Whether the current group names this crawler, and whether it names `*`.
    names_us: bool,
    names_all: bool,
    /// Whether the current group has a User-agent line that not every crawler reads.
    is_group_unclear: bool,
    group_delay: Option<CrawlDelay>,
    ungrouped_delay: Option<CrawlDelay>,
    group_usages: Usages,
    ungrouped_usages: Usages,
    own: Group,
    all: Group,
    agentmaps: Vec<String>,
    notes: Vec<RobotsNote>,
}

impl<'t> Reader<'t> {
    fn new(token: &'t str) -> Self {
        Self {
            token,
            position: Position::BeforeGroups,
            names_us: false,
            names_all: false,
            is_group_unclear: false,
            group_delay: None,
            ungrouped_delay: None,
            group_usages: Usages::default(),
            ungrouped_usages: Usages::default(),
            own: Group::default(),
            all: Group::default(),
            agentmaps: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn note(&mut self, kind: RobotsNoteKind, line: Option<u32>, value: &[u8]) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(RobotsNote { kind, line, text: shortened(value) });
        }
    }

    fn read(&mut self, record: &Record<'_>) {
        if record.spelling == Spelling::Misspelt {
            self.note(RobotsNoteKind::Misspelt, Some(record.line), &record.value);
        }
        match record.field {
            Field::UserAgent => self.parse_agent(record),
            Field::Allow => self.parse_rule(record, RuleKind::Allow),
            Field::Disallow => self.parse_rule(record, RuleKind::Disallow),
            Field::CrawlDelay => self.parse_delay(record),
            Field::Agentmap => self.parse_agentmap(&record.value),
            Field::ContentSignal | Field::ContentUsage => self.parse_usage(record),
            Field::Sitemap | Field::Unknown => {}
        }
    }

    fn parse_agent(&mut self, record: &Record<'_>) {
        if record.is_clear && self.position != Position::InAgents {
            self.close_group();
        }
        self.position = Position::InAgents;
        self.is_group_unclear |= !record.is_clear;
        for name in agents(&record.value) {
            let is_all = name == b"*";
            let is_us = name.eq_ignore_ascii_case(self.token.as_bytes());
            if record.is_clear {
                self.names_all |= is_all;
                self.all.present |= is_all;
                self.names_us |= is_us;
                self.own.present |= is_us;
            } else if is_all || is_us {
                // unclear lines do not hide other groups
                self.names_all = true;
                self.names_us = true;
            }
        }
    }

    fn parse_rule(&mut self, record: &Record<'_>, kind: RuleKind) {
        if self.position == Position::BeforeGroups {
            self.note(RobotsNoteKind::Ungrouped, Some(record.line), &record.value);
            return;
        }
        self.position = Position::InRules;
        let applies = self.names_us || self.names_all;
        if record.value.is_empty() || !applies {
            return; // an empty rule matches nothing
        }
        if kind == RuleKind::Allow && self.is_group_unclear {
            return;
        }
        let mut pattern = Pattern::parse(&record.value);
        if kind == RuleKind::Disallow && !pattern.as_str().starts_with(['/', '*']) {
            // as written, the rule would match nothing, but its author intended it to match
            self.note(RobotsNoteKind::NoSlash, Some(record.line), &record.value);
            pattern = pattern.rooted();
        }
        let rule = Rule { kind, pattern, line: record.line, written: shortened(&record.value).into() };
        if self.names_us {
            self.own.rules.push(rule.clone());
        }
        if self.names_all {
            self.all.rules.push(rule);
        }
    }

    fn parse_delay(&mut self, record: &Record<'_>) {
        let wait = match parse_seconds(&record.value) {
            Seconds::Usable(wait) => wait,
            Seconds::Clamped => {
                self.note(RobotsNoteKind::CrawlDelayClamped, Some(record.line), &record.value);
                CRAWL_DELAY_MAX
            }
            Seconds::Garbled => {
                self.note(RobotsNoteKind::CrawlDelayGarbled, Some(record.line), &record.value);
                return;
            }
        };
        let delay = Some(CrawlDelay { wait, line: record.line });
        if self.position == Position::BeforeGroups {
            self.ungrouped_delay = longer(self.ungrouped_delay, delay);
        } else {
            self.group_delay = longer(self.group_delay, delay);
        }
    }

    /// Statements before any group apply to every crawler. A Content-Usage rule ends the list of User-agent lines, as other
    /// rules do (draft-ietf-aipref-attach, "Robots Exclusion Protocol Content-Usage Rule").
    fn parse_usage(&mut self, record: &Record<'_>) {
        self.note(RobotsNoteKind::ContentSignal, Some(record.line), &record.value);
        let usages = match self.position {
            Position::BeforeGroups => &mut self.ungrouped_usages,
            Position::InAgents | Position::InRules => &mut self.group_usages,
        };
        let line =
            |field| RuleLine { line: record.line, text: format!("{field}: {}", shortened(&record.value)) };
        if record.field == Field::ContentSignal {
            usages.add_signal(&record.value, line("Content-Signal"));
        } else {
            usages.add_rule(&record.value, line("Content-Usage"));
            if self.position == Position::InAgents {
                self.position = Position::InRules;
            }
        }
    }

    fn parse_agentmap(&mut self, value: &[u8]) {
        if self.agentmaps.len() < AGENTMAPS_MAX
            && let Ok(url) = std::str::from_utf8(value)
            && !url.is_empty()
        {
            self.agentmaps.push(url.to_owned());
        }
    }

    fn close_group(&mut self) {
        let delay = self.group_delay.take();
        let usages = std::mem::take(&mut self.group_usages);
        if self.names_us {
            self.own.delay_at_least(delay);
            self.own.usages.extend(&usages);
        }
        if self.names_all {
            self.all.delay_at_least(delay);
            self.all.usages.extend(&usages);
        }
        self.names_us = false;
        self.names_all = false;
        self.is_group_unclear = false;
    }

    fn finish(mut self) -> RobotsFile {
        self.close_group();
        let mut chosen = if self.own.present { self.own } else { self.all };
        chosen.usages.extend(&self.ungrouped_usages);
        RobotsFile {
            rules: Rules::new(chosen.rules),
            // A Crawl-delay before any group applies to every crawler.
            crawl_delay: chosen.delay.or(self.ungrouped_delay),
            usages: chosen.usages.sorted(),
            agentmaps: self.agentmaps,
            notes: self.notes,
        }
    }
}

enum Seconds {
    Usable(Duration),
    /// NaN, infinite, negative or above a day.
    Clamped,
    /// The text has no number.
    Garbled,
}

/// Parses seconds with an optional fraction. A unit after the number is ignored.
fn parse_seconds(value: &[u8]) -> Seconds {
    let text = String::from_utf8_lossy(value);
    let number = text.parse::<f64>().ok().or_else(|| {
        let digits: String =
            text.chars().take_while(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+')).collect();
        digits.parse().ok()
    });
    match number {
        None => Seconds::Garbled,
        Some(seconds) => match Duration::try_from_secs_f64(seconds) {
            Ok(wait) if wait <= CRAWL_DELAY_MAX => Seconds::Usable(wait),
            _ => Seconds::Clamped,
        },
    }
}

fn shortened(value: &[u8]) -> String {
    String::from_utf8_lossy(value).chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect()
}
