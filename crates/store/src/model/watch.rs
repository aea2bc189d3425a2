//! Watches: sites and searches whose changes are delivered to webhooks, and the messages to them.

use chrono::{DateTime, Utc};
use manifest::{ManifestUrl, SiteName};
use policy::key::KeyHash;
use policy::webhook::{AfterFailure, Message, WatchClient, WatchStatus, WebhookSecret, WebhookSecrets};
use serde::Serialize;

use super::FeedPosition;

/// What a watch delivers. As JSON, the member `site` or `search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchTarget {
    /// The changes of a site.
    Site(SiteName),
    /// New and changed results of a search: the query of `GET /search`.
    Search(String),
}

impl WatchTarget {
    pub const fn site(&self) -> Option<&SiteName> {
        match self {
            Self::Site(site) => Some(site),
            Self::Search(_) => None,
        }
    }

    pub fn search(&self) -> Option<&str> {
        match self {
            Self::Site(_) => None,
            Self::Search(query) => Some(query),
        }
    }
}

/// A new watch, with the challenge to its receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWatch {
    pub id: String,
    pub target: WatchTarget,
    pub receiver: ManifestUrl,
    pub client: WatchClient,
    pub token_hash: KeyHash,
    pub secret: WebhookSecret,
    pub at: DateTime<Utc>,
    pub challenge: NewChallenge,
}

/// A challenge to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChallenge {
    /// The id of the message.
    pub id: String,
    /// What the receiver has to answer.
    pub challenge: String,
}

/// Limits on the number of watches. Watches whose receiver never answered a challenge have separate limits, so that creating them cannot
/// block other watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchCaps {
    /// Watches with receivers on one domain.
    pub of_receiver: u32,
    pub unconfirmed_of_receiver: u32,
    /// All watches of one client, confirmed or not.
    pub of_client: u32,
    pub unconfirmed_of_client: u32,
    pub of_all: u32,
    pub unconfirmed_of_all: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchOutcome {
    Added,
    /// A limit is reached; nothing is stored.
    Full(WatchCap),
}

/// A limit of [`WatchCaps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchCap {
    Receiver,
    UnconfirmedOfReceiver,
    Client,
    UnconfirmedOfClient,
    All,
    UnconfirmedOfAll,
}

/// A stored watch, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    pub id: String,
    pub target: WatchTarget,
    pub receiver: ManifestUrl,
    pub token_hash: KeyHash,
    pub status: WatchStatus,
    pub created_at: DateTime<Utc>,
    /// When the receiver last answered a challenge.
    pub confirmed_at: Option<DateTime<Utc>>,
    /// When the receiver last accepted changes.
    pub delivered_at: Option<DateTime<Utc>>,
    /// Time of the first failure after the last success.
    pub failing_since: Option<DateTime<Utc>>,
    /// Messages that were given up.
    pub dead_letters: u64,
}

/// A message that is waiting to be sent, or that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryLine {
    pub id: String,
    pub message: Message,
    /// Positions of the first and the last change; `None` for a challenge.
    pub positions: Option<(FeedPosition, FeedPosition)>,
    pub created_at: DateTime<Utc>,
    pub attempts: u32,
    /// When the message is sent next; `None` if it was given up.
    pub next_at: Option<DateTime<Utc>>,
    /// When the message was given up.
    pub dead_at: Option<DateTime<Utc>>,
    /// Why the last attempt failed.
    pub failure: Option<String>,
}

/// An active watch of a site with changes that are not in a message yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchWithChanges {
    pub id: String,
    pub site: SiteName,
    /// Position of the last change that is in a message.
    pub position: FeedPosition,
    /// Whether retention deleted entries of the feed after this position.
    pub is_outrun: bool,
}

/// An active watch of a search that has not been compared with all changes yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchWatch {
    pub id: String,
    /// The query of `GET /search`.
    pub query: String,
    /// Position of the last change that was compared.
    pub position: FeedPosition,
}

/// A message with changes, to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    pub id: String,
    pub watch_id: String,
    /// The position of the watch before this message.
    pub after: FeedPosition,
    pub first: FeedPosition,
    /// The position of the watch after this message.
    pub last: FeedPosition,
    pub body: String,
    /// Sites with texts in the body.
    pub sites: Vec<SiteName>,
    pub at: DateTime<Utc>,
}

/// Content of a stored message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DueContent {
    /// What the receiver has to answer.
    Challenge(String),
    /// The body with the changes.
    Changes(String),
}

impl DueContent {
    pub const fn message(&self) -> Message {
        match self {
            Self::Challenge(_) => Message::Challenge,
            Self::Changes(_) => Message::Changes,
        }
    }
}

/// A message that this worker has claimed to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueDelivery {
    pub id: String,
    pub watch_id: String,
    pub target: WatchTarget,
    pub receiver: ManifestUrl,
    pub content: DueContent,
    pub secrets: WebhookSecrets,
    pub created_at: DateTime<Utc>,
    /// Number of attempts, including this one. If the stored number differs, another worker has begun an attempt.
    pub attempts: u32,
    /// The first failure after the last success of the watch.
    pub failing_since: Option<DateTime<Utc>>,
    /// When the watch was made, if its receiver has never answered a challenge.
    pub unconfirmed_since: Option<DateTime<Utc>>,
}

/// Limits on the messages to the receivers of one domain in a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverCaps {
    pub requests: u32,
    pub challenges: u32,
}

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryEnd {
    /// The receiver accepted the message.
    Accepted,
    /// Nothing was sent. `counted_on` is the day on which the attempt was counted, if it was.
    Postponed {
        until: DateTime<Utc>,
        counted_on: Option<i32>,
    },
    Failed {
        reason: String,
        then: AfterFailure,
    },
    /// The receiver does not want more messages; the watch is deleted.
    Refused,
}
