//! Schemas of the sites that rank lower as spam.

use utoipa::ToSchema;

use super::schemas::SpamReasonWord;

/// A site with capabilities that rank lower because they are spam.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes indexer::SpamSite")]
pub(crate) struct SpamSite {
    site: String,
    causes: Vec<SpamCause>,
    /// Capabilities whose own document makes them spam; 0 if the site as a whole is.
    capabilities: u64,
}

/// Why a site is spam.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes indexer::SpamCause")]
pub(crate) struct SpamCause {
    #[schema(inline)]
    reason: SpamReasonWord,
    /// The site that it imitates, or the sibling site whose rank is unchanged.
    of: Option<String>,
}
