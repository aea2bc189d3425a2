//! The help of a subcommand shows only the flags that it uses. The others are refused, except for the shared options.

use clap::{Arg, Command, CommandFactory as _};

use ::settings::SharedFlags;
use ::settings::command_line::typed;

use super::flags::Flags;

const SHARED: &[&str] = SharedFlags::NAMES;
/// Flags that determine how requests are sent.
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
pub const SUBCOMMAND_FLAGS: [(&str, &[&[&str]]); 13] = [
    ("explain", &[SHARED, &["format"]]),
    ("check", &[SHARED, REQUEST_FLAGS, &["format", "rate", "lease", "park_wait", "text_records", "events"]]),
    ("block", &[SHARED]),
    ("unblock", &[SHARED]),
    ("suspend", &[SHARED]),
    ("unsuspend", &[SHARED]),
    ("status", &[SHARED, &["format"]]),
    ("paths", &[SHARED, &["format"]]),
    ("keys", &[SHARED, &["format", "signing_key", "signature_agent"]]),
    ("keys add", &[SHARED, &["format"]]),
    ("keys list", &[SHARED, &["format"]]),
    ("keys revoke", &[SHARED, &["format"]]),
    ("read-document", &[]),
];

/// The command line of the crawler.
pub fn command() -> Command {
    show_only_used(Flags::command().after_long_help(::settings::exit::help()), &SUBCOMMAND_FLAGS)
}

/// Parses the command line; exits on errors.
pub(super) fn parse() -> Flags {
    typed(&mut command(), std::env::args_os()).unwrap_or_else(|error| error.exit())
}

/// Hides unused flags from the help of each subcommand. The name of a subcommand below another follows the name of the other and a space.
pub fn show_only_used(whole: Command, used: &[(&str, &[&[&str]])]) -> Command {
    let everywhere: Vec<Arg> = whole.get_arguments().filter(|flag| flag.is_global_set()).cloned().collect();
    used.iter().fold(whole, |whole, (path, used)| {
        let is_idle = |flag: &&Arg| !used.iter().any(|names| names.contains(&flag.get_id().as_str()));
        let idle = everywhere.iter().filter(is_idle).map(|flag| flag.clone().hide(true)).collect();
        with_flags_at(whole, &path.split(' ').collect::<Vec<_>>(), idle)
    })
}

/// Adds flags to the subcommand at a path.
fn with_flags_at(command: Command, path: &[&str], flags: Vec<Arg>) -> Command {
    match path.split_first() {
        None => command.args(flags),
        Some((name, rest)) => {
            command.mut_subcommand(name, |subcommand| with_flags_at(subcommand, rest, flags))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_of_each_subcommand_lists_the_flags_it_uses() {
        command().debug_assert();
        for (name, shown, hidden) in [
            ("explain", ["--visits", "--format"], ["--delay", "--seeds"]),
            ("check", ["--hosts", "--events"], ["--concurrency", "--revisit-every"]),
            ("block", ["--reason", "--data-dir"], ["--format ", "--rate"]),
            ("status", ["--format", "--database-url"], ["--ca-file", "--strict"]),
            ("keys", ["--signing-key", "--format"], ["--contact-url", "--delay"]),
        ] {
            let help = command().try_get_matches_from(["crawler", name, "--help"]).unwrap_err().to_string();
            assert!(shown.iter().all(|flag| help.contains(flag)), "{help}");
            assert!(!hidden.iter().any(|flag| help.contains(flag)), "{help}");
        }
        let whole = Flags::command();
        let known: Vec<&str> = whole.get_arguments().map(|flag| flag.get_id().as_str()).collect();
        for (name, used) in SUBCOMMAND_FLAGS {
            assert!(used.concat().iter().all(|flag| known.contains(flag)), "{name}");
        }
        assert_eq!(
            SUBCOMMAND_FLAGS.iter().filter(|(path, _)| !path.contains(' ')).count(),
            whole.get_subcommands().count(),
            "each subcommand must list the flags that it uses"
        );
    }

    #[test]
    fn refuses_flags_that_a_subcommand_does_not_use() {
        let error = |line: &str| typed::<Flags>(&mut command(), line.split(' ')).err().map(|e| e.to_string());
        for (line, why) in [
            (
                "crawler --seeds=x status",
                "--seeds has no effect on `status`: leave it out; use it with a crawl",
            ),
            ("crawler --daemon paths", "--daemon has no effect on `paths`"),
            ("crawler --delay 3s status", "(`crawler --seeds FILE`) and `check`"),
            ("crawler status --delay 1s --strict", "--delay and --strict have no effect on `status`"),
            ("crawler --signing-key k keys list", "--signing-key has no effect on `keys list`"),
        ] {
            let error = error(line).unwrap_or_default();
            assert!(error.contains(why), "{line}: {error}");
        }
        for line in [
            "crawler --data-dir d --log-format json status",
            "crawler --delay 3s check a.example",
            "crawler --signing-key k keys",
            "crawler --seeds x",
        ] {
            assert_eq!(error(line), None, "{line}");
        }
    }

    #[test]
    fn refuses_a_subcommand_that_is_parsed_as_a_seed_file() {
        for words in [["crawler", "--seeds", "domains.txt", "status"], ["crawler", "--seeds", "status", "-q"]]
        {
            let error = typed::<Flags>(&mut command(), words).unwrap_err().to_string();
            assert!(error.contains("write the subcommand first, without --seeds: crawler status"), "{error}");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("status");
        std::fs::write(&file, "shop.example").unwrap();
        for file in [file.to_str().unwrap(), "domains.txt"] {
            assert!(typed::<Flags>(&mut command(), ["crawler", "--seeds", file]).is_ok());
        }
    }

    #[test]
    fn suggests_only_flags_that_resemble_the_typed_one() {
        let error = |flag: &str| typed::<Flags>(&mut command(), ["crawler", flag]).unwrap_err().to_string();
        assert!(error("--sedes").contains("--seeds"), "{}", error("--sedes"));
        let listen = error("--listen");
        assert!(listen.contains("--listen") && !listen.contains("--lease"), "{listen}");
    }

    #[test]
    fn words_of_other_programs_are_answered_with_the_line_to_write() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("domains.txt");
        std::fs::write(&list, "shop.example").unwrap();
        let list = list.to_str().unwrap();
        let error = |words: &[&str]| {
            let words = ["crawler"].iter().chain(words);
            typed::<Flags>(&mut command(), words).unwrap_err().to_string()
        };
        for (words, line) in [
            (["crawl", list].as_slice(), format!("write crawler --seeds {list} --contact-email YOU")),
            (&["seeds", "nosuch.txt"], "write crawler --seeds FILE --contact-email YOU".to_owned()),
            (&["serve"], "write agentdex --seeds FILE --contact-email YOU".to_owned()),
            (&["index"], "the program indexer indexes".to_owned()),
            (&["export", "x"], "write agentdex db export FILE".to_owned()),
            (&[list], format!("write --seeds {list} to crawl")),
        ] {
            let error = error(words);
            assert!(error.contains(&line) && !error.contains("tip:"), "{error}");
        }
        assert!(error(&["stauts"]).contains("'status'"), "{}", error(&["stauts"]));
        assert!(!error(&["remove"]).contains("tip:"), "a far-fetched suggestion: {}", error(&["remove"]));
    }

    #[test]
    fn the_usage_does_not_contain_a_suggested_flag() {
        let words = ["crawler", "--sedes", "x"];
        let error = typed::<Flags>(&mut command(), words).unwrap_err().to_string();
        assert!(error.contains("'--seeds'") && !error.contains("Usage:"), "{error}");
    }
}
