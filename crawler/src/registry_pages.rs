//! Reads a registry page by page. [`crate::ard_registry`] and [`crate::mcp_registry`] define the requests and what a page names. The
//! entries of each page are stored before the next page is requested. No page is requested twice in one reading, unless it has too many
//! bytes: then it is requested again with fewer entries.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use manifest::budget::{Limits, PageLimits, parse_list_page};
use manifest::{ManifestUrl, RegistryEntry};
use policy::outcome::bot_wall_header;
use policy::{BodyKind, FetchOutcome, RetryAfter};
use serde_json::Value;
use store::Seed;

use crate::clock;
use crate::egress::{Cause, Head, Reply};
use crate::harvest::{Harvest, Incomplete, next_number};
use crate::page_size::PageSize;
use crate::reading::Reader;
use crate::seeds::{SeedError, fingerprint};
use crate::visit::{ASK_AGAIN, ASK_LATER, Message, StandaloneError, StandaloneRequests};

/// Maximum bytes of the token of a next page. Longer tokens are not sent back.
const TOKEN_BYTES_MAX: usize = 4 * 1_024;
/// How a registry answers a token that it does not know any more, or parameters that it does not know. A 200 without a page counts, too.
const REFUSED: [StatusCode; 4] =
    [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::GONE, StatusCode::UNPROCESSABLE_ENTITY];
/// How a registry answers a request that it does not offer.
const NOT_OFFERED: [StatusCode; 3] =
    [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED];
/// Maximum number of pages of one reading: a hundred thousand entries. The next reading continues.
const PAGES_MAX: usize = 1_000;

/// Maximum number of parsed entries of a page: as many as are requested.
pub(crate) const ENTRIES_MAX: usize = 100;
/// Each entry. Anybody who publishes in a registry writes into its pages, so an entry that exceeds these limits is left out alone.
/// Published entries have up to 4 KiB of their own metadata. A page takes at most 58 MiB.
const ENTRY: Limits = Limits { depth: 32, nodes: 4_000, scalar_bytes: 64 * 1_024, tree_bytes: 512 * 1_024 };

/// What to do about a registry that cannot be read to its last page, if the lists are followed.
const WHOLE_ALONE: &str =
    "with --follow-seeds, a registry is used only as a whole: pass it without that flag, or as a file";

/// The request for one page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PageRequest {
    pub(crate) url: ManifestUrl,
    pub(crate) limit: BodyKind,
    /// `None` for a GET request.
    pub(crate) body: Option<Value>,
}

/// The content of one page.
pub(crate) struct Page {
    /// Whether the registry lists nothing there.
    pub(crate) is_empty: bool,
    pub(crate) seeds: Vec<Seed>,
    pub(crate) entries: Vec<RegistryEntry>,
}

/// A registry in which each page contains the token of the next page.
pub(crate) trait PagedRegistry {
    /// The request for the first page, or for the page of a token; with `since`, of the entries that have changed since this time. `None`
    /// if the URL is not usable as the URL of a registry.
    fn request(
        &self,
        since: Option<DateTime<Utc>>,
        token: Option<&str>,
        size: PageSize,
    ) -> Option<PageRequest>;

    /// The member of a page that contains its entries.
    fn list(&self) -> &'static str;

    /// `None` if the response is no page of a list.
    fn read(&self, page: &Value) -> Option<Page>;

    fn next_token<'p>(&self, page: &'p Value) -> Option<&'p str>;

    /// What to do if the server is not a registry of this kind.
    fn advice(&self) -> &'static str;
}

/// Why there is no page.
enum NoPage {
    NoUrl { advice: &'static str },
    Unsent(StandaloneError),
    Unusable { status: StatusCode, reason: String, advice: &'static str },
}

impl NoPage {
    /// Whether the registry may answer another request.
    fn is_refusal(&self) -> bool {
        matches!(self, Self::Unusable { status, .. } if *status == StatusCode::OK || REFUSED.contains(status))
    }

    /// Whether the request may be sent at a later time.
    const fn is_delay(&self) -> bool {
        matches!(self, Self::Unsent(StandaloneError::Waits { .. }))
    }

    /// Whether the server was reached and does not answer this page. A page that always fails must not end all later readings.
    fn is_failure_of_page(&self) -> bool {
        match self {
            Self::Unusable { status, .. } => !self.is_refusal() && *status != StatusCode::TOO_MANY_REQUESTS,
            Self::Unsent(StandaloneError::Failed(failure)) => match failure.cause {
                Cause::TooLarge | Cause::Timeout | Cause::Late | Cause::Encoding | Cause::Protocol => true,
                Cause::NameUnknown
                | Cause::NameServers
                | Cause::Address
                | Cause::Connect
                | Cause::Tls
                | Cause::Busy
                | Cause::OtherSite => false,
            },
            Self::NoUrl { .. } | Self::Unsent(_) => false,
        }
    }

    fn has_too_many_bytes(&self) -> bool {
        matches!(self, Self::Unsent(StandaloneError::Failed(failure)) if failure.cause == Cause::TooLarge)
    }

    fn reason(&self) -> String {
        match self {
            Self::NoUrl { .. } => "it is not the base URL of a registry".to_owned(),
            Self::Unsent(error) => error.to_string(),
            Self::Unusable { reason, .. } => reason.clone(),
        }
    }

    /// Only the first page shows that a registry does not offer a list.
    fn into_error(self, base: &ManifestUrl, is_first: bool) -> SeedError {
        let (name, reason) = (base.to_string(), self.reason());
        match self {
            Self::Unusable { status, advice, .. } if is_first && NOT_OFFERED.contains(&status) => {
                SeedError::NotOffered { name, reason, advice }
            }
            Self::Unusable { advice, .. } | Self::NoUrl { advice } => {
                SeedError::Unfetched { name, reason, advice }
            }
            Self::Unsent(error) => {
                SeedError::Unfetched { name, reason, advice: without_files(error.advice()) }
            }
        }
    }
}

/// The advice for a list, for a registry, which cannot be passed as a file.
fn without_files(advice: &'static str) -> &'static str {
    match advice {
        ASK_LATER => "start again after that time",
        "pass the list as a file" => "ask its operator for access",
        other => other,
    }
}

/// The seeds of all pages that are read now, in order. A registry without entries is an error, unless only its changes were requested. If a
/// later page fails, the pages before it are used, and the next reading continues there if its position is stored.
pub(crate) async fn read_pages<R: PagedRegistry>(
    requests: &mut StandaloneRequests,
    base: &ManifestUrl,
    incomplete: Incomplete,
    registry: &R,
    mut harvest: Harvest,
) -> Result<Vec<Seed>, SeedError> {
    let mut token = harvest.resumed_at().map(str::to_owned);
    let is_resumed = token.is_some();
    let mut requested: HashSet<u64> = token.as_deref().map(fingerprint).into_iter().collect();
    let (mut seeds, mut pages, mut has_entries, mut is_complete) = (Vec::new(), 0, is_resumed, false);
    while pages < PAGES_MAX {
        let since = harvest.changed_since();
        let fetched = fetch(requests, registry, token.as_deref(), &mut harvest).await;
        if let (Err(no_page), Some(token)) = (&fetched, &token)
            && no_page.is_failure_of_page()
        {
            harvest.page_failed(token).await?;
        }
        let (next, content) = match fetched {
            Ok(fetched) => fetched,
            Err(no_page)
                if incomplete == Incomplete::Used && (pages > 0 || is_resumed && no_page.is_delay()) =>
            {
                let reason = no_page.reason();
                tracing::warn!(registry = %base, pages, reason, "the remaining pages of a registry are read later");
                break;
            }
            Err(no_page) if pages == 0 && token.is_none() && since.is_some() && no_page.is_refusal() => {
                tracing::debug!(registry = %base, reason = no_page.reason(), "a registry lists no changes");
                harvest.read_whole();
                continue;
            }
            Err(no_page) => {
                if pages == 0 && no_page.is_refusal() {
                    harvest.restart().await?;
                }
                let is_first = pages == 0 && token.is_none();
                return Err(no_page.into_error(base, is_first));
            }
        };
        has_entries |= !content.is_empty;
        if next.is_none() && !has_entries && since.is_none() {
            return Err(SeedError::Empty { name: base.to_string(), advice: registry.advice() });
        }
        seeds.extend(content.seeds);
        let Some(next) = next else {
            harvest.save(&content.entries, None).await?;
            is_complete = true;
            break;
        };
        // requesting a page again would be an endless loop
        if next.len() > TOKEN_BYTES_MAX || !requested.insert(fingerprint(&next)) {
            tracing::warn!(registry = %base, "a registry names a next page that cannot be requested");
            harvest.save_unfinished(&content.entries).await?;
            break;
        }
        harvest.save(&content.entries, Some(&next)).await?;
        token = Some(next);
        pages += 1;
    }
    harvest.log_left_out();
    if incomplete == Incomplete::Refused && (!is_complete || harvest.may_have_gaps()) {
        let reason = if is_complete {
            "a page has too many bytes, and entries between smaller pages may be missing"
        } else {
            "the last page of its list was not reached"
        };
        let reason = reason.to_owned();
        return Err(SeedError::Unfetched { name: base.to_string(), reason, advice: WHOLE_ALONE });
    }
    Ok(seeds)
}

/// Requests and reads one page: the first one, or that of a token. Returns the token of the next page. A page with too many bytes is requested
/// again with fewer entries, because one publisher can make it that long. If one entry has too many bytes and the token is a number, the page
/// counts as empty, and the next number follows.
async fn fetch<R: PagedRegistry>(
    requests: &mut StandaloneRequests,
    registry: &R,
    token: Option<&str>,
    harvest: &mut Harvest,
) -> Result<(Option<String>, Page), NoPage> {
    let since = harvest.changed_since();
    let no_url = || NoPage::NoUrl { advice: registry.advice() };
    let mut request = registry.request(since, token, harvest.page_size()).ok_or_else(no_url)?;
    loop {
        let fetched = fetch_once(requests, registry, &request).await;
        if !fetched.as_ref().is_err_and(NoPage::has_too_many_bytes) {
            return fetched;
        }
        let Some(smaller) = harvest.page_size().reduced() else {
            let Some(after) = token.and_then(next_number).filter(|_| harvest.leave_out_entry()) else {
                return fetched;
            };
            tracing::warn!(url = %request.url, "an entry of a registry has too many bytes: it is left out");
            return Ok((Some(after), Page { is_empty: true, seeds: Vec::new(), entries: Vec::new() }));
        };
        match registry.request(since, token, smaller) {
            // the operator states the number of entries
            Some(again) if again == request => return fetched,
            Some(again) => request = again,
            None => return fetched,
        }
        let entries = smaller.entries();
        tracing::info!(url = %request.url, entries, "a page of a registry has too many bytes: it is requested with fewer entries");
        harvest.reduce_page_size(smaller, token);
    }
}

async fn fetch_once<R: PagedRegistry>(
    requests: &mut StandaloneRequests,
    registry: &R,
    request: &PageRequest,
) -> Result<(Option<String>, Page), NoPage> {
    let reply = send(requests, request).await.map_err(NoPage::Unsent)?;
    let status = reply.head.status;
    let unusable = |(reason, advice)| NoPage::Unusable { status, reason, advice };
    let answer = read_page(requests.reader(), registry, reply).await.map_err(unusable)?;
    let no_list = || unusable(("its response is no page of a list".to_owned(), registry.advice()));
    let content = registry.read(&answer).ok_or_else(no_list)?;
    let next = registry.next_token(&answer).filter(|next| !next.is_empty());
    Ok((next.map(str::to_owned), content))
}

async fn send(requests: &mut StandaloneRequests, request: &PageRequest) -> Result<Reply, StandaloneError> {
    let headers = HeaderMap::new();
    let message = request.body.as_ref().map_or(Message::Get(&headers), Message::Post);
    requests.send(&request.url, request.limit, message).await
}

/// The JSON of a response, or why there is none, with what to do.
async fn read_page<R: PagedRegistry>(
    reader: &Reader,
    registry: &R,
    reply: Reply,
) -> Result<Value, (String, &'static str)> {
    let (StatusCode::OK, None, Some(body)) =
        (reply.head.status, bot_wall_header(&reply.head.headers), reply.body)
    else {
        return Err(denial(&reply.head, registry.advice()));
    };
    parse(reader, body.bytes, registry.list()).await.map_err(|reason| (reason, registry.advice()))
}

/// Parses a page of up to 16 MiB off the async runtime, without the entries that exceed [`ENTRY`].
async fn parse(reader: &Reader, bytes: Vec<u8>, list: &'static str) -> Result<Value, String> {
    let limits = PageLimits { entries: ENTRIES_MAX, each: ENTRY };
    let parsed = reader
        .run(move || parse_list_page(&bytes, &[list], &limits))
        .await
        .map_err(|error| format!("its response was not read: {error}"))?;
    let read = parsed.map_err(|error| format!("its response is not usable JSON: {error}"))?;
    if read.left_out > 0 {
        tracing::warn!(left_out = read.left_out, "entries of a page of a registry were left out");
    }
    Ok(read.page)
}

/// Why a response has no usable content, and what to do. `if_absent` is the advice if there is nothing at the URL.
pub(crate) fn denial(head: &Head, if_absent: &'static str) -> (String, &'static str) {
    let now = clock::now();
    let answered = match bot_wall_header(&head.headers) {
        Some(wall) => format!("a bot wall answered {} ({wall})", head.status),
        None => format!("the server answered {}", head.status),
    };
    let outcome = FetchOutcome::of_response(head.status.as_u16(), &head.headers);
    let limited = RetryAfter::of_response(&head.headers, outcome, now);
    let until = limited.map(|limited| limited.not_before().format("%Y-%m-%d %H:%M:%S UTC"));
    match (until, head.status) {
        (Some(until), _) if head.headers.contains_key(RETRY_AFTER) => (
            format!("{answered}, and asked for no request before {until} (Retry-After)"),
            without_files(ASK_LATER),
        ),
        (Some(until), StatusCode::TOO_MANY_REQUESTS) => {
            (format!("{answered}, so it gets no request before {until}"), without_files(ASK_LATER))
        }
        (_, status) if status.is_server_error() => (answered, ASK_AGAIN),
        (_, status) if status.is_redirection() => (answered, "name the URL to which it redirects"),
        (_, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS) => {
            (answered, "ask its operator for access")
        }
        _ => (answered, if_absent),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use runtime::ReaderLimits;
    use store::Store;
    use tokio_util::task::TaskTracker;

    use super::*;

    #[tokio::test]
    async fn a_page_is_parsed_on_the_threads_of_the_readers() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_in_data_dir(dir.path()).await.unwrap();
        let wait = Duration::from_secs(20);
        let limits = ReaderLimits { threads: 1, queue: 8, queue_wait: wait, deadline: wait };
        let tracker = TaskTracker::new();
        let reader = Reader::start(store, None, &tracker).with_limits(limits);
        let (release, released) = std::sync::mpsc::channel::<()>();
        let occupied = reader.clone();
        tracker.spawn(async move { occupied.run(move || released.recv().ok()).await });
        tokio::task::yield_now().await;
        let mut page = std::pin::pin!(parse(&reader, b"{\"servers\":[]}".to_vec(), "servers"));
        let waits = tokio::time::timeout(Duration::from_millis(50), &mut page).await;
        assert!(waits.is_err(), "the thread is occupied: {waits:?}");
        drop(release);
        assert!(page.await.unwrap()["servers"].is_array());
        let nested = format!("{}{}", "[".repeat(130), "]".repeat(130));
        let text = format!(r#"{{"servers":[{{"a":{nested}}},{{"b":1}}],"metadata":{{"nextCursor":"c"}}}}"#);
        let read = parse(&reader, text.into_bytes(), "servers").await.unwrap();
        assert_eq!(read, serde_json::json!({"servers": [{"b": 1}], "metadata": {"nextCursor": "c"}}));
        assert!(parse(&reader, b"{".to_vec(), "servers").await.unwrap_err().contains("not usable JSON"));
    }
}
