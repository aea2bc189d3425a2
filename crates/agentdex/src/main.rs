//! The front door on one machine: crawler, indexer and interface in one process on embedded storage. Wiring only: what is
//! typed is parsed here, everything that is done is done by the three libraries.

mod cli;
mod configuration;
mod db;
mod demo;
mod doctor;
mod feedback;
mod manual;
mod mcp;
mod probe;
mod serve;
mod validate;

use std::io::Write as _;
use std::process::ExitCode;

use runtime::RuntimeHealth;

use crate::cli::{Command, Flags};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let flags = cli::parse();
    match run(flags) {
        Ok(code) => code,
        Err(error) => {
            // Nothing is left to do where even stderr is closed.
            drop(writeln!(std::io::stderr(), "agentdex: {}", settings::escape::lines(&told(&error))));
            ExitCode::from(if is_usage(&error) { 2 } else { 1 })
        }
    }
}

fn run(flags: Flags) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    match flags.command {
        Some(Command::Validate(mut args)) => {
            args.take_format(flags.crawl.format);
            let passes = match args.address()? {
                Some(url) => {
                    let asked = validate::ask(&url, &flags.shared, &flags.crawl);
                    validate::run(&args, &block_on(|_| asked)?, &mut out)?
                }
                None => validate::run(&args, &args.read()?, &mut out)?,
            };
            Ok(ExitCode::from(u8::from(!passes)))
        }
        Some(Command::Config(command)) => configuration::run(command, &flags.shared, &flags.crawl, &mut out),
        Some(Command::Doctor(args)) => {
            block_on(|_| doctor::run(&args, &flags.shared, &flags.crawl, &mut out))
        }
        Some(Command::Probe(args)) => probe::run(&args).map(|()| ExitCode::SUCCESS),
        Some(Command::Completions(args)) => {
            manual::completions(&args, &mut out);
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Man(args)) => manual::pages(&args).map(|()| ExitCode::SUCCESS),
        Some(Command::Db(args)) => block_on(|_| db::run(&args, &flags.shared, &mut out)),
        Some(Command::Feedback(args)) => block_on(|_| feedback::run(&args, &flags.shared, &mut out)),
        Some(Command::Demo) => {
            block_on(|health| demo::run(&flags.shared, &flags.crawl, &flags.serve, health))
        }
        Some(Command::ReadDocument) => {
            crawler::read_from_stdin()?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Mcp) => block_on(|_| mcp::run(&flags.shared, &flags.serve)),
        None if flags.crawl.seeds.is_empty() && flags.shared.config.is_none() => {
            cli::print_help(&mut out)?;
            Ok(ExitCode::from(2))
        }
        None => block_on(|health| serve::run(&flags.shared, &flags.crawl, &flags.serve, health)),
    }
}

/// Whether the one who typed or wrote it can mend it.
fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<crawler::cli::UsageError>()
        || error.downcast_ref::<crawler::CrawlError>().is_some_and(crawler::CrawlError::is_usage)
}

/// An error with its causes. Many of our errors name their cause in their own sentence: nothing is said twice.
fn told(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |told, cause| {
        if told.contains(&cause) { told } else { format!("{told}: {cause}") }
    })
}

/// Runs to the end on a runtime of its own, with the watchdog beside it.
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
    fn causes_are_told_once() {
        let io = || std::io::Error::other("in use");
        let address = "127.0.0.1:8080".parse().unwrap();
        let listen = anyhow::Error::new(api::ApiError::Listen { address, source: io() });
        assert_eq!(
            told(&listen),
            "cannot listen on 127.0.0.1:8080: in use; choose another with --listen, or stop the program that uses it"
        );
        assert_eq!(told(&anyhow::Error::new(io()).context("cannot write x")), "cannot write x: in use");
    }
}
