//! What each peer contributed to an answer, as a header, because ARD permits no additional members in the body.
//!
//! A list of structured fields (RFC 9651 §3.1): the address of each peer with parameters.

use std::fmt::Write as _;

use axum::http::{HeaderName, HeaderValue};

use super::{Fault, Outcome, PeerAnswer, Skip};

/// `"https://finder.example/";status=answered;results=3;took_ms=120, "https://slow.example/";status=late;took_ms=1500`.
pub(crate) const PEERS: HeaderName = HeaderName::from_static("agentdex-peers");

/// The value of the header, if any peer was considered.
pub(crate) fn report(answers: &[PeerAnswer]) -> Option<HeaderValue> {
    let mut text = String::new();
    for answer in answers {
        let separator = if text.is_empty() { "" } else { ", " };
        // URLs have neither quotation marks nor backslashes
        write!(text, "{separator}\"{}\";status={}", answer.source, answer.outcome.as_str()).ok()?;
        match &answer.outcome {
            Outcome::Answered(entries) => write!(text, ";results={}", entries.len()).ok()?,
            Outcome::Late => {}
            Outcome::Failed(Fault::Status(status)) => write!(text, ";reason=status_{status}").ok()?,
            Outcome::Failed(fault) => write!(text, ";reason={}", fault.as_str()).ok()?,
            Outcome::Skipped(skip) => write!(text, ";reason={}", skip.as_str()).ok()?,
        }
        if !matches!(answer.outcome, Outcome::Skipped(_)) {
            write!(text, ";took_ms={}", answer.took.as_millis()).ok()?;
        }
    }
    (!text.is_empty()).then(|| HeaderValue::try_from(text).ok()).flatten()
}

impl Fault {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Connection => "connection",
            Self::Tls => "tls",
            Self::Protocol => "protocol",
            Self::TooLarge => "too_large",
            Self::Status(_) => "status",
            Self::Busy => "busy",
            Self::Content => "content",
            Self::Own => "own",
        }
    }
}

impl Skip {
    const fn as_str(self) -> &'static str {
        match self {
            Self::LeftOut => "left_out",
            Self::Waits => "waits",
            Self::Busy => "busy",
            Self::ClientLimit => "client_limit",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_peer_has_its_state_and_reason() {
        let answer = |source: &str, outcome| PeerAnswer {
            source: source.to_owned(),
            outcome,
            took: Duration::from_millis(20),
        };
        let answers = [
            answer("https://a.example/", Outcome::Answered(Vec::new())),
            answer("https://b.example/", Outcome::Late),
            answer("https://c.example/", Outcome::Failed(Fault::Status(500))),
            answer("https://d.example/", Outcome::Failed(Fault::TooLarge)),
            answer("https://e.example/", Outcome::Skipped(Skip::LeftOut)),
        ];
        assert_eq!(
            report(&answers).unwrap(),
            "\"https://a.example/\";status=answered;results=0;took_ms=20, \
             \"https://b.example/\";status=late;took_ms=20, \
             \"https://c.example/\";status=failed;reason=status_500;took_ms=20, \
             \"https://d.example/\";status=failed;reason=too_large;took_ms=20, \
             \"https://e.example/\";status=skipped;reason=left_out"
        );
        assert_eq!(report(&[]), None);
    }
}
