//! Visits saved per second by the store, one by one and in batches, compared with the same rows written by hand.
//!
//! The three take turns, so that other load on the machine affects all of them equally. Before that, two sites are compared
//! table by table: the hand-written transaction must write exactly the rows that the store writes.

use std::time::Duration;

use manifest::SiteName;
use store::{Backend, DatabaseUrl, LeasedSite, Store};

use crate::by_hand::{Forms, Hand};
use crate::visits::{Finding, visit};
use crate::{WORKERS, clock, request};

const ROUNDS: usize = 6;
/// Visits saved in each way per round.
const VISITS: usize = 320;
/// Visits saved by one transaction, as in a crawl of many sites.
const TOGETHER: usize = 16;

/// Every column that a visit writes, except numbers that the database assigns and bytes that differ between sites.
const ROWS: [(&str, &str, &[&str]); 11] = [
    (
        "site",
        "name",
        &[
            "next_visit_at_ms",
            "lease_until_ms",
            "fence",
            "priority",
            "visits_at_rest",
            "lease_owner",
            "length(packed)",
            "address_group",
            "compacted_status",
            "compacted_failures",
            "compacted_last_visit_at_ms",
        ],
    ),
    (
        "site_state",
        "name",
        &[
            "status",
            "first_seen_at_ms",
            "visits",
            "changes",
            "first_visit_at_ms",
            "last_visit_at_ms",
            "last_end",
            "next_visit_reason",
            "failures_in_row",
            "negatives_in_row",
            "paths_checked",
            "hinted_at_ms",
            "parked_until_ms",
            "parked_reason",
            "parked_progress",
            "manifests",
            "capabilities",
            "formats",
        ],
    ),
    (
        "host",
        "site",
        &["host", "site", "seeded", "next_ok_at_ms", "not_before_ms", "requests_today", "requests_day"],
    ),
    (
        "robots",
        "site",
        &[
            "host",
            "site",
            "kind",
            "cause",
            "status",
            "body",
            "fetched_at_ms",
            "expires_at_ms",
            "failures_in_row",
            "etag",
            "last_modified",
        ],
    ),
    (
        "visit",
        "site",
        &[
            "started_at_ms",
            "ended_at_ms",
            "visit_end",
            "status",
            "next_visit_at_ms",
            "next_visit_reason",
            "requests",
            "bytes_in",
            "dns_ms",
            "connect_ms",
            "tls_ms",
            "ttfb_ms",
            "body_ms",
            "outcomes",
            "crawler_version",
            "length(fetches) / 50",
        ],
    ),
    (
        "resource",
        "site",
        &[
            "url",
            "discovery",
            "linked_from",
            "outcome",
            "status",
            "etag",
            "last_modified",
            "cache",
            "fresh_until_ms",
            "length(content_hash)",
            "fetched_at_ms",
            "changed_at_ms",
            "misses_in_row",
            "document_hash",
        ],
    ),
    (
        "manifest",
        "site",
        &[
            "url",
            "format",
            "status",
            "version",
            "length(content_hash)",
            "capabilities",
            "first_seen_at_ms",
            "last_seen_at_ms",
            "changed_at_ms",
            "removed_at_ms",
            "conformance",
        ],
    ),
    (
        "manifest_version",
        "(SELECT site FROM manifest WHERE id = manifest_id)",
        &[
            "version",
            "length(content_hash)",
            "length(document_hash)",
            "length(model) / 50",
            "capabilities",
            "findings",
            "first_seen_at_ms",
            "last_seen_at_ms",
        ],
    ),
    (
        "document",
        "(SELECT site FROM manifest WHERE manifest.content_hash = hash)",
        &["length(body) / 50", "bytes", "first_seen_at_ms"],
    ),
    ("capability", "site", &["length(id)", "native_id", "name", "kind"]),
    ("capability_type", "site", &["name", "declared"]),
];

/// Visits per second in each way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rates {
    pub(crate) one_by_one: f64,
    pub(crate) together: f64,
    pub(crate) by_hand: f64,
}

/// Measures visits with one result. Needs three times [`ROUNDS`] times [`VISITS`] due sites.
pub(crate) async fn measure(store: &Store, url: &DatabaseUrl, finding: Finding) -> Rates {
    let mut hands = Vec::new();
    for _ in 0..if matches!(url, DatabaseUrl::Sqlite(_)) { 1 } else { WORKERS } {
        hands.push(Hand::open(url).await);
    }
    let forms = same_rows(store, &mut hands[0], finding).await;
    let mut spent = [Duration::ZERO; 3];
    for _ in 0..ROUNDS {
        let leased = lease(store, VISITS).await;
        let began = clock();
        one_by_one(store, &leased, finding).await;
        spent[0] += began.elapsed();
        let leased = lease(store, VISITS).await;
        let began = clock();
        together(store, &leased, finding).await;
        spent[1] += began.elapsed();
        let leased = lease(store, VISITS).await;
        let began = clock();
        hands = by_hand(hands, &leased, finding, &forms).await;
        spent[2] += began.elapsed();
    }
    #[expect(clippy::cast_precision_loss, reason = "a few thousand visits")]
    let [one_by_one, together, by_hand] = spent.map(|spent| (ROUNDS * VISITS) as f64 / spent.as_secs_f64());
    Rates { one_by_one, together, by_hand }
}

async fn lease(store: &Store, sites: usize) -> Vec<LeasedSite> {
    let leased =
        store.sites_lease(&request(0, u32::try_from(sites).unwrap()), crate::visits::start()).await.unwrap();
    assert_eq!(leased.len(), sites, "too few sites are due");
    leased
}

fn shares(leased: &[LeasedSite], workers: usize) -> Vec<Vec<LeasedSite>> {
    let each = leased.len().div_ceil(workers);
    leased.chunks(each).map(<[LeasedSite]>::to_vec).collect()
}

async fn one_by_one(store: &Store, leased: &[LeasedSite], finding: Finding) {
    let mut workers = tokio::task::JoinSet::new();
    for share in shares(leased, WORKERS) {
        let store = store.clone();
        workers.spawn(async move {
            for leased in share {
                store.visit_save(&leased.token, &visit(&leased.token.site, finding)).await.unwrap();
            }
        });
    }
    workers.join_all().await;
}

async fn together(store: &Store, leased: &[LeasedSite], finding: Finding) {
    let writers = if store.backend() == Backend::Sqlite { 1 } else { WORKERS };
    let mut workers = tokio::task::JoinSet::new();
    for share in shares(leased, writers) {
        let store = store.clone();
        workers.spawn(async move {
            for leased in share.chunks(TOGETHER) {
                let visits: Vec<_> = leased.iter().map(|leased| visit(&leased.token.site, finding)).collect();
                let batch: Vec<_> = leased.iter().map(|leased| &leased.token).zip(&visits).collect();
                for saved in store.visits_save(&batch).await.unwrap() {
                    saved.unwrap();
                }
            }
        });
    }
    workers.join_all().await;
}

async fn by_hand(hands: Vec<Hand>, leased: &[LeasedSite], finding: Finding, forms: &Forms) -> Vec<Hand> {
    let shares = shares(leased, hands.len());
    let mut workers = tokio::task::JoinSet::new();
    for (mut hand, share) in hands.into_iter().zip(shares) {
        let forms = forms.clone();
        workers.spawn(async move {
            for leased in share {
                hand.save(&leased.token, finding, &forms).await;
            }
            hand
        });
    }
    workers.join_all().await
}

/// Saves one visit in each way and compares all their rows. Returns the values in the store's own encoding.
async fn same_rows(store: &Store, hand: &mut Hand, finding: Finding) -> Forms {
    let [ours, theirs] = &lease(store, 2).await[..] else { panic!("two sites") };
    store.visit_save(&ours.token, &visit(&ours.token.site, finding)).await.unwrap();
    let (site, found) = (&ours.token.site, finding == Finding::Manifest);
    let fetches = hand.bytes("SELECT fetches FROM visit WHERE site = $1", site).await;
    let mut forms = Forms { fetches, ..Forms::default() };
    if found {
        let model = "SELECT model FROM manifest_version WHERE manifest_id = (SELECT id FROM manifest WHERE site = $1)";
        forms.model = hand.bytes(model, site).await;
        let document =
            "SELECT body FROM document WHERE hash = (SELECT content_hash FROM manifest WHERE site = $1)";
        forms.document = hand.bytes(document, site).await;
    }
    hand.save(&theirs.token, finding, &forms).await;
    store.feed_head().await.unwrap();
    let feed = ("feed", "site", &["at_ms", "change", "reason"][..]);
    for (table, of, columns) in ROWS.into_iter().chain([feed]) {
        let rows = left(hand, table, of, columns, site).await;
        assert_eq!(rows, left(hand, table, of, columns, &theirs.token.site).await, "{table}");
        let is_of_manifest = ROWS[5..].iter().any(|(name, ..)| *name == table) || table == "feed";
        assert_eq!(rows.is_empty(), is_of_manifest && !found, "{table}");
    }
    forms
}

/// The rows that a site has in a table, without its name.
async fn left(hand: &mut Hand, table: &str, of: &str, columns: &[&str], site: &SiteName) -> Vec<String> {
    let columns: Vec<String> =
        columns.iter().map(|column| format!("COALESCE(CAST({column} AS TEXT), '-')")).collect();
    let statement = format!(
        "SELECT {} AS row FROM {table} WHERE {of} = '{site}' ORDER BY 1",
        columns.join(" || ' ' || ")
    );
    let rows = hand.lines(statement).await;
    rows.iter().map(|row| row.replace(site.as_str(), "SITE")).collect()
}
