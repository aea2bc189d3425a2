//! Topics for the home page: the fields of the index, with examples.

use std::collections::HashSet;

use indexer::Hit;
use manifest::known_types;

use super::search;
use super::search_parameters::SearchParameters;
use super::semantic_types::NamespaceBranch;
use crate::client::Client;
use crate::index::IndexHandle;
use crate::parameters::QueryPairs;
use crate::problem::Problem;

/// Maximum number of fields that are shown, and examples of each.
const TOPICS_MAX: usize = 9;
const EXAMPLES_MAX: usize = 3;
/// Minimum number of letters of a meaningful name.
const NAME_LETTERS_MIN: usize = 4;
/// Capabilities among which the examples are chosen, so that they can be of different sites.
const CANDIDATES: &str = "20";

/// One field with examples.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) namespace: String,
    pub(crate) capabilities: u64,
    pub(crate) examples: Vec<Hit>,
}

/// The namespaces of the vocabulary that ATP and this index define.
pub(crate) fn standard_namespaces() -> HashSet<&'static str> {
    known_types().filter_map(|(name, _)| name.split_once(':').map(|(namespace, _)| namespace)).collect()
}

/// The largest standard fields, each with examples of different sites.
pub(crate) async fn topics(index: &IndexHandle, branches: &[NamespaceBranch]) -> Result<Vec<Topic>, Problem> {
    let standard = standard_namespaces();
    let shown =
        branches.iter().filter(|branch| standard.contains(branch.namespace.as_str())).take(TOPICS_MAX);
    let mut topics = Vec::new();
    for branch in shown {
        let pairs = [("namespace", branch.namespace.as_str()), ("limit", CANDIDATES)];
        let query = QueryPairs::checked(pairs.map(|(name, value)| Ok((name.to_owned(), value.to_owned()))))?;
        let request = SearchParameters::read(&query)?.request;
        let found = search::search(index, Client::on_this_machine(), request).await?;
        topics.push(Topic {
            namespace: branch.namespace.clone(),
            capabilities: branch.capabilities,
            examples: of_different_sites(found.answer.hits),
        });
    }
    Ok(topics)
}

/// The first capability of each site, then further ones.
fn of_different_sites(hits: Vec<Hit>) -> Vec<Hit> {
    let mut seen = HashSet::new();
    let mut names = HashSet::new();
    let (first, rest): (Vec<Hit>, Vec<Hit>) = hits.into_iter().partition(|hit| seen.insert(hit.site.clone()));
    let is_word = |hit: &Hit| hit.name.chars().filter(|c| c.is_alphabetic()).count() >= NAME_LETTERS_MIN;
    let distinct = first.into_iter().chain(rest).filter(is_word);
    let mut distinct: Vec<Hit> = distinct.filter(|hit| names.insert(hit.name.to_lowercase())).collect();
    // A single word such as "Detail" is not informative.
    distinct.sort_by_key(|hit| words_of(&hit.name) < 2);
    distinct.truncate(EXAMPLES_MAX);
    distinct
}

/// The words of a name, whether they are separated or begin with a capital letter.
fn words_of(name: &str) -> usize {
    let letters = || name.chars().chain([' ']);
    let begins = |(before, letter): &(char, char)| {
        letter.is_alphanumeric()
            && (!before.is_alphanumeric() || (before.is_lowercase() && letter.is_uppercase()))
    };
    [' '].into_iter().chain(letters()).zip(letters()).filter(begins).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_names_are_counted() {
        for (name, words) in [
            ("Detail", 1),
            ("cart.remove", 2),
            ("events_search", 2),
            ("getForecast", 2),
            ("Plan a trip", 3),
            ("", 0),
        ] {
            assert_eq!(words_of(name), words, "{name}");
        }
    }
}
