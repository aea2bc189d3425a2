//! Flags that a subcommand does not use. `clap` accepts a flag of the program before every subcommand, and a global one after it, too.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use crate::SharedFlags;

/// Why typed flags are refused: they have no effect on the typed subcommand. A subcommand uses the flags that its help shows. The shared
/// options are accepted by every subcommand.
pub(crate) fn refusal(whole: &Command, matches: &ArgMatches) -> Option<String> {
    let path = subcommand_path(matches);
    let is_typed =
        |flag: &&Arg| matches.value_source(flag.get_id().as_str()) == Some(ValueSource::CommandLine);
    let typed = whole.get_arguments().filter(is_typed);
    let unused: Vec<&Arg> = typed.filter(|flag| !uses(whole, &path, flag)).collect();
    let names = unused.iter().filter_map(|flag| flag.get_long()).map(|name| format!("--{name}"));
    let (has, it) = match unused.len() {
        0 => return None,
        1 => ("has", "it"),
        _ => ("have", "them"),
    };
    let names = listed(&names.collect::<Vec<_>>());
    let owners = match owners(whole, &unused).as_slice() {
        [] => String::new(),
        owners => format!("; use {it} with {}", listed(owners)),
    };
    Some(format!("{names} {has} no effect on `{}`: leave {it} out{owners}", path.join(" ")))
}

/// The names of the typed subcommand and of those below it.
fn subcommand_path(matches: &ArgMatches) -> Vec<&str> {
    let below = std::iter::successors(matches.subcommand(), |(_, matches)| matches.subcommand());
    below.map(|(name, _)| name).collect()
}

/// Whether the subcommand at a path uses a flag of the program. The program without a subcommand uses all of them.
fn uses(whole: &Command, path: &[&str], flag: &Arg) -> bool {
    if path.is_empty() || SharedFlags::NAMES.contains(&flag.get_id().as_str()) {
        return true;
    }
    let mut below = path.iter().scan(whole, |at, name| {
        *at = at.find_subcommand(name)?;
        Some(*at)
    });
    flag.is_global_set() && below.all(|subcommand| shows(subcommand, flag))
}

/// Whether the help of a subcommand shows a global flag. It hides --format if the subcommand has --output, which accepts the same values.
fn shows(subcommand: &Command, flag: &Arg) -> bool {
    let own = |id: &str| subcommand.get_arguments().find(|known| known.get_id() == id);
    let has_output = flag.get_id() == "format" && own("output").is_some();
    has_output || own(flag.get_id().as_str()).is_none_or(|known| !known.is_hide_set())
}

/// What uses all of these flags. A flag that the help of the program hides belongs to another program.
fn owners(whole: &Command, unused: &[&Arg]) -> Vec<String> {
    let is_of_program = unused.iter().all(|flag| !flag.is_hide_set());
    let crawls = whole.get_arguments().any(|flag| flag.get_id() == "seeds");
    let program = match (is_of_program, crawls) {
        (false, _) => None,
        (true, true) => Some(format!("a crawl (`{} --seeds FILE`)", whole.get_name())),
        (true, false) => Some(format!("`{}` without a command", whole.get_name())),
    };
    let names = whole.get_subcommands().map(Command::get_name).filter(|name| *name != "help");
    let using = names.filter(|name| unused.iter().all(|flag| uses(whole, &[name], flag)));
    program.into_iter().chain(using.map(|name| format!("`{name}`"))).collect()
}

/// The words as a list in a sentence.
fn listed(words: &[impl AsRef<str>]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;

    fn whole() -> Command {
        let global = |name: &'static str| Arg::new(name).long(name).global(true);
        let shows = |name: &'static str, hidden: &[&'static str]| {
            Command::new(name).args(hidden.iter().map(|name| global(name).hide(true)))
        };
        let keys = shows("keys", &["delay"]).subcommand(shows("list", &["key"]));
        let output = shows("validate", &["format", "key"]).arg(Arg::new("output").long("output"));
        SharedFlags::augment_args(Command::new("agentdex"))
            .args(["delay", "key", "format"].map(global))
            .args(["seeds", "dry-run"].map(|name| Arg::new(name).long(name).hide(name == "dry-run")))
            .subcommands([shows("status", &["delay", "key"]), shows("check", &["key"]), keys, output])
    }

    fn refused(line: &str) -> Option<String> {
        let mut whole = whole();
        let words = std::iter::once("agentdex").chain(line.split(' '));
        let matches = whole.try_get_matches_from_mut(words).unwrap();
        refusal(&whole, &matches)
    }

    #[test]
    fn a_flag_without_an_effect_is_refused_before_and_after_the_subcommand() {
        for (line, expected) in [
            (
                "--delay 3s status",
                "--delay has no effect on `status`: leave it out; use it with a crawl (`agentdex --seeds FILE`), `check` and `validate`",
            ),
            (
                "status --key k --delay 3s",
                "--delay and --key have no effect on `status`: leave them out; use them with a crawl (`agentdex --seeds FILE`)",
            ),
            (
                "--seeds x check",
                "--seeds has no effect on `check`: leave it out; use it with a crawl (`agentdex --seeds FILE`)",
            ),
            (
                "--key k keys list",
                "--key has no effect on `keys list`: leave it out; use it with a crawl (`agentdex --seeds FILE`) and `keys`",
            ),
            ("--dry-run x status", "--dry-run has no effect on `status`: leave it out"),
        ] {
            assert_eq!(refused(line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn shared_options_and_used_flags_are_accepted() {
        for line in [
            "--data-dir d --database-url u --config c --log-format json -v status",
            "status -q",
            "--format json status",
            "--delay 3s check",
            "check --delay 3s",
            "--key k keys",
            "--format json validate",
            "--seeds x --dry-run x --delay 3s --key k",
        ] {
            assert_eq!(refused(line), None, "{line}");
        }
    }

    /// The flags of a program without a crawl.
    #[test]
    fn a_flag_of_the_program_belongs_to_it_without_a_command() {
        let once = Arg::new("once").long("once").action(clap::ArgAction::SetTrue);
        let mut whole = Command::new("indexer").arg(once).subcommand(Command::new("rebuild"));
        let matches = whole.try_get_matches_from_mut(["indexer", "--once", "rebuild"]).unwrap();
        let expected =
            "--once has no effect on `rebuild`: leave it out; use it with `indexer` without a command";
        assert_eq!(refusal(&whole, &matches).as_deref(), Some(expected));
    }
}
