//! Schemas of reports about sites.

use utoipa::ToSchema;

use super::schemas::AbuseReasonWord;

/// The number of reports about a site.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes store::ReportedSite")]
pub(crate) struct ReportedSite {
    site: String,
    reports: u64,
    /// When the last report arrived.
    latest_at: chrono::DateTime<chrono::Utc>,
    is_suspended: bool,
}

/// A text of the owner of a site or of the operator.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes store::DatedText")]
pub(crate) struct DatedText {
    text: String,
    at: chrono::DateTime<chrono::Utc>,
}

/// A suspended site with the objection of its owner.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes store::SuspendedSite")]
pub(crate) struct ObjectionLine {
    site: String,
    #[schema(inline)]
    reason: AbuseReasonWord,
    /// The explanation of the operator; may be empty.
    note: String,
    /// Documents and capabilities that the operator named; absent if there are none.
    places: Option<Vec<String>>,
    /// When it was suspended.
    at: chrono::DateTime<chrono::Utc>,
    objection: Option<DatedText>,
    /// The answer of the operator to this objection.
    answer: Option<DatedText>,
}

/// What a client reports about a site.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes store::ReportLine")]
pub(crate) struct ReportLine {
    id: i64,
    at: chrono::DateTime<chrono::Utc>,
    site: String,
    /// The reported capability; null if the report is about the whole site.
    capability: Option<String>,
    #[schema(inline)]
    reason: AbuseReasonWord,
    /// The words of the client; may be empty.
    note: String,
}
