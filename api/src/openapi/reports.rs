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
