//! `agentdex embedder check`: what a directory is as a sentence model, before an operator configures it.

use std::io::Write;
use std::path::PathBuf;

use clap::Subcommand;
use indexer::vectors::{EmbedderReport, check_embedder};
use settings::escape;

#[derive(Debug, Subcommand)]
pub(crate) enum EmbedderCommand {
    /// Report the kind, the size, the licence and the speed of a model, and its missing files; exit with 1 if it cannot be used
    Check {
        /// The directory of the model, as for --embedder of other commands
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

pub(crate) fn run(command: &EmbedderCommand, out: &mut impl Write) -> anyhow::Result<()> {
    let EmbedderCommand::Check { dir } = command;
    print(&check_embedder(dir)?, out)
}

fn print(report: &EmbedderReport, out: &mut impl Write) -> anyhow::Result<()> {
    for (label, text) in &report.rows {
        writeln!(out, "{label:<8} {}", escape::line(text))?;
    }
    match &report.problem {
        Some(problem) => Err(anyhow::anyhow!("{}", escape::line(problem))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_the_rows_and_fails_with_the_problem() {
        let rows = vec![("model", "bert\u{1b}[31m".to_owned()), ("missing", "tokenizer.json".to_owned())];
        let mut out = Vec::new();
        let report = EmbedderReport { rows, problem: Some("/m has no tokenizer.json".to_owned()) };
        let error = print(&report, &mut out).unwrap_err().to_string();
        assert_eq!(error, "/m has no tokenizer.json");
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("model    bert") && text.ends_with("missing  tokenizer.json\n"), "{text}");
        assert!(!text.contains('\u{1b}'), "control characters are escaped: {text}");
        print(&EmbedderReport { problem: None, ..report }, &mut Vec::new()).unwrap();
    }

    #[cfg(not(feature = "embedder"))]
    #[test]
    fn names_the_build_option_without_the_feature() {
        let command = EmbedderCommand::Check { dir: PathBuf::from("/models/minilm") };
        let error = run(&command, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("--features embedder"), "{error}");
    }
}
