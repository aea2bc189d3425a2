//! The pages of a claim: the line to publish with the key, and the result of the last check.

use askama::Template;

use super::frame::{Frame, Section};
use super::labels;
use super::time::Moment;
use crate::answers::claim::{ClaimAnswer, ClaimIssued};
use crate::page_context::PageContext;
use crate::text;

/// Maximum length of the result of a check, in characters.
const FINDING_CHARS_MAX: usize = 300;

/// What the owner publishes and keeps.
struct Issued {
    key: String,
    line: String,
    file_url: String,
    dns_name: String,
}

#[derive(Template)]
#[template(path = "claim.html")]
pub(crate) struct ClaimPage {
    frame: Frame,
    site: String,
    issued: Option<Issued>,
    /// Whether no check was requested, so that the first step is to get a line.
    is_unclaimed: bool,
    /// The state of the claim as a sentence.
    words: String,
    checked: Option<Moment>,
    finding: Option<String>,
    looked_for_until: Option<Moment>,
}

/// The line to publish, with the key. No other page shows the key.
pub(crate) fn issued(issued: &ClaimIssued, context: &PageContext) -> ClaimPage {
    let site = issued.site.to_string();
    ClaimPage {
        frame: frame(&site, context),
        site,
        issued: Some(Issued {
            key: issued.key.clone(),
            line: issued.file.line.clone(),
            file_url: issued.file.url.clone(),
            dns_name: issued.dns.name.clone(),
        }),
        is_unclaimed: false,
        words: String::new(),
        checked: None,
        finding: None,
        looked_for_until: None,
    }
}

/// Who owns the site, and what the last check found.
pub(crate) fn state(answer: &ClaimAnswer, context: &PageContext) -> ClaimPage {
    let (site, now) = (answer.site.to_string(), context.now);
    let words = match (&answer.owner, answer.asked_at, answer.checked_at) {
        (Some(owner), ..) => format!("Control of {site} was proved by {}.", labels::proof(owner.by)),
        (None, Some(_), None) => "The check is requested. The next visit looks for the proof.".to_owned(),
        (None, _, Some(_)) => "The proof was not found yet.".to_owned(),
        (None, None, None) => {
            format!(
                "No check was requested for {site} yet. Get a line, publish it, and request a check here."
            )
        }
    };
    ClaimPage {
        frame: frame(&site, context),
        site,
        issued: None,
        is_unclaimed: answer.owner.is_none() && answer.asked_at.is_none() && answer.checked_at.is_none(),
        words,
        checked: Moment::maybe(answer.checked_at, now),
        finding: answer.finding.as_deref().map(|finding| text::cut(finding, FINDING_CHARS_MAX)),
        looked_for_until: Moment::maybe(answer.looked_for_until.filter(|until| *until > now), now),
    }
}

fn frame(site: &str, context: &PageContext) -> Frame {
    let path = format!("/sites/{site}/claim");
    Frame::new(format!("Prove that {site} is yours"), Section::Sites).at(context, &path).unlisted()
}
