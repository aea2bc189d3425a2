//! The page after a report was sent, and the form that sends one.

use askama::Template;
use manifest::SiteName;
use policy::AbuseReason;

use super::frame::{Frame, Section};
use super::labels;

/// Reasons that the form offers: slug and label.
pub(super) fn reasons() -> Vec<(&'static str, &'static str)> {
    AbuseReason::ALL.iter().map(|reason| (reason.as_str(), labels::abuse_reason(*reason))).collect()
}

#[derive(Template)]
#[template(path = "reported.html")]
pub(crate) struct ReportedPage {
    frame: Frame,
    site: String,
    /// Whether the report was stored now; false if the same report was stored before.
    is_new: bool,
}

pub(crate) fn page(site: &SiteName, is_new: bool) -> ReportedPage {
    let frame = Frame::new("Report received", Section::None).unlisted();
    ReportedPage { frame, site: site.to_string(), is_new }
}
