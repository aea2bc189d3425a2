//! `agentdex completions` and `agentdex man`: shell completions and manual pages for packages.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{CommandFactory as _, ValueEnum};
use clap_complete::Shell;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Program {
    Agentdex,
    Crawler,
    Indexer,
    Api,
}

impl Program {
    const ALL: [Self; 4] = [Self::Agentdex, Self::Crawler, Self::Indexer, Self::Api];

    /// The command line of a program; `agentdex` is the one of this program.
    fn command(self, agentdex: &clap::Command) -> clap::Command {
        match self {
            Self::Agentdex => agentdex.clone(),
            Self::Crawler => crawler::cli::command(),
            Self::Indexer => indexer::cli::Arguments::command(),
            Self::Api => api::cli::Arguments::command(),
        }
    }

    /// The name under which packages install the program. Three of the four names are too general for a shared path.
    fn installed(self, prefix: &str) -> String {
        match self {
            Self::Agentdex => "agentdex".to_owned(),
            Self::Crawler => format!("{prefix}crawler"),
            Self::Indexer => format!("{prefix}indexer"),
            Self::Api => format!("{prefix}api"),
        }
    }
}

/// Print completions for a shell
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    shell: Shell,
    /// The program to complete
    #[arg(long, value_enum, default_value_t = Program::Agentdex)]
    program: Program,
    /// Prefix of the names of the other three programs, as the package installs them
    #[arg(long, default_value = "")]
    prefix: String,
}

/// Write the manual pages of all programs into a directory
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Directory, which is created if it does not exist
    directory: PathBuf,
    /// Prefix of the names of the other three programs, as the package installs them
    #[arg(long, default_value = "")]
    prefix: String,
}

pub(crate) fn completions(
    args: &CompletionsArgs,
    agentdex: &clap::Command,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let name = args.program.installed(&args.prefix);
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut args.program.command(agentdex), name, &mut text);
    match out.write_all(&text).and_then(|()| out.flush()) {
        // the reader of the pipe has closed it
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

pub(crate) fn pages(args: &ManArgs, agentdex: &clap::Command) -> anyhow::Result<()> {
    let dir = &args.directory;
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    for program in Program::ALL {
        let command = named(program.command(agentdex), program.installed(&args.prefix));
        clap_mangen::generate_to(command, dir)
            .with_context(|| format!("cannot write to {}", dir.display()))?;
    }
    Ok(())
}

/// The command under its installed name.
fn named(command: clap::Command, name: String) -> clap::Command {
    command.display_name(name.clone()).bin_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_completions_for_every_shell() {
        for program in Program::ALL {
            for shell in Shell::value_variants() {
                let args = CompletionsArgs { shell: *shell, program, prefix: "agentdex-".to_owned() };
                let mut out = Vec::new();
                completions(&args, &crate::cli::command(), &mut out).unwrap();
                let text = String::from_utf8(out).unwrap();
                assert!(text.contains(&program.installed("agentdex-")), "{shell}: {program:?}");
                assert!(text.contains("database-url"), "{shell}: {program:?}");
            }
        }
    }

    #[test]
    fn a_closed_pipe_ends_completions_without_an_error() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let args = CompletionsArgs { shell: Shell::Bash, program: Program::Agentdex, prefix: String::new() };
        completions(&args, &crate::cli::command(), &mut Closed).unwrap();
    }

    #[test]
    fn every_command_has_a_page() {
        let dir = tempfile::tempdir().unwrap();
        let args = ManArgs { directory: dir.path().to_owned(), prefix: "agentdex-".to_owned() };
        pages(&args, &crate::cli::command()).unwrap();
        for page in [
            "agentdex.1",
            "agentdex-doctor.1",
            "agentdex-crawler.1",
            "agentdex-crawler-explain.1",
            "agentdex-api.1",
        ] {
            let text = std::fs::read_to_string(dir.path().join(page))
                .unwrap_or_else(|error| panic!("{page}: {error}"));
            assert!(text.contains(".SH SYNOPSIS"), "{page}");
        }
    }
}
