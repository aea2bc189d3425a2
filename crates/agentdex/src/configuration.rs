//! `agentdex config check|print`: the settings of the file and the environment, as every program reads them.
//!
//! The documented file `deploy/agentdex.toml` is the list of keys; a test compares it with the keys of the programs.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use api::ApiSettings;
use clap::Subcommand;
use crawler::cli::{CrawlFlags, Settings};
use indexer::cli::ReaderFlags;
use settings::command_line::with_flags;
use settings::{DATABASE_URL_VARIABLE, Key, SharedFlags, escape, keys};
use store::DatabaseUrl;
use toml::{Table, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the settings of every program; exit with 2 if one is invalid
    Check,
    /// Print every key with its value and source
    Print,
}

pub(crate) fn run(
    command: ConfigCommand,
    shared: &SharedFlags,
    crawl: &CrawlFlags,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let Checked { obstacles, skipped } = check(shared, crawl)?;
    let file = shared.config.as_deref();
    match command {
        ConfigCommand::Check => {
            writeln!(out, "{}: valid for every program", source(file))?;
            if file.is_none() && crawl.seeds.is_empty() {
                let text = format!(
                    "no file was read: --config or AGENTDEX_CONFIG names one; without one, a crawl takes its seeds and contact from \
                     flags: `{}`",
                    crawl_command(shared, crawl)
                );
                writeln!(out, "{}", with_flags(&text, &shared.location(store::url_to_type)))?;
            }
            for obstacle in obstacles {
                writeln!(out, "warning: a crawl cannot start: {}", escape::line(&obstacle))?;
            }
            for skipped in skipped {
                writeln!(out, "warning: {}", escape::line(&skipped))?;
            }
            if let Some(example) = crawler::cli::resolve(shared, crawl)?.contact.copied_example() {
                let why = "is an example address, where site owners cannot reach you";
                writeln!(out, "warning: {} {why}: set contact_email or contact_url", escape::line(example))?;
            }
        }
        ConfigCommand::Print => print(file, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What valid settings mean for a crawl. On a machine that does not crawl this does not matter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Checked {
    /// Why a crawl that keeps running would not start.
    pub(crate) obstacles: Vec<String>,
    /// A sentence for each list with lines that a crawl would skip.
    pub(crate) skipped: Vec<String>,
}

/// Reads the settings as each program does, and the lists of seeds.
pub(crate) fn check(shared: &SharedFlags, crawl: &CrawlFlags) -> Result<Checked, crawler::UsageError> {
    let usage = |error: &dyn std::fmt::Display| crawler::UsageError(error.to_string());
    let settings = crawler::cli::resolve(shared, crawl)?;
    let mut read = ReaderFlags { shared: shared.clone(), ..ReaderFlags::default() }
        .settings()
        .map_err(|error| usage(&error))?;
    if read.publish.is_some() {
        read.refuse_cluster_with_snapshots().map_err(|error| usage(&error))?;
    }
    read.open_cluster().map_err(|error| usage(&error))?;
    let file = shared.config.as_deref();
    let api = ApiSettings::default().or_file(file).map_err(|error| usage(&error))?;
    api.resolve(read).map_err(|error| usage(&error))?;
    Ok(of_crawl(settings, file))
}

/// The command that starts a crawl with these settings. Messages quote it with backticks, so that they name the location of the data.
pub(crate) fn crawl_command(shared: &SharedFlags, crawl: &CrawlFlags) -> String {
    let is_complete = crawler::cli::resolve(shared, crawl)
        .is_ok_and(|settings| !settings.crawl.seeds.is_empty() && settings.continuous().is_ok());
    match shared.config.as_deref().filter(|_| is_complete) {
        Some(_) => format!("agentdex{}", shared.location(store::url_to_type)),
        None => "agentdex --seeds FILE --contact-email YOU".to_owned(),
    }
}

/// Without a file, seeds and contact are flags of the crawl.
fn of_crawl(settings: Settings, file: Option<&Path>) -> Checked {
    let seeds = &settings.crawl.seeds;
    if seeds.is_empty() {
        let why = "there are no seeds, and without them only the sites of an earlier crawl are visited: set `seeds` in [crawler], or name them with --seeds";
        let obstacles = file.map(|_| why.to_owned()).into_iter().collect();
        return Checked { obstacles, ..Checked::default() };
    }
    let scope = settings.crawl.egress.own_networks.site_scope();
    let mut checked = Checked::default();
    for source in seeds {
        match source.check_lines(scope) {
            Ok(report) => checked.skipped.extend(report.skipped_lines()),
            Err(error) => checked.obstacles.push(error.to_string()),
        }
    }
    checked.obstacles.extend(settings.continuous().err().map(|error| error.to_string()));
    checked
}

fn source(file: Option<&Path>) -> String {
    file.map_or_else(
        || "the environment".to_owned(),
        |path| format!("{} and the environment", path.display()),
    )
}

fn print(file: Option<&Path>, out: &mut impl Write) -> anyhow::Result<()> {
    let file: Table = settings::load(file, &Vec::new())?;
    let url = settings::database_url_variable().map(|url| (DATABASE_URL_VARIABLE.to_owned(), url));
    let variables: settings::Variables = url.into_iter().chain(settings::variables()).collect();
    let mut table = "";
    for key in keys() {
        if key.table != table {
            table = key.table;
            writeln!(out, "\n[{table}]")?;
        }
        writeln!(out, "{}", line(&key, &file, &variables))?;
    }
    Ok(())
}

/// Formats a key as TOML with the source of its value; as a comment if it has no value. The first variable of a key takes precedence.
fn line(key: &Key, file: &Table, variables: &settings::Variables) -> String {
    let name = key.name;
    let variable = key.variable();
    let is_database = key.table.is_empty() && name == "database_url";
    let sets = |of: &str| of == variable || is_database && of == DATABASE_URL_VARIABLE;
    let set = variables.iter().find(|(of, _)| sets(of));
    let in_file = match key.table {
        "" => file.get(name),
        table => {
            let mut parts = table.split('.');
            let first = parts.next().and_then(|part| file.get(part));
            parts.fold(first, |table, part| table?.get(part)).and_then(|table| table.get(name))
        }
    };
    match (set, in_file, key.default) {
        (Some((variable, text)), _, _) => {
            format!("{name} = {} # from {variable}", toml_value(name, &Value::String(text.clone())))
        }
        (None, Some(value), _) => format!("{name} = {} # from the file", toml_value(name, value)),
        (None, None, Some(default)) => format!("{name} = {default} # the default"),
        (None, None, None) => format!("# {name} is not set"),
    }
}

/// Formats a value as TOML, which for strings, numbers and lists is the same as JSON. Passwords are removed.
fn toml_value(name: &str, value: &Value) -> String {
    let value = match (name, value) {
        ("database_url" | "primary_url", Value::String(url)) => {
            let url = DatabaseUrl::parse(url).map_or_else(|error| error.to_string(), |url| url.to_string());
            Value::String(url)
        }
        _ => value.clone(),
    };
    serde_json::to_string(&value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const DOCUMENTED: &str = include_str!("../../../deploy/agentdex.toml");

    fn with_file(text: &str) -> (tempfile::TempDir, SharedFlags) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agentdex.toml");
        std::fs::write(&path, text).unwrap();
        (dir, SharedFlags { config: Some(path), ..SharedFlags::default() })
    }

    fn error_of(text: &str) -> String {
        let (_dir, shared) = with_file(text);
        check(&shared, &CrawlFlags::default()).unwrap_err().to_string()
    }

    /// The known keys, from the error about an unknown key.
    fn known(table: &str) -> BTreeSet<String> {
        let header = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
        let error = error_of(&format!("{header}zzzzzz = 1\n"));
        let (_, list) = error.split_once("the known keys are ").unwrap_or_else(|| panic!("{error}"));
        let is_table = |key: &str| {
            let path = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
            tables().contains(path.as_str())
        };
        list.split(", ").filter(|key| !is_table(key)).map(str::to_owned).collect()
    }

    fn tables() -> BTreeSet<&'static str> {
        keys().iter().map(|key| key.table).collect()
    }

    #[test]
    fn the_documented_file_lists_exactly_the_keys_of_the_programs() {
        for table in tables() {
            let documented: BTreeSet<String> =
                keys().iter().filter(|key| key.table == table).map(|key| key.name.to_owned()).collect();
            assert_eq!(documented, known(table), "[{table}]");
        }
    }

    #[test]
    fn the_documented_defaults_are_the_real_ones() {
        let (_dir, documented) = with_file(DOCUMENTED);
        let resolved = |shared: &SharedFlags| {
            let mut settings = crawler::cli::resolve(shared, &CrawlFlags::default()).unwrap();
            settings.shared.location = String::new();
            let read = ReaderFlags { shared: shared.clone(), ..ReaderFlags::default() }.settings().unwrap();
            let api = ApiSettings::default().or_file(shared.config.as_deref()).unwrap().resolve(read.clone());
            format!("{settings:#?} {:#?} {:#?}", (read.data_dir, read.store, read.index), api.unwrap())
        };
        // The default log level differs between the programs, so the file does not set it.
        assert_eq!(resolved(&documented), resolved(&SharedFlags::default()));
    }

    #[test]
    fn the_examples_of_keys_without_a_default_are_valid() {
        let text: String = DOCUMENTED
            .lines()
            .map(|line| {
                let is_key = keys().iter().any(|key| line.starts_with(&format!("# {} = ", key.name)));
                // these name a file that does not exist here, or need another build
                let is_elsewhere = ["_file = ", "hosts = ", "tokens = ", "_key = ", "cluster = "];
                let is_elsewhere = is_elsewhere.iter().any(|key| line.contains(key));
                if is_key && !is_elsewhere { line.trim_start_matches("# ") } else { line }
            })
            .flat_map(|line| [line, "\n"])
            .collect();
        let (_dir, shared) = with_file(&text);
        check(&shared, &CrawlFlags::default()).unwrap();
    }

    #[test]
    fn warns_about_settings_with_which_no_crawl_starts() {
        let (dir, shared) = with_file("");
        let list = dir.path().join("domains.txt");
        let contact = "contact_email = \"me@mine.example\"\n";
        let seeds = format!("seeds = [\"{}\"]\n", list.display());
        let checked = |table: &str| {
            let (_dir, shared) = with_file(&format!("[crawler]\n{table}"));
            let mut out = Vec::new();
            run(ConfigCommand::Check, &shared, &CrawlFlags::default(), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(checked("").contains("warning: a crawl cannot start: there are no seeds"));
        let both = checked(&seeds);
        assert!(both.contains("cannot read the seed file") && both.contains("--contact-email"), "{both}");
        std::fs::write(&list, "example,com\n").unwrap();
        let no_seed = checked(&format!("{seeds}{contact}"));
        assert!(no_seed.contains("a crawl cannot start: no line of"), "{no_seed}");
        std::fs::write(&list, "a.example\n").unwrap();
        let no_contact = checked(&seeds);
        std::fs::write(&list, "a.example\nb,c\nlocalhost\n10.0.0.1\n").unwrap();
        let skipped = checked(&format!("{seeds}{contact}"));
        let expected = format!("warning: 3 lines of {} are skipped; line 2: ", list.display());
        assert!(skipped.contains(&expected) && skipped.contains("; line 4: "), "{skipped}");
        std::fs::write(&list, "a.example\n").unwrap();
        assert_eq!(no_contact.matches("warning: ").count(), 1, "{no_contact}");
        assert!(!checked(&format!("{seeds}{contact}")).contains("warning: "));
        let copied = checked(&format!("{seeds}contact_email = \"you@example.org\"\n"));
        assert!(copied.contains("warning: you@example.org is an example address"), "{copied}");
        let without_file = SharedFlags { config: None, ..shared };
        assert_eq!(check(&without_file, &CrawlFlags::default()).unwrap(), Checked::default());
        let mut out = Vec::new();
        run(ConfigCommand::Check, &without_file, &CrawlFlags::default(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "no file was read: --config or AGENTDEX_CONFIG names one;";
        assert!(
            text.contains(expected) && text.ends_with("`agentdex --seeds FILE --contact-email YOU`\n"),
            "{text}"
        );
    }

    #[test]
    fn errors_name_the_key_or_its_table() {
        for (text, words) in [
            ("[crawler]\nconcurency = 5\n", "did you mean `concurrency`?"),
            ("[indexer]\nindexdir = \"i\"\n", "did you mean `index_dir`?"),
            ("[indexer]\ncluster = \"broker:1\"\n", "cannot be used: "),
            (
                "[indexer]\ncluster = \"http://127.0.0.1:1\"\npublish = \"p\"\n",
                "cannot be used with snapshots",
            ),
            ("[indexer]\ncluster_missing_shards = \"refuse\"\n", "`fail` or `partial`"),
            ("[api]\nlisten_on = \"x\"\n", "did you mean `listen`?"),
            ("[api]\nlisten = \"nowhere\"\n", "nowhere"),
            ("[crwler]\n", "did you mean `crawler`?"),
            ("delay = \"5s\"\n", "line 1: unknown key `delay` here: it belongs in `[crawler]`"),
            (
                "[crawler]\nlisten = \"127.0.0.1:80\"\n",
                "line 2: unknown key `listen` here: it belongs in `[api]`",
            ),
            ("[api]\nreplicas = 2\n", "it belongs in `[api.limits]`"),
            ("[indexer]\ndata_dir = \"d\"\n", "it belongs above the tables"),
            ("[api.limits]\nreads_brust = 3\n", "did you mean `reads_burst`?"),
            ("database_url_file = \"/nowhere/url\"\n", "/nowhere/url"),
        ] {
            assert!(error_of(text).contains(words), "{}", error_of(text));
        }
    }

    #[test]
    fn prints_values_with_their_source_and_without_passwords() {
        let file: Table = toml::from_str(
            "database_url = \"postgres://me:word@host/db\"\n[crawler]\nrate = 7\nseeds = [\"a\", \"b\"]\n[api]\nprimary_url = \"postgres://me:word@primary/db\"\n",
        )
        .unwrap();
        let variables = vec![("AGENTDEX_CRAWLER_DELAY".to_owned(), "9s".to_owned())];
        let lines: Vec<String> = keys().iter().map(|key| line(key, &file, &variables)).collect();
        let url = (DATABASE_URL_VARIABLE.to_owned(), "postgres://u:secret@h/d".to_owned());
        let database = keys().into_iter().find(|key| key.name == "database_url").unwrap();
        assert_eq!(
            line(&database, &file, &vec![url]),
            "database_url = \"postgres://u:***@h/d\" # from DATABASE_URL"
        );
        for expected in [
            "database_url = \"postgres://me:***@host/db\" # from the file",
            "primary_url = \"postgres://me:***@primary/db\" # from the file",
            "rate = 7 # from the file",
            "seeds = [\"a\",\"b\"] # from the file",
            "delay = \"9s\" # from AGENTDEX_CRAWLER_DELAY",
            "concurrency = 256 # the default",
            "# contact_email is not set",
        ] {
            assert!(lines.iter().any(|line| line == expected), "{expected} is not in {lines:#?}");
        }
    }
}
