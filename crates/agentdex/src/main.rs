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

use clap::Parser as _;

use crate::cli::{Command, Flags};
use crate::serve::Afterwards;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let flags = Flags::parse();
    match run(flags) {
        Ok(code) => code,
        Err(error) => {
            // Nothing is left to do where even stderr is closed.
            drop(writeln!(std::io::stderr(), "agentdex: {error:#}"));
            ExitCode::from(if error.is::<crawler::cli::UsageError>() { 2 } else { 1 })
        }
    }
}

fn run(flags: Flags) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    match flags.command {
        Some(Command::Validate(args)) => {
            let passes = match args.address()? {
                Some(url) => {
                    let asked = validate::ask(&url, &flags.shared, &flags.crawl);
                    validate::run(&args, &runtime()?.block_on(asked)?, &mut out)?
                }
                None => validate::run(&args, &args.read()?, &mut out)?,
            };
            Ok(ExitCode::from(u8::from(!passes)))
        }
        Some(Command::Config(command)) => configuration::run(command, &flags.shared, &flags.crawl, &mut out),
        Some(Command::Doctor(args)) => {
            runtime()?.block_on(doctor::run(&args, &flags.shared, &flags.crawl, &mut out))
        }
        Some(Command::Probe(args)) => probe::run(&args).map(|()| ExitCode::SUCCESS),
        Some(Command::Completions(args)) => {
            manual::completions(&args, &mut out);
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Man(args)) => manual::pages(&args).map(|()| ExitCode::SUCCESS),
        Some(Command::Db(args)) => runtime()?.block_on(db::run(&args, &flags.shared, &mut out)),
        Some(Command::Feedback(args)) => runtime()?.block_on(feedback::run(&args, &flags.shared, &mut out)),
        Some(Command::Demo) => runtime()?.block_on(demo::run(&flags.shared, &flags.crawl, &flags.serve)),
        Some(Command::Mcp) => runtime()?.block_on(mcp::run(&flags.shared, &flags.serve)),
        None if flags.crawl.seeds.is_empty() && flags.shared.config.is_none() => {
            cli::print_help(&mut out)?;
            Ok(ExitCode::from(2))
        }
        None => runtime()?.block_on(serve::run(&flags.shared, &flags.crawl, &flags.serve, Afterwards::Rest)),
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}
