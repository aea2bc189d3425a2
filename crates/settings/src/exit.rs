//! The exit codes of all programs, in one table for the help, the documentation and the programs.

/// An error of the program, or of its database, index or network.
pub const FAILURE: u8 = 1;
/// The command line or the settings are invalid.
pub const USAGE: u8 = 2;
/// `validate`: the document is not a manifest of a known format.
pub const NOT_RECOGNISED: u8 = 3;
/// `validate`: the document is missing or cannot be read.
pub const UNREADABLE: u8 = 4;

/// The code, the programs and subcommands that exit with it, and its meaning.
const TABLE: [(u8, &str, &str); 8] = [
    (0, "all", "success"),
    (0, "crawls", "the pass has ended, whatever the sites answered"),
    (FAILURE, "all", "an error, which stderr explains"),
    (FAILURE, "validate", "a finding is at least as severe as --fail-on"),
    (FAILURE, "doctor", "a check found a problem"),
    (USAGE, "all", "the command line or the settings are invalid"),
    (NOT_RECOGNISED, "validate", "the document is not recognised as a manifest, regardless of --fail-on"),
    (UNREADABLE, "validate", "the document is missing, or cannot be read or fetched"),
];

/// The table for the end of the help text of a program.
pub fn help() -> String {
    let rows = TABLE.map(|(code, programs, meaning)| format!("\n  {code}  {programs:<9} {meaning}"));
    format!("Exit codes:{}", rows.concat())
}

/// The exit codes of one subcommand, for the end of its help text.
pub fn help_of(subcommand: &str) -> String {
    let rows = TABLE.iter().filter(|(_, programs, _)| *programs == "all" || *programs == subcommand);
    let rows = rows.map(|(code, _, meaning)| format!("\n  {code}  {meaning}"));
    format!("Exit codes:{}", rows.collect::<String>())
}
