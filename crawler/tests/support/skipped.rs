//! Skips tests whose requirements this machine does not meet.

/// Reports that this machine cannot run a test. Panics if every test has to run (`AGENTDEX_TEST_ALL`).
#[expect(clippy::print_stdout, reason = "a skipped test reports it")]
pub(crate) fn skipped(why: &str) {
    assert!(std::env::var_os("AGENTDEX_TEST_ALL").is_none(), "AGENTDEX_TEST_ALL is set, and {why}");
    println!("skipped: {why}");
}
