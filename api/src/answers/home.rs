//! Topics for the home page: the fields of the index, with examples.

use std::collections::HashSet;

use indexer::Hit;
use manifest::known_types;

use super::caution::Elsewhere;
use super::search;
use super::search_parameters::SearchParameters;
use super::semantic_types::NamespaceBranch;
use crate::client::Client;
use crate::index::IndexHandle;
use crate::parameters::QueryPairs;
use crate::problem::Problem;

/// Maximum number of shown fields, and of examples for each.
const TOPICS_MAX: usize = 9;
const EXAMPLES_MAX: usize = 3;
/// Shorter descriptions do not explain a capability.
const DESCRIPTION_CHARS_MIN: usize = 20;
/// Namespaces that are not a field, because they contain any kind of search or data.
const CATCH_ALL: [&str; 2] = ["data", "search"];
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
    let is_field = |branch: &&NamespaceBranch| {
        let name = branch.namespace.as_str();
        standard.contains(name) && !CATCH_ALL.contains(&name)
    };
    let shown = branches.iter().filter(is_field).take(TOPICS_MAX);
    let mut topics = Vec::new();
    for branch in shown {
        let pairs = [("namespace", branch.namespace.as_str()), ("limit", CANDIDATES)];
        let query = QueryPairs::checked(pairs.map(|(name, value)| Ok((name.to_owned(), value.to_owned()))))?;
        let request = SearchParameters::read(&query)?.request;
        let found = search::search(index, Client::on_this_machine(), request).await?;
        let examples = of_different_sites(found.answer.hits);
        if !examples.is_empty() {
            let (namespace, capabilities) = (branch.namespace.clone(), branch.capabilities);
            topics.push(Topic { namespace, capabilities, examples });
        }
    }
    Ok(topics)
}

/// Keeps the capabilities that are suitable as examples, and lists the first of each site before further ones of the same sites.
fn of_different_sites(hits: Vec<Hit>) -> Vec<Hit> {
    let mut sites = HashSet::new();
    let mut texts = HashSet::new();
    let usable = hits.into_iter().filter(is_example);
    let (first, rest): (Vec<Hit>, Vec<Hit>) = usable.partition(|hit| sites.insert(hit.site.clone()));
    let all = first.into_iter().chain(rest);
    all.filter(|hit| texts.insert(hit.description.clone())).take(EXAMPLES_MAX).collect()
}

/// Whether the capability has an explanatory description and its site is one that a person can visit.
fn is_example(hit: &Hit) -> bool {
    let description = hit.description.as_deref().unwrap_or_default();
    // RFC 6761 section 6.2: names for tests
    let is_test = hit.site.as_str().rsplit('.').next() == Some("test");
    let leads_elsewhere =
        Elsewhere::of(hit.format, &hit.native_id, hit.endpoint.as_deref(), &hit.site).is_some();
    description.chars().count() >= DESCRIPTION_CHARS_MIN
        && !is_test
        && !leads_elsewhere
        && !hit.addresses_reader
}
