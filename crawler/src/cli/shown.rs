//! The help of a subcommand shows only the flags that it uses. The others are accepted but hidden.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches};

use ::settings::{SharedFlags, command_line};

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
pub const SUBCOMMAND_FLAGS: [(&str, &[&[&str]]); 10] = [
    ("explain", &[SHARED, &["format"]]),
    ("check", &[SHARED, REQUEST_FLAGS, &["format", "rate", "lease", "text_records", "events"]]),
    ("block", &[SHARED]),
    ("unblock", &[SHARED]),
    ("suspend", &[SHARED]),
    ("unsuspend", &[SHARED]),
    ("status", &[SHARED, &["format"]]),
    ("paths", &[SHARED, &["format"]]),
    ("keys", &[SHARED, &["format", "signing_key", "signature_agent"]]),
    ("read-document", &[]),
];

/// The command line of the crawler.
pub fn command() -> clap::Command {
    show_only_used(Flags::command().after_long_help(::settings::exit::help()), &SUBCOMMAND_FLAGS)
}

/// Parses the command line; exits on errors.
pub(super) fn parse() -> Flags {
    typed(&mut command(), &SUBCOMMAND_FLAGS, std::env::args_os()).unwrap_or_else(|error| error.exit())
}

/// Parses a command line. Flags of a crawl before a subcommand in `used` are an error, because they would have no effect.
///
/// # Errors
///
/// If the command line is wrong, or asks for the help or the version.
pub fn typed<T: FromArgMatches>(
    whole: &mut clap::Command,
    used: &[(&str, &[&[&str]])],
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<T, clap::Error> {
    let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    let mut matches = match whole.try_get_matches_from_mut(&words) {
        Ok(matches) => matches,
        Err(error) => return Err(command_line::explained(whole, error, &words)),
    };
    let is_idle = |flag: &&clap::Arg| {
        !flag.is_global_set()
            && matches.value_source(flag.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let subcommand = matches.subcommand_name().filter(|name| used.iter().any(|(known, _)| known == name));
    let idle = subcommand.and_then(|name| {
        let flag = whole.get_arguments().find(is_idle)?.get_long()?;
        Some(format!("--{flag} is a flag of a crawl and has no effect on `{name}`: remove it"))
    });
    if let Some(why) = idle {
        return Err(whole.error(ErrorKind::ArgumentConflict, why));
    }
    if let Some(why) = subcommand.and_then(|name| format_without_effect(whole, used, name, &matches)) {
        return Err(whole.error(ErrorKind::ArgumentConflict, why));
    }
    if let Some(name) = subcommand_read_as_seeds(whole, &matches) {
        let why = format!(
            "`{name}` after --seeds is read as a file of seeds, and there is none: write the subcommand first, without --seeds: {} {name}",
            whole.get_name()
        );
        return Err(whole.error(ErrorKind::ArgumentConflict, why));
    }
    T::from_arg_matches_mut(&mut matches).map_err(|error| error.format(whole))
}

/// Why --format is refused after a subcommand that has only one output format. A subcommand with --output accepts --format in place of it.
fn format_without_effect(
    whole: &clap::Command,
    used: &[(&str, &[&[&str]])],
    name: &str,
    matches: &clap::ArgMatches,
) -> Option<String> {
    let is_known = whole.get_arguments().any(|flag| flag.get_id() == "format");
    let is_typed = is_known && matches.value_source("format") == Some(ValueSource::CommandLine);
    let has_output = whole.find_subcommand(name)?.get_arguments().any(|flag| flag.get_id() == "output");
    let (_, flags) = used.iter().find(|(known, _)| *known == name)?;
    let is_used = has_output || flags.iter().any(|names| names.contains(&"format"));
    (is_typed && !is_used)
        .then(|| format!("--format has no effect on `{name}`, whose output has one form: remove it"))
}

/// A subcommand that was parsed as a file of --seeds. No such file exists.
fn subcommand_read_as_seeds(whole: &clap::Command, matches: &clap::ArgMatches) -> Option<String> {
    let seeds = matches.try_get_many::<PathBuf>("seeds").ok().flatten()?;
    let mut names = seeds.filter(|path| !path.exists()).filter_map(|path| path.to_str());
    names.find(|name| whole.find_subcommand(name).is_some()).map(ToOwned::to_owned)
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
            SUBCOMMAND_FLAGS.len(),
            whole.get_subcommands().count(),
            "each subcommand must list the flags that it uses"
        );
    }

    #[test]
    fn refuses_flags_of_a_crawl_before_a_subcommand() {
        for words in [["crawler", "--seeds=x", "status"], ["crawler", "--daemon", "paths"]] {
            let error = typed::<Flags>(&mut command(), &SUBCOMMAND_FLAGS, words).unwrap_err().to_string();
            assert!(error.contains("has no effect on"), "{error}");
        }
        assert!(
            typed::<Flags>(&mut command(), &SUBCOMMAND_FLAGS, ["crawler", "--delay", "3s", "status"]).is_ok()
        );
        assert!(typed::<Flags>(&mut command(), &SUBCOMMAND_FLAGS, ["crawler", "--seeds", "x"]).is_ok());
    }

    #[test]
    fn refuses_a_subcommand_that_is_parsed_as_a_seed_file() {
        for words in [["crawler", "--seeds", "domains.txt", "status"], ["crawler", "--seeds", "status", "-q"]]
        {
            let error = typed::<Flags>(&mut command(), &SUBCOMMAND_FLAGS, words).unwrap_err().to_string();
            assert!(error.contains("write the subcommand first, without --seeds: crawler status"), "{error}");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("status");
        std::fs::write(&file, "shop.example").unwrap();
        for file in [file.to_str().unwrap(), "domains.txt"] {
            assert!(typed::<Flags>(&mut command(), &SUBCOMMAND_FLAGS, ["crawler", "--seeds", file]).is_ok());
        }
    }

    #[test]
    fn suggests_only_flags_that_resemble_the_typed_one() {
        let error = |flag: &str| {
            typed::<Flags>(&mut command(), &SUBCOMMAND_FLAGS, ["crawler", flag]).unwrap_err().to_string()
        };
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
            typed::<Flags>(&mut command(), &SUBCOMMAND_FLAGS, words).unwrap_err().to_string()
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
        let error = typed::<Flags>(&mut command(), &SUBCOMMAND_FLAGS, words).unwrap_err().to_string();
        assert!(error.contains("'--seeds'") && !error.contains("Usage:"), "{error}");
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
