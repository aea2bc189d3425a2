//! Errors of the command lines of all programs: mistyped words are answered with what to write, and errors of values are in plain words.
//! Commands in messages get the flags that locate the data.

use std::error::Error as _;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, FromArgMatches, Parser};

use crate::environment::{DISTANCE_MAX, is_misspelling, nearest};
use crate::unused_flags;

/// Words for which people expect a subcommand.
struct OtherWord {
    words: &'static [&'static str],
    /// The program that does this without a subcommand.
    program: Option<&'static str>,
    line: &'static str,
}

/// What people type for a crawl, for the services and for commands of other names, with what to write instead.
const OTHER_WORDS: [OtherWord; 4] = [
    OtherWord {
        words: &["crawl", "crawler", "seed", "seeds", "add", "start", "run", "visit", "fetch"],
        program: None,
        line: "to crawl the sites of a list, write {crawls} --seeds {list} --contact-email YOU",
    },
    OtherWord {
        words: &["serve", "server", "api", "web", "dashboard", "ui", "up"],
        program: Some("api"),
        line: "to crawl, index and serve in one process, write agentdex --seeds {list} --contact-email YOU; the program api serves only what is stored",
    },
    OtherWord {
        words: &["index", "indexer", "reindex", "rebuild"],
        program: Some("indexer"),
        line: "agentdex --seeds {list} --contact-email YOU indexes while it crawls; the program indexer indexes only what is stored",
    },
    OtherWord {
        words: &["import", "export", "migrate", "dump", "backup"],
        program: None,
        line: "to export or import the database, write agentdex db export FILE or agentdex db import FILE",
    },
];

/// Names of options in other programs, with the option of agentdex: its name, and how it is written.
const OTHER_FLAGS: [(&[&str], &str, &str); 11] = [
    (&["contact", "email", "mail", "e-mail"], "contact-email", "--contact-email ADDRESS"),
    (&["contact-page", "website", "homepage"], "contact-url", "--contact-url URL"),
    (&["port", "bind", "host", "addr", "address", "http"], "listen", "--listen 127.0.0.1:PORT"),
    (&["seed-file", "domains", "sites", "list", "urls", "url", "file", "input"], "seeds", "--seeds FILE"),
    (&["db", "database", "dsn", "db-url", "postgres"], "database-url", "--database-url URL"),
    (&["data", "dir", "directory", "storage"], "data-dir", "--data-dir DIR"),
    (&["configuration", "conf", "settings"], "config", "--config FILE"),
    (&["json", "output", "output-format"], "format", "--format json"),
    (&["debug", "trace", "log-level"], "verbose", "--verbose, or --verbose --verbose for more"),
    (&["threads", "jobs", "parallel", "parallelism"], "concurrency", "--concurrency COUNT"),
    (&["cacert", "ca", "ca-cert", "ca-bundle"], "ca-file", "--ca-file FILE"),
];

/// Parses the command line of this process; exits if it is invalid.
pub fn parse<T: Parser>() -> T {
    typed(&mut T::command(), std::env::args_os()).unwrap_or_else(|error| error.exit())
}

/// Parses a command line. Flags that have no effect on the typed subcommand are an error.
///
/// # Errors
///
/// If the command line is wrong, or asks for the help or the version.
pub fn typed<T: FromArgMatches>(
    whole: &mut Command,
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<T, clap::Error> {
    let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    let mut matches = match whole.try_get_matches_from_mut(&words) {
        Ok(matches) => matches,
        Err(error) => return Err(explained(whole, error, &words)),
    };
    let refusal =
        unused_flags::refusal(whole, &matches).or_else(|| subcommand_read_as_seeds(whole, &matches));
    match refusal {
        Some(why) => Err(whole.error(ErrorKind::ArgumentConflict, why)),
        None => T::from_arg_matches_mut(&mut matches).map_err(|error| error.format(whole)),
    }
}

/// Why a subcommand that was parsed as a file of --seeds is refused. No such file exists.
fn subcommand_read_as_seeds(whole: &Command, matches: &ArgMatches) -> Option<String> {
    let seeds = matches.try_get_many::<PathBuf>("seeds").ok().flatten()?;
    let mut names = seeds.filter(|path| !path.exists()).filter_map(|path| path.to_str());
    let name = names.find(|name| whole.find_subcommand(name).is_some())?;
    Some(format!(
        "`{name}` after --seeds is read as a file of seeds, and there is none: write the subcommand first, without --seeds: {} {name}",
        whole.get_name()
    ))
}

/// An error of the command line in plain words, without far-fetched suggestions. For a file, or a word or an option that describes what a
/// flag, a subcommand or another program does, it shows what to write.
fn explained(whole: &mut Command, error: clap::Error, words: &[OsString]) -> clap::Error {
    let words: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
    match error.kind() {
        ErrorKind::UnknownArgument => of_flag(whole, error, &words),
        ErrorKind::InvalidSubcommand => of_subcommand(whole, error, &words),
        ErrorKind::InvalidValue => of_choice(error),
        ErrorKind::ValueValidation => of_value(whole, error),
        ErrorKind::DisplayHelp => of_help(whole, error, &words),
        _ => error,
    }
}

fn text_of(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

fn with_tip(mut error: clap::Error, tip: String) -> clap::Error {
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::SuggestedSubcommand);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// An unknown option.
fn of_flag(whole: &Command, mut error: clap::Error, words: &[&str]) -> clap::Error {
    let Some(typed) = text_of(&error, ContextKind::InvalidArg) else { return error };
    if let Some(tip) = instead_of_flag(whole, &typed, words) {
        error.remove(ContextKind::Usage);
        return with_tip(error, tip);
    }
    if let Some(suggested) = text_of(&error, ContextKind::SuggestedArg) {
        // the usage belongs to the suggested flag, as if it were required
        error.remove(ContextKind::Usage);
        if !is_misspelling(&typed, &suggested) {
            error.remove(ContextKind::SuggestedArg);
        }
    }
    error
}

/// What to write in place of an unknown option, if its meaning is known.
fn instead_of_flag(whole: &Command, typed: &str, words: &[&str]) -> Option<String> {
    let Some(name) = typed.strip_prefix("--") else {
        return instead_of_short_flags(whole, typed, words);
    };
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    if let Some(subcommand) = whole.get_subcommands().find(|known| known.get_name() == name) {
        return Some(format!("write `{} {}`, without dashes", whole.get_name(), subcommand.get_name()));
    }
    let (_, _, line) =
        OTHER_FLAGS.iter().find(|(others, flag, _)| others.contains(&name) && has_flag(whole, flag))?;
    Some(format!("write {line}"))
}

/// What to write instead of a word with one dash. `clap` reads it as several options of one letter.
fn instead_of_short_flags(whole: &Command, typed: &str, words: &[&str]) -> Option<String> {
    let letter = typed.strip_prefix('-')?;
    let is_meant = |word: &&&str| {
        let rest = word.strip_prefix('-').filter(|rest| rest.chars().count() > 1 && !rest.starts_with('-'));
        rest.is_some_and(|rest| rest.contains(letter))
    };
    let word = words.iter().find(is_meant)?;
    let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
    if has_flag(whole, name) {
        return Some(format!("write --{name}, with two dashes"));
    }
    quoted_query(whole, word, words)
}

/// The command with its query in quotes, if the word with a dash is a part of the query of `search`.
fn quoted_query(whole: &Command, word: &str, words: &[&str]) -> Option<String> {
    let (_, query) = words.split_at_checked(words.iter().position(|word| *word == "search")? + 1)?;
    let query: Vec<&str> = query.iter().take_while(|word| !word.starts_with("--")).copied().collect();
    query.contains(&word).then(|| {
        format!("quote the query: {} search '{}'", whole.get_name(), query.join(" ").replace('\'', r"'\''"))
    })
}

/// `clap` reads an excluded word of a query, such as -hotel, as -h.
fn of_help(whole: &Command, error: clap::Error, words: &[&str]) -> clap::Error {
    let word = words.iter().find(|word| word.starts_with("-h") && word.len() > 2 && **word != "-help");
    let Some((word, tip)) = word.and_then(|word| Some((word, quoted_query(whole, word, words)?))) else {
        return error;
    };
    let mut error = clap::Error::new(ErrorKind::UnknownArgument).with_cmd(whole);
    error.insert(ContextKind::InvalidArg, ContextValue::String((*word).to_owned()));
    with_tip(error, tip)
}

fn has_flag(whole: &Command, name: &str) -> bool {
    name == "version" && whole.get_version().is_some()
        || whole.get_arguments().any(|flag| flag.get_long() == Some(name) && !flag.is_hide_set())
}

/// An unknown subcommand.
fn of_subcommand(whole: &mut Command, mut error: clap::Error, words: &[&str]) -> clap::Error {
    let Some(name) = text_of(&error, ContextKind::InvalidSubcommand) else { return error };
    if let Some(why) = instead_of_subcommand(whole, &name, words) {
        return whole.error(ErrorKind::InvalidSubcommand, why);
    }
    if let Some(ContextValue::Strings(suggested)) = error.remove(ContextKind::SuggestedSubcommand) {
        let near: Vec<String> = suggested.into_iter().filter(|known| is_misspelling(&name, known)).collect();
        if !near.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(near));
        }
    }
    error
}

/// The line to write in place of a word that is not a subcommand, if the intended subcommand is known.
fn instead_of_subcommand(whole: &Command, name: &str, words: &[&str]) -> Option<String> {
    let (program, crawls) = (whole.get_name(), has_flag(whole, "seeds"));
    if Path::new(name).is_file() {
        let crawler = if crawls { "" } else { "agentdex " };
        return Some(format!(
            "`{name}` is a file, not a command: write {crawler}--seeds {name} to crawl the sites that it lists"
        ));
    }
    let Some(other) = OTHER_WORDS.iter().find(|other| other.words.contains(&name)) else {
        return has_flag(whole, name)
            .then(|| format!("`{name}` is not a command of {program}: write {program} --{name}"));
    };
    if other.program == Some(program) {
        return Some(format!(
            "`{name}` is not a command of {program}, which does this without one: leave it out"
        ));
    }
    let mut after = words.iter().skip_while(|word| **word != name).skip(1);
    let list = after.find(|word| Path::new(word).is_file()).copied().unwrap_or("FILE");
    let line = other.line.replace("{crawls}", if crawls { program } else { "agentdex" });
    Some(format!("`{name}` is not a command of {program}: {}", line.replace("{list}", list)))
}

/// A value that is not in a list: the suggestion is the most similar one, unless all differ too much.
fn of_choice(mut error: clap::Error) -> clap::Error {
    let Some(typed) = text_of(&error, ContextKind::InvalidValue) else { return error };
    let known = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(known)) => known.clone(),
        _ => return error,
    };
    error.remove(ContextKind::SuggestedValue);
    let near = nearest(&typed, known.iter().map(String::as_str), DISTANCE_MAX);
    if let Some(near) = near.filter(|_| !typed.is_empty()) {
        error.insert(ContextKind::SuggestedValue, ContextValue::String(near.to_owned()));
    }
    error
}

/// A value that cannot be parsed.
fn of_value(whole: &mut Command, error: clap::Error) -> clap::Error {
    let Some(why) = error.source().and_then(|source| in_words(&source.to_string())) else { return error };
    let (Some(typed), Some(flag)) =
        (text_of(&error, ContextKind::InvalidValue), text_of(&error, ContextKind::InvalidArg))
    else {
        return error;
    };
    whole.error(ErrorKind::ValueValidation, format!("invalid value '{typed}' for '{flag}': {why}"))
}

/// What to write, from the message of a parser of the standard library or of `clap`.
fn in_words(message: &str) -> Option<String> {
    if let Some((_, range)) = message.rsplit_once(" is not in ") {
        let (from, to) = range.split_once("..")?;
        return Some(match to.strip_prefix('=') {
            Some(to) => format!("write a whole number from {from} to {to}"),
            None => format!("write a whole number from {from}"),
        });
    }
    let words = match message {
        "invalid digit found in string" | "cannot parse integer from empty string" => "write a whole number",
        "number too large to fit in target type" => "the number is too large",
        "number too small to fit in target type" => "the number is too small",
        "number would be zero for non-zero type" => "write a whole number from 1",
        "invalid float literal" | "cannot parse float from empty string" => "write a number, such as 0.5",
        "invalid socket address syntax" => "write an address with a port, such as 127.0.0.1:8080",
        "invalid IP address syntax" => "write an address, such as 127.0.0.1",
        _ => return None,
    };
    Some(words.to_owned())
}

/// Subcommands that read neither the database nor the settings.
const WITHOUT_DATA: [&str; 7] = ["demo", "validate", "embedder", "probe", "completions", "man", "COMMAND"];

/// A message in which each command between backticks ends with these flags, which locate the data. A command that names its data keeps what
/// it has, and commands that read no data stay as they are.
pub fn with_flags(message: &str, flags: &str) -> String {
    if flags.is_empty() {
        return message.to_owned();
    }
    let mut parts = message.split('`');
    let mut text = parts.next().unwrap_or_default().to_owned();
    // parts between backticks and parts after them alternate; a last part without its closing backtick is no command
    let mut is_between = true;
    let mut rest = parts.peekable();
    while let Some(part) = rest.next() {
        let is_command = is_between && rest.peek().is_some() && reads_data(part);
        text = format!("{text}`{part}{}", if is_command { flags } else { "" });
        is_between = !is_between;
    }
    text
}

fn reads_data(command: &str) -> bool {
    let mut words = command.split(' ');
    let is_program =
        words.next().is_some_and(|word| ["agentdex", "crawler", "indexer", "api"].contains(&word));
    let is_about_data = words.next().is_some_and(|word| !WITHOUT_DATA.contains(&word));
    let is_complete =
        ["--data-dir", "--config", "--help", "--version"].iter().any(|flag| command.contains(flag));
    is_program && is_about_data && !is_complete
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, CommandFactory as _, ValueEnum};

    use super::*;
    use crate::SharedFlags;

    #[derive(Debug, Clone, Copy, ValueEnum)]
    enum Subject {
        Dns,
        Disk,
    }

    #[derive(Debug, Parser)]
    #[command(name = "agentdex", version)]
    struct Typed {
        #[arg(long)]
        seeds: Option<String>,
        #[arg(long)]
        listen: Option<String>,
        #[arg(long)]
        contact_email: Option<String>,
        #[arg(long)]
        count: Option<u32>,
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
        limit: Option<u32>,
        #[arg(long)]
        share: Option<f32>,
        #[arg(long)]
        some: Option<std::num::NonZeroU32>,
        #[arg(long)]
        metrics: Option<std::net::SocketAddr>,
        #[arg(long)]
        only: Option<Subject>,
        #[arg(short)]
        quiet: bool,
        #[command(subcommand)]
        command: Option<Subcommands>,
    }

    #[derive(Debug, clap::Subcommand)]
    enum Subcommands {
        Demo,
        Search { words: Vec<String> },
    }

    fn printed(whole: &mut Command, words: &[&str]) -> String {
        let words: Vec<OsString> = std::iter::once(&"program").chain(words).map(OsString::from).collect();
        let error = whole.try_get_matches_from_mut(&words).unwrap_err();
        explained(whole, error, &words).to_string()
    }

    #[test]
    fn options_of_other_names_are_answered_with_what_to_write() {
        for (words, tip) in [
            (["--demo"].as_slice(), "write `agentdex demo`, without dashes"),
            (&["-seeds", "x"], "write --seeds, with two dashes"),
            (&["--contact", "a@b.example"], "write --contact-email ADDRESS"),
            (&["--email=a@b.example"], "write --contact-email ADDRESS"),
            (&["--port", "9000"], "write --listen 127.0.0.1:PORT"),
            (&["version"], "write agentdex --version"),
            (&["-version"], "write --version, with two dashes"),
            (&["search", "book", "-flight"], "quote the query: agentdex search 'book -flight'"),
            (&["search", "flight", "-hotel"], "quote the query: agentdex search 'flight -hotel'"),
            (&["search", "it's", "-flight", "--limit"], r"agentdex search 'it'\''s -flight'"),
            (&["--only", "dsn"], "'dns'"),
            (&["--sedes", "x"], "'--seeds'"),
        ] {
            let printed = printed(&mut Typed::command(), words);
            assert!(printed.contains(tip) && !printed.contains("--daemon"), "{words:?}: {printed}");
        }
        assert!(!printed(&mut Typed::command(), &["search", "-help"]).contains("quote the query"));
        // options that this program does not have
        for flag in ["--db", "--unrelated", "-x"] {
            let printed = printed(&mut Typed::command(), &[flag]);
            assert!(!printed.contains("write"), "{printed}");
        }
        let far = printed(&mut Typed::command(), &["--only", "everything"]);
        assert!(!far.contains("tip:"), "{far}");
        for (others, flag, line) in OTHER_FLAGS {
            assert!(line.starts_with(&format!("--{flag}")), "{line}");
            assert!(!others.contains(&flag), "{flag}");
        }
    }

    #[test]
    fn words_of_other_programs_are_answered_by_every_program() {
        let mut api = Command::new("api").subcommand(Command::new("internal"));
        for (word, line) in [
            ("serve", "does this without one: leave it out"),
            ("crawl", "write agentdex --seeds FILE --contact-email YOU"),
            ("export", "write agentdex db export FILE"),
        ] {
            let printed = printed(&mut api, &[word]);
            assert!(printed.contains(line), "{printed}");
        }
    }

    #[test]
    fn errors_of_values_are_in_plain_words() {
        for (words, why) in [
            (["--count", "x"], "write a whole number"),
            (["--count", "5000000000"], "write a whole number from 0 to 4294967295"),
            (["--limit", "0"], "write a whole number from 1 to 100"),
            (["--some", "0"], "write a whole number from 1"),
            (["--share", "half"], "write a number, such as 0.5"),
            (["--metrics", "9090"], "write an address with a port, such as 127.0.0.1:8080"),
        ] {
            let printed = printed(&mut Typed::command(), &words);
            let (first, _) = printed.split_once('\n').unwrap();
            assert!(first.ends_with(why) && first.contains(words[1]), "{printed}");
        }
    }

    #[test]
    fn commands_in_messages_locate_the_data() {
        let flags = " --data-dir d";
        for (message, expected) in [
            ("`agentdex status` shows it", "`agentdex status --data-dir d` shows it"),
            (
                "run `indexer rebuild`, or `agentdex doctor --only dns`",
                "run `indexer rebuild --data-dir d`, or `agentdex doctor --only dns --data-dir d`",
            ),
            ("`agentdex db status --config x`", "`agentdex db status --config x`"),
            ("write `agentdex validate URL`", "write `agentdex validate URL`"),
            ("`agentdex COMMAND --help`", "`agentdex COMMAND --help`"),
            ("the `site` of `agentdex", "the `site` of `agentdex"),
            ("`a` agentdex status `b`", "`a` agentdex status `b`"),
        ] {
            assert_eq!(with_flags(message, flags), expected);
            assert_eq!(with_flags(message, ""), message);
        }
    }

    #[test]
    fn shared_flags_have_one_spelling() {
        let shared = SharedFlags::augment_args(Command::new("agentdex"));
        let known: Vec<&str> = shared.get_arguments().filter_map(clap::Arg::get_long).collect();
        for (others, flag, _) in OTHER_FLAGS {
            assert!(!others.iter().any(|other| known.contains(other)), "{flag}");
        }
    }
}
