//! Determines who owns a site: who proved control of its domain, and when the ownership ends.
//!
//! Issuing a claim needs no stored state. The instance issues a random key and a token. The token consists of the SHA-256 of the key and a
//! MAC of this instance over the hash and the site. The owner of the domain publishes the token, and the published token determines which
//! key is accepted. So claims cannot block each other, and a token of another instance or another site is not valid.

use chrono::{DateTime, TimeDelta, Utc};
use manifest::{SiteName, string_enum};
use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::key::{IssuedKey, KEY_BYTES, KeyHash, KeyKind};

/// The label below a domain whose TXT record may have a token.
pub const DNS_LABEL: &str = "_agentdex";
/// The file of a site that may have a token.
pub const FILE_PATH: &str = "/.well-known/agentdex-claim.txt";
/// Prefix of a token in the record or on a line of the file.
pub const TOKEN_PREFIX: &str = "agentdex-claim=";
/// Bytes of a token's MAC: 128 bits cannot be guessed, and the token fits into one string of a TXT record (255 bytes).
const MAC_BYTES: usize = 16;
/// Maximum number of lines of the file that are read, and so of tokens that are accepted. One is usual, and two while a key is replaced.
const LINES_MAX: usize = 20;

/// Minimum time between two requests to check a claim, as for other requested visits.
const CHECK_INTERVAL: TimeDelta = TimeDelta::minutes(10);
/// How long visits look for a proof after a check was requested. DNS records take up to two days to propagate.
const OPEN_FOR: TimeDelta = TimeDelta::days(7);
/// How long the proof of an owner may be missing: two weekly visits, so that one failed check does not end the ownership.
const MISSING_MAX: TimeDelta = TimeDelta::days(14);
/// How long a proof is valid if no visit looks for it again. Sites without manifests are visited about every three months.
const PROOF_AGE_MAX: TimeDelta = TimeDelta::days(100);
/// Times after a found proof at which visits look for it again: half of [`PROOF_AGE_MAX`], and two later times in case a visit did not
/// check it.
const CHECKS_AFTER_PROOF: [TimeDelta; 3] = [TimeDelta::days(50), TimeDelta::days(75), TimeDelta::days(95)];
/// Times after a missing proof at which visits look for it again: half of [`MISSING_MAX`], and the day before its end.
const CHECKS_AFTER_MISS: [TimeDelta; 2] = [TimeDelta::days(7), TimeDelta::days(13)];

string_enum! {
    /// The location of the proof of a claim.
    Proof, "proof" {
        /// In a TXT record.
        Dns = "dns",
        /// In a file of the site.
        File = "file",
    }
}

/// A new key with the token that proves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedClaim {
    /// The secret key of the owner.
    pub key: String,
    /// The token that the owner publishes after [`TOKEN_PREFIX`].
    pub token: String,
}

/// Issues and verifies the tokens of one instance.
pub struct ClaimAuthority(hmac::Key);

impl ClaimAuthority {
    /// `secret` is the random text that all programs of an instance share.
    pub fn new(secret: &str) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))
    }

    /// Creates the key from these random bytes, and its token for a site.
    pub fn issue(&self, site: &SiteName, random: &[u8; KEY_BYTES]) -> IssuedClaim {
        let IssuedKey { key, hash } = IssuedKey::new(KeyKind::Owner, random);
        let token = format!("{}.{}", hash.as_str(), self.mac(site, &hash));
        IssuedClaim { key, token }
    }

    /// The keys that a file proves for a site. The file may contain only tokens, comments that begin with `#`, and blank lines: a page or
    /// any other text may include text that others wrote.
    pub fn proven_by_file(&self, site: &SiteName, text: &str) -> Vec<KeyHash> {
        let text = text.trim_start_matches('\u{feff}');
        let is_of_owner =
            |line: &str| line.is_empty() || line.starts_with('#') || line.starts_with(TOKEN_PREFIX);
        if text.lines().map(str::trim).all(is_of_owner) { self.proven(site, [text]) } else { Vec::new() }
    }

    /// The keys that the strings of TXT records prove for a site.
    pub fn proven<'a>(&self, site: &SiteName, texts: impl IntoIterator<Item = &'a str>) -> Vec<KeyHash> {
        let lines = texts.into_iter().flat_map(str::lines).take(LINES_MAX);
        lines.filter_map(|line| self.key_of(site, line.trim().strip_prefix(TOKEN_PREFIX)?)).collect()
    }

    fn key_of(&self, site: &SiteName, token: &str) -> Option<KeyHash> {
        let (hash, mac) = token.split_once('.')?;
        let hash: KeyHash = hash.parse().ok()?;
        // both are public, so they need not be compared in constant time
        (self.mac(site, &hash) == mac).then_some(hash)
    }

    fn mac(&self, site: &SiteName, hash: &KeyHash) -> String {
        let signed = format!("agentdex-claim\n{}\n{}", site.as_str(), hash.as_str());
        let tag = hmac::sign(&self.0, signed.as_bytes());
        data_encoding::HEXLOWER.encode(tag.as_ref().get(..MAC_BYTES).unwrap_or_default())
    }
}

/// The owner of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub key_hash: KeyHash,
    pub proof: Proof,
    /// When this key was first accepted.
    pub since: DateTime<Utc>,
    /// When the proof was last found.
    pub proven_at: DateTime<Utc>,
    /// When checks first missed the proof; `None` if the last one found it.
    pub missing_since: Option<DateTime<Utc>>,
}

impl Owner {
    /// When the key stops being valid, unless a check finds the proof before. Depends only on time, because the site of a former owner may
    /// answer in such a way that no check ends.
    fn counts_until(&self) -> DateTime<Utc> {
        let unproven = self.proven_at + PROOF_AGE_MAX;
        self.missing_since.map_or(unproven, |since| unproven.min(since + MISSING_MAX))
    }

    /// Whether the key is valid.
    pub fn counts_at(&self, now: DateTime<Utc>) -> bool {
        now < self.counts_until()
    }
}

/// The ownership of a site: the last requested check, and the owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// When a check was last requested.
    pub asked_at: Option<DateTime<Utc>>,
    /// The owner after the last check. [`Claim::owner_at`] checks whether the key is still valid.
    pub owner: Option<Owner>,
    pub checked_at: Option<DateTime<Utc>>,
    /// The result of the last check, as text.
    pub finding: Option<String>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckResult {
    /// Valid tokens are published.
    Proven { keys: Vec<KeyHash>, proof: Proof },
    /// No valid token is published, or it could not be read, for this reason.
    Nothing { reason: String },
}

impl Claim {
    /// Whether visits check the claim: always if there is an owner, otherwise for some days after a request.
    pub(crate) fn is_checked_by_visits(&self, now: DateTime<Utc>) -> bool {
        self.owner.is_some() || self.open_until().is_some_and(|until| now < until)
    }

    /// Whether a visit that began at `started_at` has to check the claim: it has not checked it yet, a check was requested since then, or
    /// the proof is due for another check.
    pub fn is_open_in_visit(&self, started_at: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        let counts = |checked_at: &DateTime<Utc>| {
            *checked_at >= started_at
                && self.asked_at.is_none_or(|asked_at| asked_at <= *checked_at)
                && self.next_check_by(*checked_at).is_none_or(|by| now < by)
        };
        self.is_checked_by_visits(now) && !self.checked_at.as_ref().is_some_and(counts)
    }

    /// The owner whose key is valid.
    pub fn owner_at(&self, now: DateTime<Utc>) -> Option<&Owner> {
        self.owner.as_ref().filter(|owner| owner.counts_at(now))
    }

    /// When visits stop looking for a proof after the last request to check.
    pub fn open_until(&self) -> Option<DateTime<Utc>> {
        self.asked_at.map(|at| at + OPEN_FOR)
    }

    /// When a visit has to look for the owner's proof at the latest, so that one failed check or a long interval between visits does not
    /// end the ownership. Returns a time later than `now`; `None` without an owner, and shortly before the key stops being valid.
    pub fn next_check_by(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let owner = self.owner.as_ref()?;
        let after_proof = CHECKS_AFTER_PROOF.into_iter().map(|wait| owner.proven_at + wait);
        let missing_since = owner.missing_since.into_iter();
        let after_miss =
            missing_since.flat_map(|since| CHECKS_AFTER_MISS.into_iter().map(move |wait| since + wait));
        after_proof.chain(after_miss).filter(|at| now < *at && owner.counts_at(*at)).min()
    }

    /// When a check may be requested again, if that is later than `now`.
    pub fn next_check_at(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.asked_at.map(|at| at + CHECK_INTERVAL).filter(|at| *at > now)
    }

    /// If the last request was at this time or before, another request is allowed at `now`.
    pub fn earlier_request_max(now: DateTime<Utc>) -> DateTime<Utc> {
        now - CHECK_INTERVAL
    }

    /// The claim after a check. If several keys are published, the owner's key is kept. If only another key is published, it replaces the
    /// owner's key immediately.
    #[must_use]
    pub fn after(&self, result: CheckResult, now: DateTime<Utc>) -> Self {
        let (owner, finding) = match result {
            CheckResult::Proven { keys, proof } => self.proven(keys, proof, now),
            CheckResult::Nothing { reason } => self.missed(&reason, now),
        };
        Self { asked_at: self.asked_at, owner, checked_at: Some(now), finding: Some(finding) }
    }

    fn proven(&self, mut keys: Vec<KeyHash>, proof: Proof, now: DateTime<Utc>) -> (Option<Owner>, String) {
        keys.sort_unstable();
        let before = self.owner_at(now);
        let kept = before.filter(|owner| keys.contains(&owner.key_hash));
        let finding = match (kept, before) {
            (Some(_), _) => "the proof was found",
            (None, Some(_)) => "the proof of another key was found, which replaces the previous key",
            (None, None) => "the proof was found; its key is valid from now on",
        };
        let since = kept.map_or(now, |owner| owner.since);
        let key_hash = kept.map(|owner| owner.key_hash.clone()).or_else(|| keys.into_iter().next());
        let owner =
            key_hash.map(|key_hash| Owner { key_hash, proof, since, proven_at: now, missing_since: None });
        (owner, finding.to_owned())
    }

    fn missed(&self, reason: &str, now: DateTime<Utc>) -> (Option<Owner>, String) {
        let Some(owner) = &self.owner else { return (None, format!("no proof was found: {reason}")) };
        let owner = Owner { missing_since: Some(owner.missing_since.unwrap_or(now)), ..owner.clone() };
        if owner.counts_at(now) {
            return (Some(owner), format!("no proof was found: {reason}"));
        }
        let days = (now - owner.proven_at).num_days();
        (None, format!("the ownership ended, because no proof was found for {days} days: {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::hours(hours)
    }

    fn site(name: &str) -> SiteName {
        SiteName::parse(name).unwrap()
    }

    fn key(byte: u8) -> KeyHash {
        KeyHash::of_bytes(&[byte; KEY_BYTES])
    }

    fn proven(keys: &[u8]) -> CheckResult {
        CheckResult::Proven { keys: keys.iter().map(|byte| key(*byte)).collect(), proof: Proof::Dns }
    }

    fn nothing() -> CheckResult {
        CheckResult::Nothing { reason: "there is no record".to_owned() }
    }

    #[test]
    fn a_published_token_proves_the_key_it_was_issued_with() {
        let authority = ClaimAuthority::new("secret");
        let (shop, other) = (site("shop.example"), site("other.example"));
        let issued = authority.issue(&shop, &[7; KEY_BYTES]);
        let hash = KeyHash::of_key(KeyKind::Owner, &issued.key).unwrap();
        assert_eq!(hash, key(7));
        let record = format!("{TOKEN_PREFIX}{}", issued.token);
        assert!(record.len() < 255, "one string of a TXT record");
        assert!(
            !record.contains(issued.key.strip_prefix(KeyKind::Owner.prefix()).unwrap()),
            "the key is not published"
        );
        assert_eq!(authority.proven(&shop, [record.as_str()]), std::slice::from_ref(&hash));
        let file = format!("# ours\r\n  {record}  \r\n");
        assert_eq!(authority.proven(&shop, [file.as_str()]), [hash]);
        assert_eq!(authority.proven(&other, [record.as_str()]), [], "it was issued for another site");
        let elsewhere = ClaimAuthority::new("another secret");
        assert_eq!(elsewhere.proven(&shop, [record.as_str()]), [], "another instance issued it");
    }

    #[test]
    fn a_file_with_other_text_proves_nothing() {
        let authority = ClaimAuthority::new("secret");
        let shop = site("shop.example");
        let line = format!("{TOKEN_PREFIX}{}", authority.issue(&shop, &[7; KEY_BYTES]).token);
        for file in
            [line.clone(), format!("\u{feff}# ours\r\n\r\n  {line}  \r\n"), format!("{line}\n{line}\n")]
        {
            assert!(!authority.proven_by_file(&shop, &file).is_empty(), "{file:?}");
        }
        for page in [
            format!("Latest messages:\n{line}\n"),
            format!("<script src=/app.js></script>\n{line}\n"),
            format!("{line}\n<p>by a guest"),
            format!("{{\"messages\": \"\n{line}\n\"}}"),
        ] {
            assert_eq!(authority.proven_by_file(&shop, &page), [], "{page:?}");
        }
    }

    #[test]
    fn an_invalid_token_proves_nothing() {
        let authority = ClaimAuthority::new("secret");
        let token = authority.issue(&site("shop.example"), &[7; KEY_BYTES]).token;
        let (hash, mac) = token.split_once('.').unwrap();
        for wrong in [
            token.clone(),
            format!("agentdex-claim:{token}"),
            format!("{TOKEN_PREFIX}{hash}"),
            format!("{TOKEN_PREFIX}{hash}."),
            format!("{TOKEN_PREFIX}.{mac}"),
            format!("{TOKEN_PREFIX}{}.{mac}", key(8).as_str()),
            format!("{TOKEN_PREFIX}{}", token.to_uppercase()),
            format!("{}{TOKEN_PREFIX}{token}", "\n".repeat(LINES_MAX)),
        ] {
            assert_eq!(authority.proven(&site("shop.example"), [wrong.as_str()]), [], "{wrong:?}");
        }
        for wrong in [
            "",
            "agentdex-key-",
            "agentdex-key-00",
            &"0".repeat(64),
            &format!("agentdex-key-{}", "g".repeat(64)),
        ] {
            assert_eq!(KeyHash::of_key(KeyKind::Owner, wrong), None, "{wrong:?}");
        }
        assert!("00".parse::<KeyHash>().is_err());
    }

    #[test]
    fn a_claim_is_open_for_a_week_and_checked_at_most_every_ten_minutes() {
        let claim = Claim { asked_at: Some(at(0)), ..Claim::default() };
        assert!(claim.is_checked_by_visits(at(7 * 24 - 1)));
        assert!(!claim.is_checked_by_visits(at(7 * 24)));
        assert_eq!(claim.next_check_at(at(0)), Some(at(0) + TimeDelta::minutes(10)));
        assert_eq!(claim.next_check_at(at(0) + TimeDelta::minutes(10)), None);
        assert_eq!(Claim::earlier_request_max(at(1)), at(1) - TimeDelta::minutes(10));
        assert_eq!(Claim::default().next_check_at(at(0)), None);
        assert!(!Claim::default().is_checked_by_visits(at(0)));
        assert!(
            claim.after(proven(&[1]), at(1)).is_checked_by_visits(at(9_000)),
            "the claim of an owner is always checked"
        );
    }

    #[test]
    fn a_long_visit_checks_a_claim_again_when_that_is_requested_or_due() {
        let asked = |hours| Claim { asked_at: Some(at(hours)), ..Claim::default() };
        assert!(asked(0).is_open_in_visit(at(1), at(1)));
        assert!(!Claim::default().is_open_in_visit(at(1), at(1)), "no check was requested");
        let missed = asked(0).after(nothing(), at(24));
        assert!(!missed.is_open_in_visit(at(1), at(25)), "this visit has checked it");
        assert!(missed.is_open_in_visit(at(25), at(25)), "another visit has not checked it");
        let again = Claim { asked_at: Some(at(30)), ..missed };
        assert!(again.is_open_in_visit(at(1), at(31)), "a check was requested since then");
        let owned = Claim::default().after(proven(&[1]), at(24));
        assert!(!owned.is_open_in_visit(at(1), at(24 + 50 * 24 - 1)));
        assert!(owned.is_open_in_visit(at(1), at(24 + 50 * 24)), "the proof of the owner is due");
        let missing = owned.after(nothing(), at(48));
        assert!(!missing.is_open_in_visit(at(1), at(48 + 7 * 24 - 1)));
        assert!(missing.is_open_in_visit(at(1), at(48 + 7 * 24)));
    }

    #[test]
    fn a_proof_makes_an_owner_and_another_proof_replaces_it() {
        let first = Claim::default().after(proven(&[1]), at(0));
        assert_eq!(first.owner.as_ref().unwrap().key_hash, key(1));
        let again = first.after(proven(&[1]), at(5)).owner.unwrap();
        assert_eq!((again.since, again.proven_at), (at(0), at(5)));
        let both = first.after(proven(&[1, 2]), at(6)).owner.unwrap();
        assert_eq!((both.key_hash, both.since), (key(1), at(0)), "the owner's key stays");
        let replaced = first.after(proven(&[2]), at(7));
        assert!(replaced.finding.as_deref().unwrap().contains("replaces"));
        let replaced = replaced.owner.unwrap();
        assert_eq!((replaced.key_hash, replaced.since), (key(2), at(7)));
        let unproven = Claim::default().after(nothing(), at(0));
        assert_eq!((unproven.owner, unproven.checked_at), (None, Some(at(0))));
        assert_eq!(unproven.finding.as_deref(), Some("no proof was found: there is no record"));
    }

    #[test]
    fn ownership_ends_when_checks_miss_the_proof_for_two_weeks() {
        let owned = Claim::default().after(proven(&[1]), at(0));
        let missed = owned.after(nothing(), at(24));
        assert_eq!(missed.owner.as_ref().unwrap().missing_since, Some(at(24)));
        let day_13 = missed.after(nothing(), at(24 + 14 * 24 - 1));
        assert_eq!(day_13.owner.as_ref().unwrap().missing_since, Some(at(24)));
        let found = day_13.after(proven(&[1]), at(24 + 14 * 24 - 1)).owner.unwrap();
        assert_eq!((found.missing_since, found.since), (None, at(0)));
        let ended = day_13.after(nothing(), at(24 + 14 * 24));
        assert_eq!(ended.owner, None);
        assert!(ended.finding.unwrap().contains("ended"));
        let late = owned.after(nothing(), at(90 * 24));
        assert!(late.owner.is_some(), "one check that misses it is not enough");
    }

    #[test]
    fn visits_look_for_a_proof_in_time() {
        let days = |claim: &Claim, now: i64| {
            let by = claim.next_check_by(at(now * 24));
            by.map(|by| (by - at(0)).num_days())
        };
        let owned = Claim::default().after(proven(&[1]), at(0));
        for (now, by) in
            [(0, Some(50)), (49, Some(50)), (50, Some(75)), (80, Some(95)), (95, None), (200, None)]
        {
            assert_eq!(days(&owned, now), by, "proven on day 0, day {now}");
        }
        let missed = owned.after(nothing(), at(20 * 24));
        for (now, by) in [(20, Some(27)), (27, Some(33)), (33, None), (34, None), (60, None)] {
            assert_eq!(days(&missed, now), by, "missed on day 20, day {now}");
        }
        let missed_late = owned.after(nothing(), at(90 * 24));
        for (now, by) in [(90, Some(95)), (95, Some(97)), (97, None)] {
            assert_eq!(days(&missed_late, now), by, "missed on day 90, day {now}");
        }
        let found_again = missed.after(proven(&[1]), at(27 * 24));
        assert_eq!(days(&found_again, 27), Some(77));
        assert_eq!(days(&Claim { asked_at: Some(at(0)), ..Claim::default() }, 0), None, "no owner");
    }

    #[test]
    fn a_key_is_valid_for_a_limited_time_after_its_last_proof() {
        let owned = Claim::default().after(proven(&[1]), at(0));
        let last_hour = 100 * 24 - 1;
        assert!(owned.owner_at(at(last_hour)).is_some(), "visits are up to three months apart");
        assert_eq!(owned.owner_at(at(100 * 24)), None, "no visit has looked for it again");
        let missed = owned.after(nothing(), at(24));
        assert!(missed.owner_at(at(24 + 14 * 24 - 1)).is_some());
        assert_eq!(missed.owner_at(at(24 + 14 * 24)), None, "no further check is needed");
        let missed_late = owned.after(nothing(), at(last_hour));
        assert_eq!(missed_late.owner_at(at(100 * 24)), None, "a missing proof does not extend the ownership");
        assert_eq!(owned.after(nothing(), at(100 * 24)).owner, None);
        assert!(owned.is_checked_by_visits(at(9_000)), "the proof may be published again");
        let returned = owned.after(proven(&[1]), at(9_000));
        assert_eq!(returned.owner_at(at(9_000)).map(|owner| owner.since), Some(at(9_000)));
        assert_eq!(returned.finding.as_deref(), Some("the proof was found; its key is valid from now on"));
    }
}
