//! The flags that a subcommand shows in its help: those that it uses. The others are accepted but hidden.

use clap::{CommandFactory as _, FromArgMatches as _};

use ::settings::SharedFlags;

use super::flags::Flags;

const SHARED: &[&str] = SharedFlags::NAMES;
/// Flags that decide how requests are sent.
pub const REQUEST_FLAGS: &[&str] = &[
    "delay",
    "hosts",
    "ca_file",
    "allow_addresses",
    "contact_url",
    "contact_email",
    "strict",
    "name_servers",
    "signing_key",
    "signature_agent",
];

/// The flags that each subcommand uses.
const USED: [(&str, &[&[&str]]); 8] = [
    ("explain", &[SHARED, &["format"]]),
    ("check", &[SHARED, REQUEST_FLAGS, &["format", "rate", "lease", "text_records", "events"]]),
    ("block", &[SHARED]),
    ("unblock", &[SHARED]),
    ("status", &[SHARED, &["format"]]),
    ("paths", &[SHARED, &["format"]]),
    ("keys", &[SHARED, &["signing_key", "signature_agent"]]),
    ("read-document", &[]),
];

/// The command line of the crawler.
pub fn command() -> clap::Command {
    show_only_used(Flags::command(), &USED)
}

/// Parses the command line; exits on errors.
pub(super) fn parse() -> Flags {
    let typed = Flags::from_arg_matches_mut(&mut command().get_matches());
    typed.unwrap_or_else(|error| error.format(&mut command()).exit())
}

/// Hides unused flags from the help of each subcommand.
pub fn show_only_used(whole: clap::Command, used: &[(&str, &[&[&str]])]) -> clap::Command {
    let everywhere: Vec<clap::Arg> =
        whole.get_arguments().filter(|flag| flag.is_global_set()).cloned().collect();
    used.iter().fold(whole, |whole, (name, used)| {
        let is_idle = |flag: &&clap::Arg| !used.iter().any(|names| names.contains(&flag.get_id().as_str()));
        let idle = everywhere.iter().filter(is_idle).map(|flag| flag.clone().hide(true));
        whole.mut_subcommand(name, |subcommand| subcommand.args(idle))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_of_each_subcommand_lists_the_flags_it_uses() {
        command().debug_assert();
        for (name, shown, hidden) in [
            ("explain", ["--visits", "--format"], ["--delay", "--seeds"]),
            ("check", ["--hosts", "--events"], ["--concurrency", "--park-wait"]),
            ("block", ["--reason", "--data-dir"], ["--format ", "--rate"]),
            ("status", ["--format", "--database-url"], ["--ca-file", "--strict"]),
            ("keys", ["--signing-key", "--signature-agent"], ["--format ", "--contact-url"]),
        ] {
            let help = command().try_get_matches_from(["crawler", name, "--help"]).unwrap_err().to_string();
            assert!(shown.iter().all(|flag| help.contains(flag)), "{help}");
            assert!(!hidden.iter().any(|flag| help.contains(flag)), "{help}");
        }
        let whole = Flags::command();
        let known: Vec<&str> = whole.get_arguments().map(|flag| flag.get_id().as_str()).collect();
        for (name, used) in USED {
            assert!(used.concat().iter().all(|flag| known.contains(flag)), "{name}");
        }
        assert_eq!(USED.len(), whole.get_subcommands().count(), "every subcommand says what it uses");
    }

    #[test]
    fn accepts_hidden_flags() {
        let words = ["crawler", "status", "--delay", "1s", "--allow-addresses", "127.0.0.0/8", "--strict"];
        let flags = Flags::from_arg_matches_mut(&mut command().get_matches_from(words)).unwrap();
        assert_eq!(flags.crawl.delay.as_deref(), Some("1s"));
        assert_eq!(flags.crawl.allow_addresses, ["127.0.0.0/8"]);
        assert!(flags.crawl.operator.strict);
    }
}
