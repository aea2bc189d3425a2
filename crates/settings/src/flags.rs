//! The flags that all programs share, and how they are combined with the file.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::SettingsError;
use crate::environment;
use crate::escape::shell_word;
use crate::log::{LogFormat, LogLevel};
use crate::secret::secret;

const DATA_DIR_DEFAULT: &str = "./agentdex-data";
/// Name of the database file in a data directory.
const DATABASE_FILE: &str = "agentdex.db";
/// The environment variable with the URL of the database. Other programs use the same name.
pub const DATABASE_URL_VARIABLE: &str = "DATABASE_URL";

/// Flags of every agentdex program.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Shared options")]
pub struct SharedFlags {
    /// Directory of the database, the index and everything else that is stored [default: ./agentdex-data]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Database, as `postgres://user:password@host/name` or `sqlite:PATH` [default: SQLite in the data directory] [env: `DATABASE_URL`, unless empty or --data-dir has a database]
    // clap does not read the variable, because the demo ignores the variable but uses the flag
    #[arg(long, global = true, value_name = "URL")]
    pub database_url: Option<String>,
    /// TOML file with the same settings; AGENTDEX_… variables override it, and flags override both
    #[arg(long, global = true, value_name = "FILE", env = "AGENTDEX_CONFIG")]
    pub config: Option<PathBuf>,
    /// Format of the log on stderr [default: text]
    #[arg(long, global = true, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Log errors only, and show no progress
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Log more; twice for even more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

impl SharedFlags {
    /// The names of the fields, which are also the ids of the arguments in `clap`.
    pub const NAMES: &[&str] = &["data_dir", "database_url", "config", "log_format", "quiet", "verbose"];

    /// The data directory. `in_file` is the value in the file.
    pub fn data_dir(&self, in_file: Option<PathBuf>) -> PathBuf {
        self.data_dir.clone().or(in_file).unwrap_or_else(|| DATA_DIR_DEFAULT.into())
    }

    /// Whether the flag of the data directory names a directory with a database. Then `DATABASE_URL` is not used.
    fn names_a_database(&self) -> bool {
        self.data_dir.as_ref().is_some_and(|dir| dir.join(DATABASE_FILE).is_file())
    }

    /// The URL of the database, if it is set by the flag, by `DATABASE_URL`, or in the file. `in_file` is the key `database_url` of the
    /// file, and `url_file` is its key `database_url_file`, which takes precedence over `database_url`.
    pub fn database_url(
        &self,
        in_file: Option<String>,
        url_file: Option<&Path>,
    ) -> Result<Option<String>, SettingsError> {
        self.database_url_or(database_url_variable(), in_file, url_file)
    }

    fn database_url_or(
        &self,
        variable: Option<String>,
        in_file: Option<String>,
        url_file: Option<&Path>,
    ) -> Result<Option<String>, SettingsError> {
        let variable = variable.filter(|_| !self.names_a_database());
        let url = match (self.database_url.clone().or(variable), url_file) {
            (Some(url), _) => Some(url),
            (None, Some(path)) => Some(secret("database_url_file", path)?),
            (None, None) => in_file,
        };
        Ok(url.filter(|url| !url.is_empty()))
    }

    /// The typed flags that determine the location of the data, as words of a shell, each after a space. `url_to_type` leaves out the password
    /// of the URL of a database.
    pub fn location(&self, url_to_type: impl FnOnce(&str) -> String) -> String {
        let path = |path: &PathBuf| path.display().to_string();
        let words = [
            ("--data-dir", self.data_dir.as_ref().map(path)),
            ("--database-url", self.database_url.as_deref().map(url_to_type)),
            ("--config", self.config.as_ref().map(path)),
        ];
        let typed = words.into_iter().filter_map(|(flag, value)| Some((flag, value?)));
        typed.fold(String::new(), |typed, (flag, value)| format!("{typed} {flag} {}", shell_word(&value)))
    }

    /// A sentence for errors about the database, if `DATABASE_URL` is set although a data directory was given as a flag.
    pub fn variable_note(&self) -> Option<&'static str> {
        self.variable_note_with(database_url_variable().as_deref())
    }

    fn variable_note_with(&self, variable: Option<&str>) -> Option<&'static str> {
        (variable.is_some()
            && self.data_dir.is_some()
            && self.database_url.is_none()
            && !self.names_a_database())
        .then_some(
            "DATABASE_URL is set, and --data-dir names a directory without a database: unset it to create one there",
        )
    }

    /// The log level. `default` applies if neither a flag nor the file sets one; each `-v` raises it by one level.
    pub fn log_level(&self, in_file: Option<LogLevel>, default: LogLevel) -> LogLevel {
        match (self.quiet, self.verbose) {
            (true, _) => LogLevel::Error,
            (false, 0) => in_file.unwrap_or(default),
            (false, 1) => default.next(),
            (false, _) => default.next().next(),
        }
    }
}

/// The URL in `DATABASE_URL`, which overrides the file and `AGENTDEX_DATABASE_URL`. An empty variable counts as not set.
pub fn database_url_variable() -> Option<String> {
    environment::variable(DATABASE_URL_VARIABLE).filter(|url| !url.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_raise_and_lower_the_log_level() {
        let level = |quiet, verbose, in_file| {
            SharedFlags { quiet, verbose, ..SharedFlags::default() }.log_level(in_file, LogLevel::Warn)
        };
        assert_eq!(level(false, 0, None), LogLevel::Warn);
        assert_eq!(level(false, 0, Some(LogLevel::Trace)), LogLevel::Trace);
        assert_eq!(level(true, 0, Some(LogLevel::Trace)), LogLevel::Error);
        assert_eq!(level(false, 1, None), LogLevel::Info);
        assert_eq!([level(false, 2, None), level(false, 9, None)], [LogLevel::Debug; 2]);
        let reader = SharedFlags { verbose: 2, ..SharedFlags::default() };
        assert_eq!(reader.log_level(None, LogLevel::Info), LogLevel::Trace);
    }

    #[test]
    fn the_flag_overrides_the_variable_which_overrides_the_secret_file_which_overrides_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let secret = dir.path().join("url");
        std::fs::write(&secret, "postgres://from-file/db\n").unwrap();
        let flag = SharedFlags { database_url: Some("postgres://flag/db".into()), ..SharedFlags::default() };
        let none = SharedFlags::default();
        let with = |flags: &SharedFlags, variable: Option<&str>, key: Option<&str>, file| {
            flags.database_url_or(variable.map(str::to_owned), key.map(str::to_owned), file).unwrap()
        };
        let url = |flags: &SharedFlags, key: Option<&str>, file| with(flags, None, key, file);
        let variable = Some("postgres://variable/db");
        assert_eq!(with(&flag, variable, None, None).as_deref(), Some("postgres://flag/db"));
        assert_eq!(with(&none, variable, Some("key"), Some(&secret)).as_deref(), variable);
        assert_eq!(url(&flag, Some("key"), Some(&secret)).as_deref(), Some("postgres://flag/db"));
        assert_eq!(url(&none, Some("key"), Some(&secret)).as_deref(), Some("postgres://from-file/db"));
        assert_eq!(url(&none, Some("key"), None).as_deref(), Some("key"));
        assert_eq!(url(&none, Some(""), None), None);
    }

    #[test]
    fn a_data_directory_with_a_database_overrides_the_variable() {
        let dir = tempfile::tempdir().unwrap();
        let flags = SharedFlags { data_dir: Some(dir.path().into()), ..SharedFlags::default() };
        let variable = Some("postgres://host/db");
        let url = |flags: &SharedFlags| {
            flags.database_url_or(variable.map(str::to_owned), Some("key".to_owned()), None).unwrap()
        };
        assert_eq!(url(&flags).as_deref(), variable);
        assert!(flags.variable_note_with(variable).is_some());
        std::fs::write(dir.path().join(DATABASE_FILE), "").unwrap();
        assert_eq!(url(&flags).as_deref(), Some("key"), "the file is still used");
        assert!(flags.variable_note_with(variable).is_none());
        let typed = SharedFlags { database_url: Some("postgres://flag/db".into()), ..flags };
        assert_eq!(url(&typed).as_deref(), Some("postgres://flag/db"));
        assert_eq!(url(&SharedFlags::default()).as_deref(), variable, "the directory was not typed");
    }

    #[test]
    fn a_data_directory_without_a_database_does_not_override_the_variable() {
        let note = |dir: Option<&str>, url: Option<&str>, variable: Option<&str>| {
            let flags = SharedFlags {
                data_dir: dir.map(PathBuf::from),
                database_url: url.map(str::to_owned),
                ..SharedFlags::default()
            };
            flags.variable_note_with(variable).is_some()
        };
        let variable = Some("postgres://host/db");
        assert!(note(Some("d"), None, variable));
        for (dir, url, variable) in
            [(None, None, variable), (Some("d"), variable, variable), (Some("d"), None, None)]
        {
            assert!(!note(dir, url, variable), "{dir:?} {url:?} {variable:?}");
        }
    }

    #[test]
    fn the_location_of_the_data_can_be_typed_again() {
        let flags = SharedFlags {
            data_dir: Some("Ann's data".into()),
            database_url: Some("postgres://me:word@host/db".to_owned()),
            ..SharedFlags::default()
        };
        let typed = r" --data-dir 'Ann'\''s data' --database-url postgres://me:PASSWORD@host/db";
        assert_eq!(flags.location(|url| url.replace("word", "PASSWORD")), typed);
        assert_eq!(SharedFlags::default().location(str::to_owned), "");
    }

    #[test]
    fn lists_the_names_of_all_flags() {
        let command = SharedFlags::augment_args(clap::Command::new("test"));
        let names: Vec<&str> = command.get_arguments().map(|flag| flag.get_id().as_str()).collect();
        assert_eq!(names, SharedFlags::NAMES);
    }
}
