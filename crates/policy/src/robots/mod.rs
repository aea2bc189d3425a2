//! Evaluates robots.txt (RFC 9309).
//!
//! A verdict has one of four kinds: rules, no file, denied, unreachable. A failure never allows requests: 5xx, 429, network errors and too
//! many redirects forbid everything as long as they last. 401, 403 and 451 are a denial, although §2.3.1.3 would allow access. A bot wall
//! hides the file, so the file counts as unreachable. From the third bot wall in a row on, it counts as a denial. A copy is used for at
//! most a day (§2.4).
//!
//! Only a body that was read and is text can allow anything. A file with a compressed or binary body counts as unreachable. An HTML page is
//! text without rules. A response with any 2xx status contains a file (§2.3.1.1); with 204 and 205 the file is empty (RFC 9110 §15.3.5-6).
//! 206 and 226 answer requests for a part or a difference, which are never sent, so their bodies are not the file.
//!
//! The rules are matched by the crate `texting_robots`. Where the standard is unclear, the stricter interpretation applies.

mod decision;
mod file;
mod line;
mod pattern;
mod reader;
mod rule;
#[cfg(test)]
mod tests;
mod usage;
#[cfg(test)]
mod vectors_tests;
mod verdict;
mod visible;

pub use self::decision::{RobotsCause, RobotsDecision, RuleLine};
pub use self::file::{
    CrawlDelay, PATH_WORK_MAX, PATHS_WORK_MAX, PRODUCT_TOKEN, RobotsFile, RobotsNote, RobotsNoteKind,
};
pub use self::line::BODY_BYTES_MAX;
pub use self::verdict::{CopyUse, RobotsResponse, RobotsVerdict, SHORT_BYTES_MAX, StoredVerdict};
