//! What others state about a site, and where its own declarations contradict each other, in words.

use super::links;
use super::site_state::{FINDINGS_MAX, URL_CHARS_MAX, WORDS_CHARS_MAX};
use crate::answers::declarations::CapabilityContradiction;
use crate::answers::listed_agents::ListedAgent;
use crate::answers::listed_by::{ListedBy, ListingContradiction, ListingDifference};
use crate::answers::site::SiteAnswer;
use crate::text;

/// Maximum number of displayed listings of other registries; the JSON response has more.
const LISTINGS_MAX: usize = 10;

/// A contradiction between declarations of one capability.
pub(super) struct Contradiction {
    pub(super) href: String,
    pub(super) text: String,
}

/// An entry of another registry about the site.
pub(super) struct Listing {
    pub(super) registry: String,
    pub(super) href: Option<String>,
    pub(super) identifier: String,
    /// `version: 1.0, but 2.0 here`, or another registry in place of `here`.
    pub(super) contradictions: Vec<String>,
}

/// `price: 5 EUR or 7 EUR; 7 EUR is used`.
fn contradiction_words(found: &manifest::declaration::Contradiction) -> String {
    let stated: Vec<&str> = found.stated.iter().map(|stated| stated.value.as_str()).collect();
    let of = found.parameter.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    let fact = found.fact.as_str().replace('_', " ");
    format!("{fact}{of}: {}; {} is used", stated.join(" or "), found.used)
}

/// An agent or server that only other registries list.
pub(super) struct ListedOnly {
    pub(super) name: String,
    pub(super) url: Option<String>,
    pub(super) listings: Vec<Listing>,
}

/// The first agents and servers that only other registries list.
pub(super) fn listed_only(answer: &SiteAnswer) -> Vec<ListedOnly> {
    let shown = answer.listed_agents.iter().take(LISTINGS_MAX);
    let view = |agent: &ListedAgent| ListedOnly {
        name: text::cut(agent.name.as_deref().unwrap_or(&agent.identifier), WORDS_CHARS_MAX),
        url: agent.url.as_deref().map(|url| text::cut(url, URL_CHARS_MAX)),
        listings: listings(&agent.listed_by),
    };
    shown.map(view).collect()
}

/// The entries of other registries about what a site declares.
pub(super) fn listings_of_declared(answer: &SiteAnswer) -> Vec<Listing> {
    let is_listed_only =
        |listed: &&ListedBy| answer.listed_agents.iter().any(|agent| agent.identifier == listed.identifier);
    let declared = answer.listed_by.iter().filter(|listed| !is_listed_only(listed));
    declared.take(LISTINGS_MAX).map(listing).collect()
}

/// The first entries of other registries.
pub(super) fn listings(listed_by: &[ListedBy]) -> Vec<Listing> {
    listed_by.iter().take(LISTINGS_MAX).map(listing).collect()
}

fn listing(listed: &ListedBy) -> Listing {
    let of_site = listed.contradictions.iter().map(ListingContradiction::in_words);
    let words = of_site.chain(listed.differences.iter().map(ListingDifference::in_words));
    Listing {
        registry: text::cut(&listed.registry, URL_CHARS_MAX),
        href: links::harmless(&listed.registry),
        identifier: text::cut(&listed.identifier, WORDS_CHARS_MAX),
        contradictions: words.map(|words| text::cut(&words, WORDS_CHARS_MAX)).collect(),
    }
}

/// The first contradictions between the declarations of the site.
pub(super) fn contradictions(answer: &SiteAnswer) -> Vec<Contradiction> {
    let shown = answer.contradictions.iter().take(FINDINGS_MAX);
    let view = |found: &CapabilityContradiction| Contradiction {
        href: links::capability(&found.capability_id),
        text: text::cut(&contradiction_words(&found.contradiction), WORDS_CHARS_MAX),
    };
    shown.map(view).collect()
}
