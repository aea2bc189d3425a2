//! Topics for the home page: the fields of the index, with examples, and searches to begin with.

use std::collections::HashSet;

use indexer::{Hit, SearchAnswer};
use manifest::known_types;
use manifest::model::TypeSource;

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

/// Maximum number of example searches, and maximum length of one that is the name of a capability, in characters.
const SEARCHES_MAX: usize = 6;
const SEARCH_CHARS_MAX: usize = 30;
/// Example searches; those that find something in the index are shown. A test checks that each finds the right first result in the demo.
pub const EXAMPLES: [&str; 6] =
    ["book flight", "weather", "reserve a table", "track my parcel", "translate text", "add to cart"];

/// The fields of the index, and searches that find something in it.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    pub(crate) fields: Vec<Topic>,
    pub(crate) searches: Vec<String>,
}

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
pub(crate) async fn topics(index: &IndexHandle, branches: &[NamespaceBranch]) -> Result<Topics, Problem> {
    let standard = standard_namespaces();
    let is_field = |branch: &&NamespaceBranch| {
        let name = branch.namespace.as_str();
        standard.contains(name) && !CATCH_ALL.contains(&name)
    };
    let shown = branches.iter().filter(is_field).take(TOPICS_MAX);
    let mut fields = Vec::new();
    for branch in shown {
        let found = found(index, [("namespace", branch.namespace.as_str()), ("limit", CANDIDATES)]).await?;
        let examples = of_different_sites(found.hits, &branch.namespace);
        if !examples.is_empty() {
            let (namespace, capabilities) = (branch.namespace.clone(), branch.capabilities);
            fields.push(Topic { namespace, capabilities, examples });
        }
    }
    Ok(Topics { searches: searches(index, &fields).await?, fields })
}

/// The examples that find something in this index, and names of its capabilities, each of another field.
async fn searches(index: &IndexHandle, fields: &[Topic]) -> Result<Vec<String>, Problem> {
    let mut searches: Vec<String> = Vec::new();
    for text in EXAMPLES {
        if found(index, [("q", text), ("limit", "1")]).await?.relevant.is_some_and(|relevant| relevant > 0) {
            searches.push(text.to_owned());
        }
    }
    let names = fields.iter().filter_map(|field| field.examples.first()).map(|hit| hit.name.to_lowercase());
    for name in names.filter(|name| name.chars().count() <= SEARCH_CHARS_MAX) {
        if searches.len() < SEARCHES_MAX && !searches.contains(&name) {
            searches.push(name);
        }
    }
    Ok(searches)
}

async fn found<const N: usize>(
    index: &IndexHandle,
    pairs: [(&str, &str); N],
) -> Result<SearchAnswer, Problem> {
    let query = QueryPairs::checked(pairs.map(|(name, value)| Ok((name.to_owned(), value.to_owned()))))?;
    let request = SearchParameters::read(&query)?.request;
    Ok(search::search(index, Client::on_this_machine(), request).await?.answer)
}

/// Keeps the capabilities that are suitable as examples of a namespace, and lists the first of each site before further ones of the same
/// sites. Declared types come before inferred ones.
fn of_different_sites(hits: Vec<Hit>, namespace: &str) -> Vec<Hit> {
    let mut sites = HashSet::new();
    let mut texts = HashSet::new();
    let mut usable: Vec<Hit> = hits.into_iter().filter(is_example).collect();
    usable.sort_by_key(|hit| (undoes(hit), !declares(hit, namespace)));
    let usable = usable.into_iter();
    let (first, rest): (Vec<Hit>, Vec<Hit>) = usable.partition(|hit| sites.insert(hit.site.clone()));
    let all = first.into_iter().chain(rest);
    all.filter(|hit| texts.insert(hit.description.clone())).take(EXAMPLES_MAX).collect()
}

/// Whether the publisher declares a type of the namespace.
fn declares(hit: &Hit, namespace: &str) -> bool {
    let is_of = |name: &str| name.split_once(':').is_some_and(|(of, _)| of == namespace);
    hit.semantic_types.iter().any(|known| known.source == TypeSource::Declared && is_of(&known.name))
}

/// Whether a capability ends what another one began: people ask for the other one first.
fn undoes(hit: &Hit) -> bool {
    let verb = hit.name.split_whitespace().next().unwrap_or_default().to_lowercase();
    let is_of_type = |name: &str| ["cancel", "remove", "refund"].iter().any(|verb| name.ends_with(verb));
    matches!(verb.as_str(), "cancel" | "delete" | "remove" | "return" | "undo")
        || hit.semantic_types.iter().any(|known| is_of_type(&known.name))
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
