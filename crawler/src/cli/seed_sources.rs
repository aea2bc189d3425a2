//! Parses the sources that `--seeds` names: files, stdin, URLs of lists, and registries.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use manifest::ManifestUrl;

use super::given::Given;
use super::settings::UsageError;
use crate::config::SeedSource;

/// The name of the shipped list of seeds, unless a file has this name.
const STARTER: &str = "starter";

/// The sources that `--seeds` or `seeds` of the configuration file names.
pub(super) fn seed_sources(seeds: &Given<&[PathBuf]>) -> Result<Vec<SeedSource>, UsageError> {
    let (name, paths) = (&seeds.name, seeds.value.unwrap_or_default());
    let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
    if paths.iter().filter(|path| is_stdin(path)).count() > 1 {
        return Err(UsageError(format!("{name} names stdin (-) more than once")));
    }
    if paths.iter().any(is_stdin) && std::io::stdin().is_terminal() {
        let why = "reads stdin (-), which is a terminal: pipe a list into it";
        return Err(UsageError(format!("{name} {why}")));
    }
    paths.iter().map(|path| seed_source(name, path)).collect()
}

pub(super) fn seed_source(name: &str, path: &Path) -> Result<SeedSource, UsageError> {
    let text = path.to_str().unwrap_or_default();
    let url = |text: &str| ManifestUrl::parse(text).map_err(|error| UsageError(format!("{name}: {error}")));
    if let Some(registry) = text.strip_prefix("mcp:") {
        return url(registry).map(SeedSource::McpRegistry);
    }
    match text.strip_prefix("ard:") {
        Some(registry) => Ok(SeedSource::Registry(url(registry)?)),
        None if text == "-" => Ok(SeedSource::Stdin),
        None if text == STARTER && !path.exists() => Ok(SeedSource::Text {
            name: "the starter list of agentdex".to_owned(),
            text: include_str!("../../../deploy/seeds/starter.txt").to_owned(),
        }),
        None if text.contains("://") => Ok(SeedSource::Url(url(text)?)),
        None => Ok(SeedSource::File(path.to_owned())),
    }
}
