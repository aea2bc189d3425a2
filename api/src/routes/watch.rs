//! `/watches`: the changes of a site, or new results of a search, delivered to a webhook.
//!
//! Nothing is sent here: the crawler sends the challenge and the changes. The creator of a watch receives its token and its secret once;
//! only a hash of the token is stored.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use data_encoding::HEXLOWER;
use manifest::SiteName;
use policy::key::{IssuedKey, KEY_BYTES, KeyHash, KeyKind};
use policy::webhook::{self, Message, SECRET_BYTES, WatchClient, WatchStatus, WebhookSecret};
use runtime::customer;
use serde::Serialize;
use store::{
    DeliveryLine, NewChallenge, NewWatch, Store, Watch, WatchCap, WatchCaps, WatchOutcome, WatchTarget,
};
use subtle::ConstantTimeEq as _;
use utoipa::ToSchema;

use crate::admin::{Admin, bearer};
use crate::answers::claim::instance_secret;
use crate::answers::site::unknown;
use crate::answers::watch::{WatchRequest, WatchRequested};
use crate::clock;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};

/// Random bytes of an id, and of a challenge.
const ID_BYTES: usize = 16;
const ID_PREFIX: &str = "w";
/// Each watch costs an index lookup every few seconds, which is cheap for a few thousand watches.
/// A client has at most a twentieth of all of them, so that nineteen clients never fill the room of the others.
const CAPS: WatchCaps = WatchCaps {
    of_receiver: 10,
    unconfirmed_of_receiver: 3,
    of_client: 50,
    unconfirmed_of_client: 25,
    of_all: 1_000,
    unconfirmed_of_all: 500,
};
/// Messages that are listed for a watch.
const DELIVERIES_MAX: u32 = 50;
/// Watches on one page of the list for operators.
const LIMIT_DEFAULT: u32 = 50;
const LIMIT_MAX: u32 = 500;

/// A new watch.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WatchIssued {
    id: String,
    /// The watched site; absent for a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    site: Option<SiteName>,
    /// The query of the watched search; absent for a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    search: Option<String>,
    url: String,
    /// `pending` until the receiver has answered the challenge.
    #[schema(value_type = String)]
    status: WatchStatus,
    /// Reads and changes the watch: no other response shows it.
    token: String,
    /// Signs the messages: no other response shows it.
    secret: String,
    watch_url: String,
    message: &'static str,
}

/// The state of a watch.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WatchAnswer {
    id: String,
    /// The watched site; absent for a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    site: Option<SiteName>,
    /// The query of the watched search; absent for a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    search: Option<String>,
    url: String,
    /// `pending` until the receiver has answered a challenge, `active`, or `paused`.
    #[schema(value_type = String)]
    status: WatchStatus,
    created_at: DateTime<Utc>,
    /// When the receiver last answered a challenge.
    confirmed_at: Option<DateTime<Utc>>,
    /// When it last accepted changes.
    delivered_at: Option<DateTime<Utc>>,
    /// The first failure after that; null if the last attempt succeeded.
    failing_since: Option<DateTime<Utc>>,
    /// Messages that are waiting to be sent, newest first.
    waiting: Vec<DeliveryAnswer>,
    /// Messages that were given up, the newest first; they are listed for 30 days.
    dead_letters: Vec<DeliveryAnswer>,
}

/// A message that is waiting to be sent, or that was given up.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryAnswer {
    /// Its `webhook-id`.
    id: String,
    /// `challenge` or `changes`.
    kind: &'static str,
    /// Position in the feed of its first change; null for a challenge.
    first_position: Option<i64>,
    last_position: Option<i64>,
    created_at: DateTime<Utc>,
    /// How often it was sent.
    attempts: u32,
    /// When it is sent next; null if it was given up.
    next_attempt_at: Option<DateTime<Utc>>,
    given_up_at: Option<DateTime<Utc>>,
    /// Why the last attempt failed.
    failure: Option<String>,
}

/// A new secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SecretIssued {
    id: String,
    /// Signs the messages: no other response shows it.
    secret: String,
    /// The previous secret also signs until this time.
    old_secret_until: DateTime<Utc>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WatchDeleted {
    id: String,
    deleted: bool,
}

/// A page of watches, for operators.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WatchesPage {
    /// By id.
    watches: Vec<WatchLine>,
    /// The cursor of the next page; null on the last one.
    next_after: Option<String>,
}

/// A watch as operators see it: without the path of the URL, which may be secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WatchLine {
    id: String,
    /// The watched site; absent for a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    site: Option<SiteName>,
    /// The query of the watched search; absent for a site.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    search: Option<String>,
    receiver_host: String,
    #[schema(value_type = String)]
    status: WatchStatus,
    created_at: DateTime<Utc>,
    delivered_at: Option<DateTime<Utc>>,
    failing_since: Option<DateTime<Utc>>,
    dead_letters: u64,
}

impl From<DeliveryLine> for DeliveryAnswer {
    fn from(line: DeliveryLine) -> Self {
        let kind = match line.message {
            Message::Challenge => "challenge",
            Message::Changes => "changes",
        };
        Self {
            id: line.id,
            kind,
            first_position: line.positions.map(|(first, _)| first.0),
            last_position: line.positions.map(|(_, last)| last.0),
            created_at: line.created_at,
            attempts: line.attempts,
            next_attempt_at: line.next_at,
            given_up_at: line.dead_at,
            failure: line.failure,
        }
    }
}

impl From<Watch> for WatchLine {
    fn from(watch: Watch) -> Self {
        Self {
            receiver_host: watch.receiver.host().to_string(),
            id: watch.id,
            site: watch.target.site().cloned(),
            search: watch.target.search().map(str::to_owned),
            status: watch.status,
            created_at: watch.created_at,
            delivered_at: watch.delivered_at,
            failing_since: watch.failing_since,
            dead_letters: watch.dead_letters,
        }
    }
}

/// Watches a site or a search: the changes, or new and changed results, are delivered to a URL that answers a challenge.
#[utoipa::path(
    post,
    path = "/watches",
    tag = "feed",
    request_body = WatchRequest,
    responses((status = 201, description = "The watch, with its token and its secret", body = WatchIssued,
        headers(("location" = String, description = "The state of the watch")))),
)]
pub(crate) async fn add(Request { app, client, query, .. }: Request, body: Bytes) -> HttpResult {
    query.only(&[])?;
    let WatchRequested { target, receiver } = WatchRequest::read(&body)?;
    let quota = app
        .limits
        .submission(client)
        .map_err(|exhausted| exhausted.problem("this address has submitted too many domains and watches"))?;
    if let WatchTarget::Site(site) = &target
        && app.store.site_summary(site).await?.is_none()
    {
        return Err(unknown(site).with_parameter("site"));
    }
    let sites = target.site().cloned().map(|site| (site, "site"));
    for (blocked, parameter) in sites.into_iter().chain([(receiver.site(), "url")]) {
        if !app.store.blocked_among(std::slice::from_ref(&blocked)).await?.is_empty() {
            let detail = format!("{blocked} opted out or is suspended");
            return Err(Problem::forbidden(detail).with_parameter(parameter));
        }
    }
    app.limits
        .watch(client)
        .map_err(|exhausted| exhausted.problem("this network has made too many watches"))?;
    let issued = IssuedKey::new(KeyKind::Watch, &rand::random::<[u8; KEY_BYTES]>());
    let watch = NewWatch {
        id: random_id(ID_PREFIX),
        target,
        receiver,
        client: WatchClient::new(&instance_secret(&app.store).await?, customer(client.address)),
        token_hash: issued.hash,
        secret: WebhookSecret::new(&rand::random::<[u8; SECRET_BYTES]>()),
        at: clock::now(),
        challenge: new_challenge(),
    };
    if let WatchOutcome::Full(cap) = app.store.watch_add(&watch, CAPS).await? {
        return Err(full(cap, &watch));
    }
    let watch_url = format!("{}/watches/{}", app.base_url(), watch.id);
    let answer = WatchIssued {
        id: watch.id,
        site: watch.target.site().cloned(),
        search: watch.target.search().map(str::to_owned),
        url: watch.receiver.to_string(),
        status: WatchStatus::Pending,
        token: issued.key,
        secret: watch.secret.as_str().to_owned(),
        message: "the receiver gets a challenge, and has to answer 200 with the value of \"challenge\" as the whole body; keep \
                  the token and the secret, which are not shown again",
        watch_url,
    };
    let location = HeaderValue::try_from(&answer.watch_url).ok();
    let mut response = unstored(StatusCode::CREATED, &answer);
    response.headers_mut().extend(location.map(|location| (header::LOCATION, location)));
    quota.write_headers(response.headers_mut());
    Ok(response)
}

/// Names the limit that is reached.
fn full(cap: WatchCap, watch: &NewWatch) -> Problem {
    let receivers = format!("receivers on {} have", watch.receiver.site());
    let (client, instance) = ("your network has", "this instance has");
    let unconfirmed = " that are not confirmed";
    let (holder, max, which) = match cap {
        WatchCap::Receiver => (&*receivers, CAPS.of_receiver, ""),
        WatchCap::UnconfirmedOfReceiver => (&*receivers, CAPS.unconfirmed_of_receiver, unconfirmed),
        WatchCap::Client => (client, CAPS.of_client, ""),
        WatchCap::UnconfirmedOfClient => (client, CAPS.unconfirmed_of_client, unconfirmed),
        WatchCap::All => (instance, CAPS.of_all, ""),
        WatchCap::UnconfirmedOfAll => (instance, CAPS.unconfirmed_of_all, unconfirmed),
    };
    let detail = format!("{holder} the maximum of {max} watches{which}");
    match cap {
        WatchCap::Receiver | WatchCap::UnconfirmedOfReceiver => {
            Problem::forbidden(detail).with_parameter("url")
        }
        WatchCap::Client | WatchCap::UnconfirmedOfClient => Problem::forbidden(detail),
        WatchCap::All | WatchCap::UnconfirmedOfAll => Problem::unavailable(detail),
    }
}

/// Whether a text has the form of the id of a watch. PostgreSQL refuses some other texts, such as those with NUL.
fn is_id(text: &str) -> bool {
    let digits = text.strip_prefix(ID_PREFIX).and_then(|rest| rest.strip_prefix('_'));
    digits.is_some_and(|digits| digits.len() == 2 * ID_BYTES && HEXLOWER.decode(digits.as_bytes()).is_ok())
}

fn random_id(prefix: &str) -> String {
    format!("{prefix}_{}", HEXLOWER.encode(&rand::random::<[u8; ID_BYTES]>()))
}

fn new_challenge() -> NewChallenge {
    NewChallenge { id: random_id("msg"), challenge: random_id("answer") }
}

/// A response that no cache stores.
fn unstored(status: StatusCode, answer: &impl Serialize) -> Response {
    let mut response = (status, axum::Json(answer)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The watch with this id, if the request has its token. The error is the same for an unknown id and a wrong token.
async fn admit(store: &Store, id: &str, headers: &HeaderMap) -> Result<Watch, Problem> {
    let refused = || {
        Problem::unauthenticated(
            "send the token of the watch as Authorization: Bearer TOKEN; a deleted watch has no token",
        )
    };
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let key = value.and_then(bearer).and_then(|key| KeyHash::of_key(KeyKind::Watch, key));
    let key = key.filter(|_| is_id(id)).ok_or_else(refused)?;
    let watch = store.watch_find(id).await?.ok_or_else(refused)?;
    let is_holder = bool::from(watch.token_hash.as_str().as_bytes().ct_eq(key.as_str().as_bytes()));
    if is_holder { Ok(watch) } else { Err(refused()) }
}

/// The state of a watch, with the messages that are waiting or were given up.
#[utoipa::path(
    get,
    path = "/watches/{id}",
    tag = "feed",
    params(("id" = String, Path, description = "The id of a watch")),
    responses((status = 200, description = "The state of the watch", body = WatchAnswer)),
    security(("watch" = [])),
)]
pub(crate) async fn show(
    Request { app, context, query, .. }: Request,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> HttpResult {
    query.only(&[])?;
    let watch = admit(&app.store, &id, &headers).await?;
    let lines = app.store.deliveries_of(&watch.id, DELIVERIES_MAX).await?;
    let (dead_letters, waiting): (Vec<_>, Vec<_>) =
        lines.into_iter().map(DeliveryAnswer::from).partition(|line| line.given_up_at.is_some());
    let answer = WatchAnswer {
        url: watch.receiver.to_string(),
        id: watch.id,
        site: watch.target.site().cloned(),
        search: watch.target.search().map(str::to_owned),
        status: watch.status,
        created_at: watch.created_at,
        confirmed_at: watch.confirmed_at,
        delivered_at: watch.delivered_at,
        failing_since: watch.failing_since,
        waiting,
        dead_letters,
    };
    context.json(&answer, Caching::Never)
}

/// Ends a watch.
#[utoipa::path(
    delete,
    path = "/watches/{id}",
    tag = "feed",
    params(("id" = String, Path, description = "The id of a watch")),
    responses((status = 200, description = "Nothing more is delivered", body = WatchDeleted)),
    security(("watch" = [])),
)]
pub(crate) async fn remove(
    Request { app, context, query, .. }: Request,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> HttpResult {
    query.only(&[])?;
    let watch = admit(&app.store, &id, &headers).await?;
    let deleted = app.store.watch_delete(&watch.id).await?;
    context.json(&WatchDeleted { id: watch.id, deleted }, Caching::Never)
}

/// A new secret of a watch. The previous secret also signs for 24 hours.
#[utoipa::path(
    post,
    path = "/watches/{id}/rotate",
    tag = "feed",
    params(("id" = String, Path, description = "The id of a watch")),
    responses((status = 200, description = "The new secret", body = SecretIssued)),
    security(("watch" = [])),
)]
pub(crate) async fn rotate(
    Request { app, query, .. }: Request,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> HttpResult {
    query.only(&[])?;
    let watch = admit(&app.store, &id, &headers).await?;
    let secret = WebhookSecret::new(&rand::random::<[u8; SECRET_BYTES]>());
    let old_secret_until = webhook::old_secret_until(clock::now());
    app.store.watch_rotate(&watch.id, &secret, old_secret_until).await?;
    let answer = SecretIssued { id: watch.id, secret: secret.as_str().to_owned(), old_secret_until };
    Ok(unstored(StatusCode::OK, &answer))
}

/// Sends a new challenge to the receiver of a watch that is not active.
#[utoipa::path(
    post,
    path = "/watches/{id}/challenge",
    tag = "feed",
    params(("id" = String, Path, description = "The id of a watch")),
    responses((status = 202, description = "The challenge is sent soon")),
    security(("watch" = [])),
)]
pub(crate) async fn challenge(
    Request { app, client, query, .. }: Request,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> HttpResult {
    query.only(&[])?;
    let watch = admit(&app.store, &id, &headers).await?;
    let quota = app
        .limits
        .submission(client)
        .map_err(|exhausted| exhausted.problem("this address has requested too many challenges"))?;
    if !app.store.watch_challenge(&watch.id, &new_challenge(), clock::now()).await? {
        return Err(Problem::bad_request("the watch is active, so its receiver needs no challenge"));
    }
    let mut response = StatusCode::ACCEPTED.into_response();
    quota.write_headers(response.headers_mut());
    Ok(response)
}

/// The watches with their receivers and failures, for operators.
#[utoipa::path(
    get,
    path = "/admin/watches",
    tag = "admin",
    params(
        ("after" = Option<String>, Query, description = "next_after of the previous page", max_length = 64),
        ("limit" = Option<u32>, Query, description = "Maximum number of results; the default is 50", minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "A page of watches", body = WatchesPage)),
    security(("admin" = [])),
)]
pub(crate) async fn list(Request { app, context, query, .. }: Request, admin: Admin) -> HttpResult {
    query.only(&["after", "limit"])?;
    let max = query.limit(LIMIT_DEFAULT, LIMIT_MAX)?;
    let after = query.one("after")?;
    if after.is_some_and(|after| !is_id(after)) {
        return Err(Problem::bad_request("\"after\" is not a next_after of a page").with_parameter("after"));
    }
    let watches = app.store.watches_page(after, max).await?;
    tracing::debug!(admin.name = admin.name, "watches listed");
    let is_full = u32::try_from(watches.len()).is_ok_and(|found| found == max);
    let next_after = watches.last().filter(|_| is_full).map(|watch| watch.id.clone());
    let watches = watches.into_iter().map(WatchLine::from).collect();
    context.json(&WatchesPage { watches, next_after }, Caching::Never)
}

/// Ends a watch, for operators.
#[utoipa::path(
    delete,
    path = "/admin/watches/{id}",
    tag = "admin",
    params(("id" = String, Path, description = "The id of a watch")),
    responses((status = 200, description = "Nothing more is delivered", body = WatchDeleted)),
    security(("admin" = [])),
)]
pub(crate) async fn end(
    Request { app, context, query, .. }: Request,
    admin: Admin,
    Path(id): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    let deleted = is_id(&id) && app.store.watch_delete(&id).await?;
    tracing::info!(admin.name = admin.name, watch = id, deleted, "watch ended");
    context.json(&WatchDeleted { id, deleted }, Caching::Never)
}
