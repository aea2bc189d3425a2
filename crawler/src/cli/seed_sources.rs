//! Parses the sources that `--seeds` names: files, stdin, URLs of lists, and registries.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use manifest::ManifestUrl;

use super::given::Given;
use super::settings::UsageError;
use crate::ard_registry;
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

/// A registry with words (`?q=`) is searched by `POST /search`, which has no other parameter. Without words, its query is sent with
/// `GET /agents`.
fn ard_registry(name: &str, url: ManifestUrl) -> Result<SeedSource, UsageError> {
    let keys: Vec<String> = url.as_url().query_pairs().map(|(key, _)| key.into_owned()).collect();
    let is_search = keys.iter().any(|key| key == ard_registry::WORDS);
    if let Some(other) = keys.iter().find(|key| is_search && *key != ard_registry::WORDS) {
        let why = format!(
            "\"q\" searches the registry and is sent alone: leave out \"{other}\", or leave out \"q\" to list all agents"
        );
        return Err(UsageError(format!("{name}: ard:{url}: {why}")));
    }
    if is_search && keys.len() > 1 {
        return Err(UsageError(format!(
            "{name}: ard:{url}: \"q\" is given twice: name each search as a source"
        )));
    }
    Ok(SeedSource::Registry(url))
}

pub(super) fn seed_source(name: &str, path: &Path) -> Result<SeedSource, UsageError> {
    let text = path.to_str().unwrap_or_default();
    let url = |text: &str| ManifestUrl::parse(text).map_err(|error| UsageError(format!("{name}: {error}")));
    if let Some(registry) = text.strip_prefix("mcp:") {
        return url(registry).map(SeedSource::McpRegistry);
    }
    match text.strip_prefix("ard:") {
        Some(registry) => ard_registry(name, url(registry)?),
        None if text == "-" => Ok(SeedSource::Stdin),
        None if text == STARTER && !path.exists() => Ok(SeedSource::Text {
            name: "the starter list of agentdex".to_owned(),
            text: include_str!("../../../deploy/seeds/starter.txt").to_owned(),
        }),
        None if text.contains("://") => Ok(SeedSource::Url(url(text)?)),
        None => Ok(SeedSource::File(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_search_are_the_only_parameter() {
        let source = |text: &str| seed_source("--seeds", Path::new(text));
        for url in [
            "https://r.example/agents?q=x",
            "https://r.example/agents?filter=a&pageSize=7",
            "https://r.example/",
        ] {
            let expected = SeedSource::Registry(ManifestUrl::parse(url).unwrap());
            assert_eq!(source(&format!("ard:{url}")), Ok(expected));
        }
        let refused =
            |query: &str| source(&format!("ard:https://r.example/agents?{query}")).unwrap_err().to_string();
        for query in ["q=x&pageSize=7", "filter=a&q=x"] {
            assert!(refused(query).contains("leave out \"q\" to list all agents"), "{}", refused(query));
        }
        assert!(refused("q=x&q=y").contains("given twice"), "{}", refused("q=x&q=y"));
    }
}
