//! The fuzz target of robots.txt.
//!
//! The same functions run over the regressions and seeded mutations in `tests/fuzz_targets.rs`, where no fuzzer is built.

use policy::{RobotsDecision, RobotsFile};

pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: &[Target] = &[("robots", robots)];

/// Paths that are decided on.
const PATHS: &[&str] =
    &["/", "/robots.txt", "/.well-known/agent.json", "/a/b.php?x=1&y=%20", "/ä/%E3%83%84", "//", "/*$"];

/// Parses one robots.txt and decides on some paths.
pub fn robots(data: &[u8]) {
    let file = RobotsFile::parse(data, "agentdex");
    let again = RobotsFile::parse(data, "agentdex");
    assert!(file.notes().len() <= 50, "more notes than the cap");
    assert!(file.agentmaps().len() <= 100, "more lines than the cap");
    for path in PATHS {
        let decision = file.decide(path);
        assert_eq!(decision, again.decide(path), "two readings differ on {path}");
        let free = *path == "/robots.txt";
        assert!(
            !free || matches!(decision, RobotsDecision::Allowed(None)),
            "robots.txt itself is always allowed"
        );
    }
}
