//! All of agentdex in one process: crawler, indexer and API, on embedded storage by default. It parses the command line and
//! connects the three libraries.

mod announce;
mod cli;
mod configuration;
mod db;
mod demo;
mod doctor;
mod embedder;
mod feedback;
mod manual;
mod mcp;
mod probe;
mod reports;
mod search;
mod serve;
mod size;
mod validate;

use std::process::ExitCode;

use crawler::cli::{CrawlFlags, is_closed_pipe, is_usage};
use runtime::{ReaderProgram, RuntimeHealth, read_isolated};
use settings::command_line::with_flags;
use settings::log::LogFormat;
use settings::{SharedFlags, exit};
use store::StoreError;

use crate::cli::{Command, Flags};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let flags = cli::parse();
    let format = flags.shared.log_format.unwrap_or_default();
    let (shared, crawl) = (flags.shared.clone(), flags.crawl.clone());
    match run(flags) {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let hint = missing_hint(&error, &shared, &crawl).unwrap_or_default();
            report(&error, &hint, format, &shared.location(store::url_to_type));
            ExitCode::from(if is_usage(&error) { exit::USAGE } else { exit::FAILURE })
        }
    }
}

fn run(flags: Flags) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    match flags.command {
        Some(Command::Validate(mut args)) => {
            args.take_format(flags.crawl.format);
            let source = match args.document_url()? {
                Some(url) => {
                    let fetched = validate::fetch(&url, args.force, &flags.shared, &flags.crawl);
                    block_on(|_| fetched)
                }
                None => args.open(),
            };
            let program = ReaderProgram::this_program()?;
            let read = source.and_then(|source| Ok((read_isolated(Some(&program), &source)?, source)));
            match read {
                Ok((manifest, source)) => {
                    Ok(ExitCode::from(validate::run(&args, &source, &manifest, &mut out)?.exit_code()))
                }
                Err(error) if is_usage(&error) => Err(error),
                Err(error) => {
                    let location = flags.shared.location(store::url_to_type);
                    report(&error, "", flags.shared.log_format.unwrap_or_default(), &location);
                    Ok(ExitCode::from(exit::UNREADABLE))
                }
            }
        }
        Some(Command::Config(command)) => configuration::run(command, &flags.shared, &flags.crawl, &mut out),
        Some(Command::Doctor(args)) => {
            block_on(|_| doctor::run(&args, &flags.shared, &flags.crawl, &mut out))
        }
        Some(Command::Embedder(command)) => embedder::run(&command, &mut out).map(|()| ExitCode::SUCCESS),
        Some(Command::Probe(args)) => probe::run(&args).map(|()| ExitCode::SUCCESS),
        Some(Command::Completions(args)) => {
            manual::completions(&args, &cli::command(), &mut out)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Man(args)) => manual::pages(&args, &cli::command()).map(|()| ExitCode::SUCCESS),
        Some(Command::Db(args)) => block_on(|_| db::run(&args, &flags.shared, &mut out)),
        Some(Command::Reports(args)) => block_on(|_| reports::run(&args, &flags.shared, &mut out)),
        Some(Command::Feedback(args)) => block_on(|_| feedback::run(&args, &flags.shared, &mut out)),
        Some(Command::Demo) => {
            block_on(|health| demo::run(&flags.shared, &flags.crawl, &flags.serve, health))
        }
        Some(Command::Search(args)) => {
            let format = flags.crawl.format.unwrap_or_default();
            block_on(|_| search::run(&args, &flags.shared, &flags.serve, format, &mut out))
        }
        Some(Command::Crawler(crawler::cli::Command::ReadDocument)) => Ok(runtime::read_from_stdin()),
        Some(Command::Crawler(command)) => {
            let settings = crawler::cli::resolve(&flags.shared, &flags.crawl)?;
            let _log = settings.shared.start_logging("agentdex");
            block_on(|_| crawler::cli::perform(command, settings)).map(|()| ExitCode::SUCCESS)
        }
        Some(Command::Mcp) => {
            let (runtime, _watchdog) = runtime::start()?;
            let ended = runtime.block_on(mcp::run(&flags.shared, &flags.serve));
            // a read of a terminal cannot be interrupted, so the end of its thread is not awaited
            runtime.shutdown_background();
            ended
        }
        None if flags.crawl.seeds.is_empty() && flags.shared.config.is_none() => {
            if std::env::args_os().len() > 1 {
                let why = "these options start nothing: name the sites to crawl with --seeds FILE, or a command; \
                           `agentdex` alone lists the commands";
                return Err(crawler::cli::UsageError(why.to_owned()).into());
            }
            cli::print_overview(&mut out)?;
            Ok(ExitCode::from(exit::USAGE))
        }
        None => block_on(|health| serve::run(&flags.shared, &flags.crawl, &flags.serve, health)),
    }
}

/// `location` are the flags of the data, which commands in the message repeat.
fn report(error: &anyhow::Error, hint: &str, format: LogFormat, location: &str) {
    let message = with_flags(&format!("{}{hint}", with_causes(error)), location);
    settings::log::report("agentdex", format, &message);
}

/// A hint for a missing database: the command that starts a crawl with these settings, and the location of the demo's database.
fn missing_hint(error: &anyhow::Error, shared: &SharedFlags, crawl: &CrawlFlags) -> Option<String> {
    let error = error.downcast_ref::<StoreError>().filter(|error| error.is_missing())?;
    let command = configuration::crawl_command(shared, crawl);
    let note = shared.variable_note().map(|note| format!(" ({note})")).unwrap_or_default();
    Some(format!(": `{command}`{}{note}", demo_hint(error).unwrap_or_default()))
}

/// Names the database of the demo, if it is below the directory without a database.
fn demo_hint(error: &StoreError) -> Option<String> {
    let StoreError::Missing { path } = error else { return None };
    let dir = path.parent()?.join(demo::DIR_NAME);
    let exists = dir.join(path.file_name()?).exists();
    exists.then(|| format!("; the database of the demo is in --data-dir {}", dir.display()))
}

/// An error with its causes. A cause that the message already quotes is left out.
fn with_causes(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |text, cause| {
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// Runs to completion on a new runtime with a watchdog.
fn block_on<T, F>(work: impl FnOnce(RuntimeHealth) -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<T>>,
{
    let (runtime, watchdog) = runtime::start()?;
    runtime.block_on(work(watchdog.health()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_database_of_the_demo_if_there_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let missing = StoreError::Missing { path: dir.path().join("agentdex.db") };
        assert_eq!(demo_hint(&missing), None);
        let demo = dir.path().join("demo");
        std::fs::create_dir(&demo).unwrap();
        std::fs::write(demo.join("agentdex.db"), []).unwrap();
        let hint = demo_hint(&missing).unwrap();
        assert_eq!(hint, format!("; the database of the demo is in --data-dir {}", demo.display()));
        let printed = |shared: &SharedFlags| {
            let missing = anyhow::Error::from(StoreError::Missing { path: dir.path().join("agentdex.db") });
            let hint = missing_hint(&missing, shared, &CrawlFlags::default()).unwrap_or_default();
            format!("{missing}{hint}")
        };
        let printed_without = printed(&SharedFlags::default());
        let expected =
            "start a crawl: `agentdex --seeds FILE --contact-email YOU`; the database of the demo is in";
        assert!(printed_without.contains(expected), "{printed_without}");
        let config = dir.path().join("agentdex.toml");
        let table = "[crawler]\nseeds = [\"starter\"]\ncontact_email = \"me@example.org\"\n";
        std::fs::write(&config, table).unwrap();
        let shared = SharedFlags { config: Some(config.clone()), ..SharedFlags::default() };
        let printed_with = printed(&shared);
        let expected = format!("start a crawl: `agentdex --config {}`; the database", config.display());
        assert!(printed_with.contains(&expected), "{printed_with}");
    }

    #[test]
    fn quotes_each_cause_once() {
        let io = || std::io::Error::other("in use");
        let address = "127.0.0.1:8080".parse().unwrap();
        let listen = anyhow::Error::new(api::ApiError::Listen { address, source: io() });
        assert_eq!(
            with_causes(&listen),
            "cannot listen on 127.0.0.1:8080: in use; choose another with --listen, or stop the program that uses it"
        );
        assert_eq!(
            with_causes(&anyhow::Error::new(io()).context("cannot write x")),
            "cannot write x: in use"
        );
    }
}
