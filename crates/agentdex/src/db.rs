//! `agentdex db`: maintains, exports and imports the database.

use std::io::{BufRead, BufReader, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use clap::{Args, Subcommand};
use crawler::cli::UsageError;
use settings::SharedFlags;
use store::{DatabaseUrl, FeedReader, Retention, Store, StoreConfig, StoreError};
use tokio::sync::mpsc;

use crate::{serve, size};

/// Lines buffered between the database and the file.
const BUFFERED_LINES: usize = 1_000;
/// Maximum number of bytes of a line of a dump. The longest are a document of 16 MiB that does not compress, in hexadecimal,
/// and its manifest.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;
const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

#[derive(Debug, Args)]
pub(crate) struct DbArgs {
    #[command(subcommand)]
    command: DbCommand,
}

#[derive(Debug, Subcommand)]
enum DbCommand {
    /// Migrate the schema, as every program does when it starts
    Migrate,
    /// Show the schema, the space of each table, the feed and its readers
    Status,
    /// Print VACUUM statements for tables that need them
    VacuumAdvice,
    /// Write all data as lines of JSON
    Export {
        /// `-` for standard output
        file: PathBuf,
    },
    /// Read an export into an empty database
    Import {
        /// `-` for standard input
        file: PathBuf,
    },
    /// Remove old data; entries that a registered reader has not read are kept
    Retain {
        /// Keep entries of the change feed for this many days
        #[arg(long, value_name = "DAYS")]
        feed_days: Option<u64>,
        /// Keep versions other than the current one for this many days
        #[arg(long, value_name = "DAYS")]
        versions_days: Option<u64>,
    },
    /// Unregister a reader of the feed, so that its entries can be removed
    ForgetReader { name: String },
}

pub(crate) async fn run(
    args: &DbArgs,
    shared: &SharedFlags,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let settings = serve::reader_settings(shared, shared.data_dir.as_deref())?;
    let _log = settings.start_logging("agentdex-db");
    let config = &settings.store;
    let flags = shared.location(store::url_to_type);
    match &args.command {
        DbCommand::Migrate => migrate(config, out).await?,
        DbCommand::Status => status(config, &flags, out).await?,
        DbCommand::VacuumAdvice => advise(config, out).await?,
        DbCommand::Export { file } => export(config, file).await?,
        DbCommand::Import { file } => import(config, file, &flags, out).await?,
        DbCommand::Retain { feed_days, versions_days } => {
            let days = |days: &Option<u64>| days.map(|days| Duration::from_secs(days * SECONDS_PER_DAY));
            let retention = Retention { feed: days(feed_days), versions: days(versions_days) };
            retain(config, &retention, &flags, out).await?;
        }
        DbCommand::ForgetReader { name } => {
            let store = Store::open_existing(config).await?;
            ensure!(
                store.feed_reader_forget(name).await?,
                "there is no reader of the feed called {name}: see `agentdex db status`"
            );
            store.close().await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn migrate(config: &StoreConfig, out: &mut impl Write) -> anyhow::Result<()> {
    let before = Store::schema(config).await?;
    Store::open(config).await?.close().await;
    let after = Store::schema(config).await?;
    let change = if before.found == after.found {
        format!("schema {} is current", after.found)
    } else {
        format!("schema {} is now schema {}", before.found, after.found)
    };
    writeln!(out, "{}: {change}", config.url)?;
    Ok(())
}

async fn status(config: &StoreConfig, flags: &str, out: &mut impl Write) -> anyhow::Result<()> {
    let schema = Store::existing_schema(config).await?;
    if schema.found < schema.known {
        writeln!(
            out,
            "{}: schema {}, this program has {}: run `agentdex db migrate{flags}`",
            config.url, schema.found, schema.known
        )?;
        return Ok(());
    }
    writeln!(out, "{}: schema {}, which is current", config.url, schema.found)?;
    let store = Store::open(config).await?;
    for space in store.space().await? {
        let rows = space.rows.map_or(String::new(), |rows| format!(", about {rows} rows"));
        writeln!(out, "  {}: {}{rows}", space.name, size::in_words(space.bytes))?;
    }
    let (first, head) = (store.feed_first().await?, store.feed_head().await?);
    match head.0 {
        0 => writeln!(out, "feed: empty")?,
        last => writeln!(out, "feed: entries {} to {last}", first.0)?,
    }
    for reader in store.feed_readers().await? {
        writeln!(out, "  {}: {}", reader.name, reader_state(head.0, &reader))?;
    }
    store.close().await;
    Ok(())
}

/// The progress of a feed reader. The time is when it last read entries, so it does not change while there are no new entries.
fn reader_state(head: i64, reader: &FeedReader) -> String {
    let read_at = reader.seen_at.format("%Y-%m-%d %H:%M UTC");
    match head.saturating_sub(reader.position.0) {
        ..=0 => format!("has read every entry, the last at {read_at}"),
        1 => format!("1 entry behind, last read at {read_at}"),
        behind => format!("{behind} entries behind, last read at {read_at}"),
    }
}

async fn advise(config: &StoreConfig, out: &mut impl Write) -> anyhow::Result<()> {
    let store = Store::open_existing(config).await?;
    let advice: Vec<String> = store.space().await?.iter().filter_map(store::Space::vacuum_advice).collect();
    store.close().await;
    if advice.is_empty() {
        writeln!(out, "-- no table needs VACUUM")?;
    }
    for statement in advice {
        writeln!(out, "{statement}")?;
    }
    Ok(())
}

async fn export(config: &StoreConfig, file: &Path) -> anyhow::Result<()> {
    let store = Store::open_existing(config).await?;
    let crawlers = store.workers_list(chrono::DateTime::from(now()), 1).await?;
    let of_lock = match &config.url {
        DatabaseUrl::Sqlite(path) => crawler::holder_of_lock(path),
        DatabaseUrl::Postgres(_) => None,
    };
    if let Some(holder) = crawlers.first().map(|crawler| crawler.worker.in_words()).or(of_lock) {
        // standard output may hold the export
        writeln!(
            std::io::stderr(),
            "a crawler runs ({holder}): stop all crawlers before an export that is to be imported, since leases are not exported"
        )?;
    }
    let (sender, mut lines) = mpsc::channel::<String>(BUFFERED_LINES);
    let target = file.to_owned();
    let writing = tokio::task::spawn_blocking(move || -> std::io::Result<()> {
        let file: Box<dyn Write> = match target.to_str() {
            Some("-") => Box::new(std::io::stdout()),
            _ => Box::new(std::fs::File::create_new(&target)?),
        };
        let mut file = BufWriter::new(file);
        while let Some(line) = lines.blocking_recv() {
            writeln!(file, "{line}")?;
        }
        file.flush()
    });
    let rows = store.export(&sender).await;
    drop(sender);
    writing.await?.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            anyhow!("{} exists: name another file, or remove it first", file.display())
        }
        _ => anyhow::Error::from(error).context(format!("cannot write {}", file.display())),
    })?;
    writeln!(std::io::stderr(), "{} rows exported", rows?)?;
    store.close().await;
    Ok(())
}

/// Imports a dump. `flags` are the flags with which another program uses the same database.
async fn import(config: &StoreConfig, file: &Path, flags: &str, out: &mut impl Write) -> anyhow::Result<()> {
    // before a database is created
    let source: Box<dyn std::io::Read + Send> = match file.to_str() {
        Some("-") => Box::new(std::io::stdin()),
        _ => Box::new(std::fs::File::open(file).with_context(|| format!("cannot read {}", file.display()))?),
    };
    let unreadable = || format!("cannot read {}", file.display());
    let begun = tokio::task::spawn_blocking(move || {
        let mut source = BufReader::new(source);
        line_read(&mut source, 1).map(|first| (source, first))
    });
    let (mut source, first) = begun.await?.with_context(unreadable)?;
    Store::check_dump_header(first.as_deref()).with_context(unreadable)?;
    let store = Store::open(config).await?;
    let (sender, mut lines) = mpsc::channel::<String>(BUFFERED_LINES);
    let reading = tokio::task::spawn_blocking(move || -> std::io::Result<()> {
        if first.is_some_and(|first| sender.blocking_send(first).is_err()) {
            return Ok(());
        }
        for number in 2_u64.. {
            let Some(line) = line_read(&mut source, number)? else { break };
            // if the receiver was dropped, it reports its own error
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
        Ok(())
    });
    let rows = store.import(&mut lines).await;
    drop(lines);
    // a read error explains why the lines ended early
    reading.await?.with_context(unreadable)?;
    writeln!(out, "{} rows imported; run `indexer rebuild{flags}` to build the index", rows?)?;
    store.close().await;
    Ok(())
}

/// Reads the next line of a dump; `None` at the end of the file.
fn line_read(file: &mut impl BufRead, number: u64) -> std::io::Result<Option<String>> {
    let invalid = |reason| std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
    let mut line = String::new();
    let read = file.take(LINE_BYTES_MAX + 1).read_line(&mut line).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => invalid(format!("line {number} of the dump is not UTF-8")),
        _ => error,
    })?;
    if line.ends_with('\n') {
        line.pop();
    } else if read as u64 > LINE_BYTES_MAX {
        return Err(invalid(format!("line {number} of the dump is longer than {LINE_BYTES_MAX} bytes")));
    }
    Ok((read > 0).then_some(line))
}

async fn retain(
    config: &StoreConfig,
    retention: &Retention,
    flags: &str,
    out: &mut impl Write,
) -> Result<(), anyhow::Error> {
    if *retention == Retention::default() {
        return Err(UsageError("specify what to remove: --feed-days, --versions-days".to_owned()).into());
    }
    let store = Store::open_existing(config).await?;
    let now = chrono::DateTime::from(now());
    let retained: Result<_, StoreError> = store.retain(retention, now).await;
    let retained = retained?;
    writeln!(
        out,
        "{} entries of the feed and {} versions removed",
        retained.feed_entries, retained.versions
    )?;
    if let Some(reader) = retained.feed_held_back_by {
        writeln!(out, "older entries are kept for the indexer {reader}: see `agentdex db status{flags}`")?;
    }
    store.close().await;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the clock of an interactive command")]
fn now() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

#[cfg(test)]
mod tests {
    use store::{DatabaseUrl, FeedPosition};

    use super::*;

    #[test]
    fn a_reader_that_has_read_everything_is_current_whenever_that_was() {
        let seen_at = chrono::DateTime::from_timestamp(1_780_000_000, 0).unwrap();
        let state = |head, position| {
            let reader = FeedReader { name: "indexer".to_owned(), position: FeedPosition(position), seen_at };
            reader_state(head, &reader)
        };
        assert_eq!(state(5, 5), "has read every entry, the last at 2026-05-28 20:26 UTC");
        assert_eq!(state(5, 4), "1 entry behind, last read at 2026-05-28 20:26 UTC");
        assert!(state(5, 2).starts_with("3 entries behind"));
    }

    #[tokio::test]
    async fn an_import_of_a_missing_file_or_of_another_one_creates_no_database() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = dir.path().join("new");
        let config = StoreConfig::new(DatabaseUrl::in_data_dir(&data_dir));
        let error = import(&config, &dir.path().join("nosuch.jsonl"), "", &mut Vec::new()).await.unwrap_err();
        assert!(error.to_string().starts_with("cannot read "), "{error}");
        let text = dir.path().join("mine.txt");
        for content in ["", "these are notes\n", "{}\n"] {
            std::fs::write(&text, content).unwrap();
            let error = import(&config, &text, "", &mut Vec::new()).await.unwrap_err();
            let why = "line 1 of the dump cannot be read: it is not the header of a dump";
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
        assert!(!data_dir.exists());
    }

    #[test]
    fn refuses_a_line_of_a_dump_that_is_too_long_with_its_number() {
        let max = usize::try_from(LINE_BYTES_MAX).unwrap();
        let mut file =
            BufReader::new(b"one\n".as_slice().chain(std::io::repeat(b'a').take(2 * LINE_BYTES_MAX)));
        assert_eq!(line_read(&mut file, 1).unwrap().as_deref(), Some("one"));
        let error = line_read(&mut file, 2).unwrap_err().to_string();
        assert!(error.contains("line 2 of the dump is longer than"), "{error}");
        let mut file = BufReader::new(std::io::repeat(b'a').take(LINE_BYTES_MAX).chain(&b"\nlast"[..]));
        assert_eq!(line_read(&mut file, 1).unwrap().map(|line| line.len()), Some(max));
        assert_eq!(line_read(&mut file, 2).unwrap().as_deref(), Some("last"));
        assert_eq!(line_read(&mut file, 3).unwrap(), None);
        let error = line_read(&mut &b"\xff\n"[..], 7).unwrap_err().to_string();
        assert!(error.contains("line 7 of the dump is not UTF-8"), "{error}");
    }
}
