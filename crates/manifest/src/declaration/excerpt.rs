//! The part of a declaration that is stored separately from its manifest, so that merging and indexing do not read the manifest.

use serde::{Deserialize, Serialize};

use super::statement::Statement;
use crate::entry;
use crate::model::{
    AuthScheme, Capability, CapabilityKind, Cost, Manifest, Payment, PolicyChoice, Publisher, SourceKind,
    Tristate,
};
use crate::text::capped;

/// Maximum number of characters of texts that are not compared. Search indexes this much of the description of a declaration that is not
/// the leading one.
const TEXT_CHARS_MAX: usize = 500;
/// Maximum number of characters of an address or a word in a fact.
const WORD_CHARS_MAX: usize = 200;
/// Maximum number of bytes of each list of words: scopes, tags, types.
const WORDS_BYTES_MAX: usize = 4 * 1024;

/// A compact form of a declaration: its facts and its search terms.
///
/// Its JSON takes at most 64 KiB, if its addresses have the maximum length; usually it takes less than 1 KiB.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Excerpt {
    pub statement: Statement,
    pub key: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The first 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub kind: CapabilityKind,
    /// Names of its types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub semantic_types: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Identifier of the declaration as an entry of a catalog, unless the publisher gave one. See [`Self::urn`].
    #[serde(rename = "urn")]
    pub minted_urn: String,
    pub media_type: String,
    /// Name that the manifest states for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_language: Option<String>,
    #[serde(default)]
    pub source: SourceKind,
    /// The training policy of the manifest itself.
    #[serde(default)]
    pub training: PolicyChoice,
    /// [`payment_schemes`] of the declaration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub payment_schemes: Vec<String>,
}

impl Excerpt {
    pub fn of(manifest: &Manifest, capability: &Capability) -> Self {
        // the stored facts of a document do not depend on who publishes it
        let entry = entry::of_capability(manifest, capability, Publisher::Unknown);
        let types = capability.semantic_types.iter().map(|kind| kind.name.clone());
        Self {
            statement: bounded(Statement::of(manifest, capability)),
            key: capability.key.clone(),
            name: capability.name.clone(),
            title: capability.title.clone(),
            description: Self::description_of(capability).map(str::to_owned),
            kind: capability.kind,
            semantic_types: first_words(types.collect()),
            tags: first_words(capability.tags.clone()),
            method: capability.invocation.method.clone(),
            minted_urn: entry.identifier.urn,
            media_type: word(entry.media_type.into_owned()),
            manifest_name: manifest.name.clone(),
            manifest_language: manifest.language.clone().map(word),
            source: manifest.source.kind,
            training: manifest.policies.training,
            payment_schemes: first_words(payment_schemes(manifest, capability)),
        }
    }

    /// The description of a capability, truncated to the length that an excerpt keeps.
    pub fn description_of(capability: &Capability) -> Option<&str> {
        capability.description.as_deref().map(|text| capped(text, TEXT_CHARS_MAX))
    }

    /// Identifier of the declaration as an entry of a catalog with this publisher.
    pub fn urn(&self, of: Publisher) -> &str {
        let Statement { format, url, native_id, .. } = &self.statement;
        entry::published(*format, url, native_id, of).unwrap_or(&self.minted_urn)
    }
}

/// The schemes of payment requirements in x402 v2.
const SCHEMES_OF_X402: [&str; 2] = ["exact", "upto"];

/// The distinct payment schemes of a capability in lower case, with x402 for those that x402 defines, or those of its manifest if it names none. Empty for a free capability,
/// and for one that states no payment while others of its manifest do.
pub fn payment_schemes(manifest: &Manifest, capability: &Capability) -> Vec<String> {
    // A call without credentials and without a price is not paid, even if others are.
    let is_open = capability.auth.required == Tristate::No
        && capability.price.is_none()
        && !capability.auth.schemes.contains(&AuthScheme::Payment);
    if is_open || capability.price.as_ref().and_then(Payment::cost) == Some(Cost::Free) {
        return Vec::new();
    }
    if manifest.payments.is_empty() && capability.price.is_none() {
        return Vec::new();
    }
    let states = |call: &Capability| {
        call.auth.schemes.contains(&AuthScheme::Payment)
            || call.price.as_ref().is_some_and(|price| price.cost() != Some(Cost::Free))
    };
    // If some calls state that they are paid, the others are not.
    if !states(capability) && manifest.capabilities.iter().any(states) {
        return Vec::new();
    }
    let own = capability.price.as_ref().filter(|price| price.scheme.is_some());
    let terms = own.map_or(manifest.payments.as_slice(), std::slice::from_ref);
    let mut schemes: Vec<String> =
        terms.iter().filter_map(|terms| terms.scheme.as_deref()).map(str::to_lowercase).collect();
    // `scheme` of an x402 requirement states how the amount is determined
    if schemes.iter().any(|scheme| SCHEMES_OF_X402.contains(&scheme.as_str())) {
        schemes.push("x402".to_owned());
    }
    schemes.sort_unstable();
    schemes.dedup();
    schemes
}

/// Truncates the long texts and lists of a statement.
fn bounded(mut statement: Statement) -> Statement {
    statement.auth.scopes = first_words(statement.auth.scopes);
    statement.safety.message = statement.safety.message.map(|text| capped(&text, TEXT_CHARS_MAX).to_owned());
    statement.auth.session_url.take_if(|url| url.len() > crate::name::URL_BYTES_MAX);
    if let Some(identity) = &mut statement.auth.agent_identity {
        identity.format = identity.format.take().map(word);
    }
    if let Some(price) = &mut statement.price {
        let terms =
            [&mut price.scheme, &mut price.network, &mut price.asset, &mut price.price, &mut price.address];
        let texts = terms.into_iter().chain([&mut price.plan, &mut price.model]);
        for text in texts {
            *text = text.take().map(word);
        }
    }
    if let Some(limit) = &mut statement.rate_limit {
        limit.tier_url.take_if(|url| url.len() > crate::name::URL_BYTES_MAX);
        limit.text = limit.text.take().map(word);
    }
    statement
}

fn word(text: String) -> String {
    if text.len() <= WORD_CHARS_MAX { text } else { capped(&text, WORD_CHARS_MAX).to_owned() }
}

/// The first words, up to a number of bytes.
fn first_words(mut words: Vec<String>) -> Vec<String> {
    let mut bytes = 0;
    let fits = |word: &&String| {
        bytes += word.len();
        bytes <= WORDS_BYTES_MAX
    };
    let count = words.iter().take_while(fits).count();
    words.truncate(count);
    words
}
