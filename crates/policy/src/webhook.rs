//! Rules for messages to webhooks: how they are signed, when a failed message is sent again, and when the crawler stops sending to a
//! receiver.
//!
//! Messages are signed as specified by Standard Webhooks 1.0: with an HMAC-SHA256 over the id, the time of the attempt and the body.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use data_encoding::BASE64;
use manifest::string_enum;
use ring::hmac;

use crate::spread::Seed;
use crate::time::later;

/// Random bytes of a secret; the specification allows 24 to 64.
pub const SECRET_BYTES: usize = 32;
/// Prefix of the text of a secret.
const SECRET_PREFIX: &str = "whsec_";
/// How long messages are also signed with the old secret after a rotation, so that receivers have time to replace it.
const OLD_SECRET_SIGNS_FOR: TimeDelta = TimeDelta::hours(24);

/// Delays after the first and each further failed attempt to deliver changes: eight attempts within about two days.
const DELAYS_OF_CHANGES: [Duration; 7] = [
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(6),
    Duration::from_hours(12),
    Duration::from_hours(24),
];
/// Delays after failed challenges. There are few, because the receiver has not confirmed that it wants requests.
const DELAYS_OF_CHALLENGE: [Duration; 2] = [Duration::from_mins(5), Duration::from_hours(1)];
/// Jitter as a percentage of a delay, so that messages that failed in an outage do not all arrive at the same time after it.
const JITTER_PERCENT: u32 = 20;
/// How long the receiver of a watch may fail before the watch is paused.
const FAILING_MAX: TimeDelta = TimeDelta::days(5);

/// How long a challenge may wait for a receiver that asks for no request, such as with a long `Retry-After`, counted from when its watch
/// was made. A longer wait would occupy the room for unconfirmed watches.
const CHALLENGE_WAIT_MAX: TimeDelta = TimeDelta::hours(4);
/// A wait that is always allowed, because the crawler may not have run before.
const CHALLENGE_WAIT_SHORT: TimeDelta = TimeDelta::minutes(1);

/// Maximum number of messages per day (UTC) to all receivers of one domain, including challenges.
pub const REQUESTS_PER_DAY_MAX: u32 = 100;
/// Maximum number of challenges among these. It is lower, because somebody else may have caused a challenge.
pub const CHALLENGES_PER_DAY_MAX: u32 = 10;

string_enum! {
    /// Whether a watch delivers.
    WatchStatus, "watch status" {
        /// The receiver has not answered the challenge yet.
        Pending = "pending",
        /// Changes are delivered.
        Active = "active",
        /// The receiver failed for days, or answered no challenge. A new challenge is needed.
        Paused = "paused",
    }
}

/// Content of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// Asks the receiver to confirm that it wants the changes.
    Challenge,
    Changes,
}

impl Message {
    /// The next step after a failed attempt. `attempts` includes this attempt, `id` determines the jitter, and `failing_since` is the time
    /// of the first failure after the last success.
    pub fn after_failure(
        self,
        id: &str,
        attempts: u32,
        failing_since: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> AfterFailure {
        if self == Self::Changes && failing_since.is_some_and(|since| now - since >= FAILING_MAX) {
            return AfterFailure::Pause;
        }
        match (self.retry_at(id, attempts, now), self) {
            (Some(at), _) => AfterFailure::Retry(at),
            (None, Self::Changes) => AfterFailure::GiveUp,
            (None, Self::Challenge) => AfterFailure::Pause,
        }
    }

    /// When a message is sent again after a failed attempt. `None` if it is not sent again.
    fn retry_at(self, id: &str, attempts: u32, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let delays: &[Duration] = match self {
            Self::Challenge => &DELAYS_OF_CHALLENGE,
            Self::Changes => &DELAYS_OF_CHANGES,
        };
        let delay = *delays.get(usize::try_from(attempts.saturating_sub(1)).ok()?)?;
        let jitter = Seed::of(id).with_counter(attempts.into()).share_of(delay, JITTER_PERCENT);
        Some(later(now, delay + jitter))
    }
}

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    Retry(DateTime<Utc>),
    /// The message is dropped, and the next one is sent.
    GiveUp,
    /// The message is dropped, and the watch is paused until the receiver answers a challenge.
    Pause,
}

/// Until when messages are also signed with the old secret after a rotation at `now`.
pub fn old_secret_until(now: DateTime<Utc>) -> DateTime<Utc> {
    now + OLD_SECRET_SIGNS_FOR
}

/// Whether the challenge of a watch that was made at `made_at` may wait until `until`.
pub fn may_challenge_wait(made_at: DateTime<Utc>, until: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    until <= made_at + CHALLENGE_WAIT_MAX || until <= now + CHALLENGE_WAIT_SHORT
}

/// The client that made a watch, known well enough to count its watches: 16 bits of a keyed hash of its network. About 65,000 IPv4
/// addresses have the same value, so the value leads to no address, even with the key. Other clients cannot find out which networks share
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchClient(u16);

impl WatchClient {
    /// `secret` is the random text that all programs of an instance share, and `network` the address of an IPv4 client or the /48 of an
    /// IPv6 client.
    pub fn new(secret: &str, network: IpAddr) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let tag = hmac::sign(&key, format!("agentdex-watch-client\n{network}").as_bytes());
        Self(tag.as_ref().first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes)))
    }

    /// The number that is stored.
    pub fn number(self) -> i32 {
        self.0.into()
    }
}

/// Whether the response to a challenge confirms it. The whole body has to be the challenge: a server that returns the request, or a page
/// that includes the challenge, does not confirm it.
pub fn is_confirmed_by(challenge: &str, body: &[u8]) -> bool {
    !challenge.is_empty() && body.trim_ascii() == challenge.as_bytes()
}

/// The secret of a watch. It is stored as plain text, because it is needed to sign messages.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(String);

/// A text that is not a secret.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a secret of a webhook is whsec_ with {SECRET_BYTES} bytes in base64")]
pub struct WebhookSecretError;

impl WebhookSecret {
    /// Creates the secret from these random bytes.
    pub fn new(random: &[u8; SECRET_BYTES]) -> Self {
        Self(format!("{SECRET_PREFIX}{}", BASE64.encode(random)))
    }

    /// The text of the secret, for its holder.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The signature of one attempt, without its version.
    fn sign(&self, id: &str, at: DateTime<Utc>, body: &str) -> String {
        let encoded = self.0.strip_prefix(SECRET_PREFIX).unwrap_or_default();
        // a secret is checked when it is parsed
        let key = hmac::Key::new(hmac::HMAC_SHA256, &BASE64.decode(encoded.as_bytes()).unwrap_or_default());
        let signed = format!("{id}.{}.{body}", at.timestamp());
        BASE64.encode(hmac::sign(&key, signed.as_bytes()).as_ref())
    }
}

impl FromStr for WebhookSecret {
    type Err = WebhookSecretError;

    fn from_str(text: &str) -> Result<Self, WebhookSecretError> {
        let encoded = text.strip_prefix(SECRET_PREFIX).ok_or(WebhookSecretError)?;
        let bytes = BASE64.decode(encoded.as_bytes()).map_err(|_| WebhookSecretError)?;
        if bytes.len() == SECRET_BYTES { Ok(Self(text.to_owned())) } else { Err(WebhookSecretError) }
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

/// The secrets of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSecrets {
    pub current: WebhookSecret,
    /// The secret before the last rotation, with the time until which it is used.
    pub old: Option<(WebhookSecret, DateTime<Utc>)>,
}

impl WebhookSecrets {
    /// The header `webhook-signature` of an attempt at `at`: one signature for each secret that is used at that time.
    pub fn signature(&self, id: &str, at: DateTime<Utc>, body: &str) -> String {
        let old = self.old.iter().filter(|(_, until)| at < *until).map(|(secret, _)| secret);
        let signatures = std::iter::once(&self.current).chain(old);
        signatures.map(|secret| format!("v1,{}", secret.sign(id, at, body))).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::<Utc>::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn secrets(old: Option<(WebhookSecret, DateTime<Utc>)>) -> WebhookSecrets {
        WebhookSecrets { current: WebhookSecret::new(&[1; SECRET_BYTES]), old }
    }

    #[test]
    fn a_client_is_stored_as_sixteen_bits_of_a_keyed_hash() {
        let client = |secret: &str, network: &str| WatchClient::new(secret, network.parse().unwrap());
        let one = client("secret", "192.0.2.1");
        assert_eq!(one, client("secret", "192.0.2.1"));
        assert_ne!(one, client("secret", "192.0.2.2"));
        assert_ne!(one, client("other", "192.0.2.1"), "the key decides");
        assert!((0..=0xffff).contains(&one.number()));
        let (mut addresses, all) = (std::collections::HashMap::<i32, u32>::new(), 1_u32 << 18);
        for address in 0..all {
            let network = std::net::Ipv4Addr::from_bits(address).into();
            *addresses.entry(WatchClient::new("secret", network).number()).or_default() += 1;
        }
        let alone = addresses.values().filter(|addresses| **addresses == 1).count();
        assert!(
            addresses.len() > 60_000 && alone < 10_000,
            "four addresses on average share a value: {alone}"
        );
    }

    #[test]
    fn a_challenge_waits_four_hours() {
        let hours = |hours: i64| at(3_600 * hours);
        assert!(may_challenge_wait(hours(0), hours(4), hours(0)));
        assert!(may_challenge_wait(hours(0), hours(4), hours(3)));
        assert!(!may_challenge_wait(hours(0), hours(4) + TimeDelta::seconds(1), hours(0)));
        assert!(!may_challenge_wait(hours(0), hours(24 * 7), hours(0)));
        assert!(!may_challenge_wait(hours(0), hours(8), hours(7)));
        assert!(
            may_challenge_wait(hours(0), hours(7) + TimeDelta::seconds(9), hours(7)),
            "no crawler ran before"
        );
    }

    /// The example of the specification has a secret of 24 bytes.
    #[test]
    fn signs_as_standard_webhooks_specifies() {
        let secret = WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let signed =
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at(1_614_265_330), r#"{"test": 2432232314}"#);
        assert_eq!(signed, "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn signs_the_time_and_the_id() {
        let one = secrets(None).signature("a", at(1), "{}");
        assert_ne!(
            one,
            secrets(None).signature("a", at(2), "{}"),
            "a replay at another time needs another signature"
        );
        assert_ne!(one, secrets(None).signature("b", at(1), "{}"));
        assert_ne!(one, secrets(None).signature("a", at(1), "{ }"));
    }

    #[test]
    fn both_secrets_sign_for_a_day_after_a_rotation() {
        let before = WebhookSecret::new(&[2; SECRET_BYTES]);
        let rotated = secrets(Some((before.clone(), old_secret_until(at(0)))));
        let day = 24 * 60 * 60;
        let both = rotated.signature("a", at(day - 1), "{}");
        let (current, old) = both.split_once(' ').unwrap();
        assert_eq!(current, secrets(None).signature("a", at(day - 1), "{}"));
        assert_eq!(old, format!("v1,{}", before.sign("a", at(day - 1), "{}")));
        assert!(!rotated.signature("a", at(day), "{}").contains(' '));
    }

    #[test]
    fn delays_grow_and_end() {
        let now = at(0);
        for (message, delays) in
            [(Message::Changes, &DELAYS_OF_CHANGES[..]), (Message::Challenge, &DELAYS_OF_CHALLENGE[..])]
        {
            for (attempts, delay) in (1..).zip(delays) {
                let wait = (message.retry_at("a", attempts, now).unwrap() - now).to_std().unwrap();
                assert!(wait >= *delay && wait <= *delay * 12 / 10, "{attempts}: {wait:?}");
            }
            assert_eq!(message.retry_at("a", u32::try_from(delays.len()).unwrap() + 1, now), None);
        }
        assert_ne!(Message::Changes.retry_at("a", 7, now), Message::Changes.retry_at("b", 7, now));
    }

    #[test]
    fn a_receiver_that_fails_for_days_pauses_its_watch() {
        let (since, five_days) = (Some(at(0)), at(5 * 24 * 60 * 60));
        let after = |message: Message, attempts, now| message.after_failure("a", attempts, since, now);
        let just_before = five_days - TimeDelta::seconds(1);
        assert!(matches!(after(Message::Changes, 1, just_before), AfterFailure::Retry(_)));
        assert_eq!(after(Message::Changes, 8, just_before), AfterFailure::GiveUp);
        assert_eq!(after(Message::Changes, 1, five_days), AfterFailure::Pause);
        assert!(matches!(after(Message::Challenge, 1, five_days), AfterFailure::Retry(_)));
        assert_eq!(after(Message::Challenge, 3, at(0)), AfterFailure::Pause);
    }

    #[test]
    fn only_a_body_that_equals_the_challenge_confirms_it() {
        assert!(is_confirmed_by("abc", b"abc") && is_confirmed_by("abc", b" abc\r\n"));
        for body in ["", "ab", "abcd", r#""abc""#, r#"{"challenge":"abc"}"#, "<p>abc</p>"] {
            assert!(!is_confirmed_by("abc", body.as_bytes()), "{body}");
        }
        assert!(!is_confirmed_by("", b""));
    }

    #[test]
    fn parses_secrets_and_does_not_show_them() {
        let secret = WebhookSecret::new(&[7; SECRET_BYTES]);
        assert_eq!(secret.as_str().parse(), Ok(secret.clone()));
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
        for text in ["", "whsec_", "whsec_AAAA", "AAAA", "whsec_!"] {
            assert_eq!(text.parse::<WebhookSecret>(), Err(WebhookSecretError), "{text}");
        }
    }
}
