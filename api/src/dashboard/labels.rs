//! The English labels of closed vocabularies.

use manifest::model::{AuthScheme, Confirmation, Protocol, SourceKind};
use manifest::{Format, IdentityMark, SafetyClass, Strength};
use policy::claim::Proof;
use policy::{AbuseReason, FetchOutcome, RobotsKind, Status};

use super::type_words::type_words;

/// A dialect's name from its slug; the slug itself if it is not one.
pub(crate) fn format_of_slug(slug: &str) -> String {
    slug.parse::<Format>().map_or_else(|_| slug.to_owned(), |known| known.label().to_owned())
}

/// The status of a site, short enough for a tag. The page of a site states why it is no longer visited.
pub(crate) const fn status(status: Status) -> &'static str {
    match status {
        Status::OptedOut => "not visited any more",
        Status::CatchAll => "answers every path",
        other => other.label(),
    }
}

/// The status of a site as text, and its CSS class. A site without a manifest, or with none that can be read, is not called fresh.
pub(crate) fn site_status(
    status: Status,
    manifests: u32,
    formats: &[Format],
) -> (&'static str, &'static str) {
    match status {
        Status::Fresh if is_unreadable(formats) => (Status::Invalid.label(), Status::Invalid.as_str()),
        Status::Fresh if manifests == 0 => ("no manifest", "plain"),
        status => (self::status(status), status.as_str()),
    }
}

/// Whether documents of these dialects were fetched and none of them can be read.
pub(crate) fn is_unreadable(formats: &[Format]) -> bool {
    !formats.iter().any(|format| format.is_indexable())
        && formats.iter().any(|format| is_unreadable_as(*format))
}

/// Whether a dialect marks a document that cannot be read.
pub(crate) const fn is_unreadable_as(format: Format) -> bool {
    matches!(format, Format::Malformed | Format::Opaque)
}

/// The safety of a call, in a few words.
pub(crate) const fn safety(class: SafetyClass) -> &'static str {
    match class {
        SafetyClass::Read => "only reads",
        SafetyClass::Write => "writes",
        SafetyClass::Destructive => "spends or deletes",
        SafetyClass::Irreversible => "irreversible",
        SafetyClass::Unknown => "effect unknown",
    }
}

/// The safety of a call, as a sentence: what it changes at `place`, and whether it may move money.
pub(crate) fn safety_in_words(class: SafetyClass, place: &str, moves_money: bool) -> String {
    let effect = match class {
        SafetyClass::Read => return format!("Only reads. Nothing at {place} changes."),
        SafetyClass::Unknown if moves_money => "May move money".to_owned(),
        SafetyClass::Unknown => return "The publisher does not say what a call changes.".to_owned(),
        SafetyClass::Write => format!("Changes data at {place}"),
        SafetyClass::Destructive if moves_money => {
            "May move money, and delete or overwrite something".to_owned()
        }
        SafetyClass::Destructive => "May delete or overwrite something, or spend money".to_owned(),
        SafetyClass::Irreversible => "Cannot be undone".to_owned(),
    };
    let is_named = matches!(class, SafetyClass::Unknown | SafetyClass::Destructive);
    format!("{effect}{}.", if moves_money && !is_named { ", and may move money" } else { "" })
}

/// The confirmation that a call needs.
pub(crate) const fn confirmation(confirmation: Confirmation) -> Option<&'static str> {
    match confirmation {
        Confirmation::None => None,
        Confirmation::Recommended => Some("better ask first"),
        Confirmation::Required => Some("ask a person first"),
    }
}

pub(crate) const fn auth(scheme: AuthScheme) -> &'static str {
    match scheme {
        AuthScheme::None => "no authentication",
        AuthScheme::ApiKey => "API key",
        AuthScheme::Bearer => "bearer token",
        AuthScheme::OAuth2 => "OAuth 2",
        AuthScheme::OpenId => "OpenID Connect",
        AuthScheme::Mtls => "client certificate",
        AuthScheme::HttpSignature => "signed request",
        AuthScheme::Session => "session",
        AuthScheme::Payment => "payment",
        AuthScheme::AgentIdentity => "agent identity",
        AuthScheme::Delegated => "delegated user",
        AuthScheme::Cookie => "cookie",
        AuthScheme::Other => "its own scheme",
        AuthScheme::Unknown => "authentication not stated",
    }
}

/// The credentials that a caller needs.
pub(crate) fn auth_needed(schemes: &[AuthScheme], required: Option<bool>) -> String {
    let mut named: Vec<&str> = Vec::new();
    // documents may declare one scheme several times
    for words in schemes.iter().filter(|scheme| **scheme != AuthScheme::Unknown).map(|scheme| auth(*scheme)) {
        if !named.contains(&words) {
            named.push(words);
        }
    }
    match (named.is_empty(), required) {
        (false, Some(false)) if schemes != [AuthScheme::None] => format!("{}, optional", named.join(" or ")),
        (false, _) => named.join(" or "),
        (true, Some(true)) => "authentication needed".to_owned(),
        (true, Some(false)) => "no authentication".to_owned(),
        (true, None) => "authentication not stated".to_owned(),
    }
}

/// A reason as an option of the report form.
pub(crate) const fn abuse_reason(reason: AbuseReason) -> &'static str {
    match reason {
        AbuseReason::Spam => "spam: it misleads the search",
        AbuseReason::Impersonation => "impersonation: it pretends to be somebody else",
        AbuseReason::Malware => "malware: it harms the agents or people that use it",
        AbuseReason::Illegal => "illegal content or offers",
        AbuseReason::Privacy => "private data about people",
        AbuseReason::Other => "something else",
    }
}

pub(crate) const fn source(kind: SourceKind) -> Option<&'static str> {
    match kind {
        SourceKind::Native => None,
        SourceKind::Synthetic => Some("written by a third party"),
        SourceKind::Derived => Some("derived"),
        SourceKind::CopySuspected => Some("likely a copy of another site's"),
    }
}

/// The method by which an owner proved control of a domain.
pub(crate) const fn proof(proof: Proof) -> &'static str {
    match proof {
        Proof::Dns => "a DNS record",
        Proof::File => "a file of the site",
    }
}

/// Unusual properties of an identity; most manifests are bound and not signed.
pub(crate) const fn identity(mark: IdentityMark) -> Option<&'static str> {
    if mark.is_usual() { None } else { Some(identity_value(mark)) }
}

/// An identity as the value of a filter.
pub(crate) const fn identity_value(mark: IdentityMark) -> &'static str {
    match mark {
        IdentityMark::Bound => "publisher is at this domain",
        IdentityMark::Unsigned => "not signed",
        IdentityMark::Verified => "publisher verified",
        IdentityMark::Foreign => "names another publisher",
        IdentityMark::NamedByOthers => "named only by others",
        IdentityMark::Invalid => "signature invalid",
        IdentityMark::Unresolvable => "signature not verifiable",
    }
}

pub(crate) const fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Http => "HTTP",
        Protocol::Mcp => "MCP",
        Protocol::A2a => "A2A",
        Protocol::GraphQl => "GraphQL",
        Protocol::Grpc => "gRPC",
        Protocol::WebSocket => "WebSocket",
        Protocol::Woa => "WoA",
        Protocol::X402 => "x402",
        Protocol::Ucp => "UCP",
        Protocol::Acp => "ACP",
        Protocol::Other => "its own protocol",
    }
}

/// The importance of a finding for its publisher, from the slug of its severity.
pub(crate) fn severity(slug: &str) -> &str {
    match slug {
        "must" => "must be fixed",
        "should" => "should be better",
        "may" => "could be better",
        "note" => "for information",
        other => other,
    }
}

/// The kind of an endpoint to which agents connect.
pub(crate) const fn agent_endpoint(protocol: Protocol) -> Option<&'static str> {
    match protocol {
        Protocol::Mcp => Some("MCP server"),
        Protocol::A2a => Some("A2A agent"),
        _ => None,
    }
}

/// The outcome of a fetch and its colour class. A fetched document that cannot be read is not described as a manifest.
pub(crate) fn outcome_of(outcome: FetchOutcome, format: Option<Format>) -> (&'static str, &'static str) {
    if outcome.is_present() && format.is_some_and(is_unreadable_as) {
        return ("not readable", "error");
    }
    (outcome.label(), outcome_class(outcome))
}

/// The callers that a capability is for, by what it requires of them.
pub(crate) fn for_whom(schemes: &[AuthScheme], required: Option<bool>) -> &'static str {
    let has = |any: &[AuthScheme]| schemes.iter().any(|scheme| any.contains(scheme));
    if required == Some(false) || schemes == [AuthScheme::None] {
        "everybody, without an account"
    } else if has(&[AuthScheme::OAuth2, AuthScheme::OpenId, AuthScheme::Delegated]) {
        "people who sign in and consent"
    } else if has(&[AuthScheme::Session, AuthScheme::Cookie]) {
        "people with an account at the site"
    } else if has(&[AuthScheme::Payment]) {
        "whoever pays for the call"
    } else if schemes.iter().all(|scheme| *scheme == AuthScheme::Unknown) {
        "not stated"
    } else {
        "holders of a credential of the publisher"
    }
}

/// The outcome of fetches whose documents are not known. Some of the documents may not be readable as manifests.
pub(crate) const fn fetches_with(outcome: FetchOutcome) -> &'static str {
    match outcome {
        FetchOutcome::Found => "document fetched",
        other => other.label(),
    }
}

/// The colour class of an outcome: found, fine, or an error.
const fn outcome_class(outcome: FetchOutcome) -> &'static str {
    if outcome.is_present() {
        "found"
    } else if outcome.is_transport_error() || matches!(outcome, FetchOutcome::ServerError) {
        "error"
    } else if matches!(
        outcome,
        FetchOutcome::RobotsDenied | FetchOutcome::RobotsUnreachable | FetchOutcome::Blocked
    ) {
        "denied"
    } else {
        "plain"
    }
}

pub(crate) const fn robots(kind: RobotsKind) -> &'static str {
    match kind {
        RobotsKind::Rules => "Its rules apply",
        RobotsKind::NoFile => "There is none, so everything is allowed",
        RobotsKind::Denied => "Access to it is denied, so nothing is fetched",
        RobotsKind::Unreachable => "It could not be read, so nothing is fetched",
    }
}

pub(crate) const fn strength(strength: Strength) -> &'static str {
    match strength {
        Strength::Strong => "unambiguous",
        Strength::Medium => "by its path and content",
        Strength::Weak => "by its content only",
    }
}

/// The label of a facet value.
pub(crate) fn facet_value(key: indexer::FacetKey, value: &str) -> String {
    use indexer::FacetKey;
    let known = match key {
        FacetKey::Format => return format_of_slug(value),
        FacetKey::SemanticType => return type_words(value),
        FacetKey::Namespace if value.contains("://") => return value.to_owned(),
        FacetKey::Safety => value.parse().map(safety).ok(),
        FacetKey::Auth => value.parse().map(auth).ok(),
        FacetKey::Status => value.parse().map(status).ok(),
        FacetKey::AgentEndpoint => value.parse().ok().and_then(agent_endpoint),
        FacetKey::Identity => value.parse().map(identity_value).ok(),
        _ => None,
    };
    known.map_or_else(|| value.replace('_', " "), ToOwned::to_owned)
}

/// Converts the first letter to upper case.
pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// `1 site`, `2 sites`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// `24 hours`, in the largest unit that divides it.
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        whole if whole > 0 && whole % 3_600 == 0 => counted(whole / 3_600, "hour", "hours"),
        whole if whole > 0 && whole % 60 == 0 => counted(whole / 60, "minute", "minutes"),
        other => counted(other, "second", "seconds"),
    }
}

/// `12,345`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1.5 MB`.
pub(crate) fn bytes(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let count_f = count as f64;
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count_f / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count_f / 1e6),
        _ => format!("{:.1} GB", count_f / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(counted(1, "site", "sites"), "1 site");
        assert_eq!(bytes(1_500_000), "1.5 MB");
    }

    #[test]
    fn every_severity_has_words() {
        for known in manifest::Severity::ALL {
            assert_ne!(severity(known.as_str()), known.as_str(), "{known}");
        }
        assert_eq!(severity("must"), "must be fixed");
    }

    #[test]
    fn callers_are_named_by_what_they_need() {
        use AuthScheme::{ApiKey, Delegated, None as Free, OAuth2, Payment, Session, Unknown};
        for (schemes, required, words) in [
            (vec![Free], None, "everybody"),
            (vec![ApiKey], Some(false), "everybody"),
            (vec![ApiKey, OAuth2], Some(true), "sign in"),
            (vec![Delegated], None, "sign in"),
            (vec![Session], None, "account"),
            (vec![Payment], Some(true), "pays"),
            (vec![ApiKey], None, "credential"),
            (vec![Unknown], None, "not stated"),
            (vec![], None, "not stated"),
        ] {
            assert!(for_whom(&schemes, required).contains(words), "{schemes:?}");
        }
    }

    #[test]
    fn unreadable_documents_are_not_called_manifests() {
        assert!(is_unreadable(&[Format::Malformed]) && !is_unreadable(&[]));
        assert!(!is_unreadable(&[Format::Malformed, Format::Awp]) && !is_unreadable(&[Format::WebBotAuth]));
        assert_eq!(outcome_of(FetchOutcome::Found, Some(Format::Malformed)), ("not readable", "error"));
        assert_eq!(outcome_of(FetchOutcome::Found, Some(Format::Awp)), ("manifest read", "found"));
        assert_eq!(outcome_of(FetchOutcome::NotFound, None), ("not there", "plain"));
        for outcome in FetchOutcome::ALL {
            assert!(!fetches_with(*outcome).contains("manifest read"), "{outcome}");
        }
    }

    #[test]
    fn effects_name_the_place_and_the_money() {
        for (class, place, moves_money, words) in [
            (SafetyClass::Write, "the site", false, "Changes data at the site."),
            (SafetyClass::Write, "a.example", true, "Changes data at a.example, and may move money."),
            (SafetyClass::Irreversible, "the site", true, "Cannot be undone, and may move money."),
            (SafetyClass::Destructive, "x", true, "May move money, and delete or overwrite something."),
            (SafetyClass::Unknown, "the site", true, "May move money."),
            (SafetyClass::Read, "a.example", false, "Only reads. Nothing at a.example changes."),
        ] {
            assert_eq!(safety_in_words(class, place, moves_money), words);
        }
    }

    #[test]
    fn only_sites_with_a_readable_manifest_are_fresh() {
        let of = |manifests, formats: &[Format]| site_status(Status::Fresh, manifests, formats).0;
        assert_eq!(of(1, &[Format::Awp]), "fresh");
        assert_eq!(of(1, &[Format::Malformed]), "not readable");
        assert_eq!(of(0, &[]), "no manifest");
        assert_eq!(site_status(Status::Gone, 0, &[]), ("gone", "gone"));
    }

    #[test]
    fn auth_words_distinguish_required_optional_and_unknown() {
        assert_eq!(auth_needed(&[], None), "authentication not stated");
        assert_eq!(auth_needed(&[AuthScheme::OAuth2, AuthScheme::ApiKey], Some(true)), "OAuth 2 or API key");
        assert_eq!(auth_needed(&[AuthScheme::ApiKey], Some(false)), "API key, optional");
        assert_eq!(auth_needed(&[AuthScheme::OAuth2, AuthScheme::OAuth2], Some(true)), "OAuth 2", "once");
        assert_eq!(auth_needed(&[AuthScheme::None], Some(false)), "no authentication");
    }
}
