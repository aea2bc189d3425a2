//! Tests of dumps, feed readers and retention.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use manifest::model::PolicyChoice;
use policy::{AbuseReason, FetchOutcome, Status};
use store::{
    DatabaseUrl, FeedPosition, Feedback, FeedbackCaps, FeedbackOutcome, FetchRecord, LeaseRequest, Report,
    ReportCaps, Retained, Retention, Store, StoreConfig, StoreError, SuspensionRecord,
};
use tokio::sync::mpsc;

use crate::build::{fetch, found, later, leased, seed, site, start, url, visit, visited, worker};
use crate::harness::{Column, Db};

const DAY: Duration = Duration::from_hours(24);
/// One document at two paths.
const TWICE: [&str; 2] = ["https://twice.example/agent.json", "https://twice.example/.well-known/agent.json"];

/// Tables and columns that a dump omits, each with the reason.
const LEFT_OUT: [(&str, &str); 10] = [
    ("address_clock", "expires within minutes"),
    ("feedback_salt", "is deleted after its day, so that clients cannot be recognised later"),
    ("group_owner", "belongs to a running worker"),
    ("site.address_group", "the next visit writes it"),
    ("site.lease_owner", "belongs to a running worker"),
    ("site.lease_until_ms", "belongs to a running worker"),
    ("suffix_clock", "expires within seconds"),
    ("suffix_turn", "belongs to a request of a running worker"),
    ("task_failure", "belongs to a running program"),
    ("worker", "belongs to a running worker"),
];
/// Tables that the test of [`LEFT_OUT`] does not fill: the target has its own migrations, and an export first moves the rows of
/// `feed_pending` to `feed`.
const NOT_FILLED: [&str; 2] = ["_sqlx_migrations", "feed_pending"];

/// Stores manifests in several versions, a removed manifest, a manifest whose capability a second document also declares and whose
/// publisher denies training, a blocked site, a suspended site, a report, seeds, and a leased site.
async fn fill(store: &Store) -> Result<()> {
    for round in 0..3 {
        let now = later(round * 60);
        let at = "https://shop.example/agent.json";
        visited(
            store,
            "shop.example",
            now,
            vec![found(at, &format!("näh\u{1f6eb} {round}"), &["book", "pay"], now)],
        )
        .await?;
    }
    let at = "https://gone.example/agent.json";
    visited(store, "gone.example", start(), vec![found(at, "gone", &["book"], start())]).await?;
    visited(store, "gone.example", later(9), vec![fetch(at, FetchOutcome::Gone, later(9))]).await?;
    let twice = TWICE.map(|at| FetchRecord {
        training: PolicyChoice::Deny,
        ..found(at, "the same", &["book", "pay"], start())
    });
    visited(store, "twice.example", start(), twice.into()).await?;
    store.site_block(&site("left.example"), "asked by mail", later(1)).await?;
    let suspension = SuspensionRecord {
        reason: AbuseReason::Other,
        note: "asked".into(),
        places: vec!["https://bad.example/agent.json".into()],
        at: later(1),
    };
    store.site_suspend(&site("spam.example"), &suspension).await?;
    let report = Report {
        at: later(5),
        site: site("shop.example"),
        capability: None,
        reason: AbuseReason::Spam,
        note: "copies".into(),
    };
    store.report_save(&report, ReportCaps { of_site: 9, of_all: 9 }).await?;
    store.reader_key_add(&crate::reader_keys::key("web", 1)).await?;
    let listed = [crate::registry_entries::entry("example.shop/mcp", &["shop.example"], "1")];
    let position = crate::registry_entries::unfinished();
    store.registry_page_save("https://registry.example/", &listed, Some(&position), later(1)).await?;
    crate::watches::fill(store).await?;
    store.seeds_add(&[seed("waits.example"), seed("www.waits.example")], start()).await?;
    let held = leased(store, "held.example", later(2)).await?.token;
    store.visit_save(&held, &visit("held.example", later(2), Vec::new())).await?;
    let held = LeaseRequest {
        only: Some(vec![site("waits.example")]),
        ..LeaseRequest::due_now(worker("w"), 1, later(3))
    };
    store.sites_lease(&held, later(3)).await?.pop().context("a lease")?;
    store.feed_reader_save("indexer", FeedPosition(2), later(4)).await?;
    let feedback = Feedback {
        at: later(5),
        query: "book".into(),
        capability: manifest::CapabilityId::of_key("https://shop.example/agent.json#awp:book"),
        site: site("shop.example"),
        place: 1,
        client: "a".into(),
    };
    store.claim_secret_keep("secret").await?;
    assert!(store.claim_ask(&site("shop.example"), later(5), start()).await?);
    let caps = FeedbackCaps { of_client: 9, of_client_for_site: 9, of_site: 9, of_all: 9 };
    assert_eq!(store.feedback_save(&feedback, caps).await?, FeedbackOutcome::Saved);
    Ok(())
}

async fn dump(store: &Store) -> Result<Vec<String>> {
    let (sender, mut lines) = mpsc::channel(16);
    let reading = async {
        let mut all = Vec::new();
        while let Some(line) = lines.recv().await {
            all.push(line);
        }
        all
    };
    let export = async {
        let rows = store.export(&sender).await;
        drop(sender);
        rows
    };
    let (rows, all) = tokio::join!(export, reading);
    assert_eq!(rows? + 1, all.len() as u64);
    Ok(all)
}

async fn import(store: &Store, lines: &[String]) -> Result<u64, StoreError> {
    let (sender, mut receiver) = mpsc::channel(16);
    let lines = lines.to_vec();
    let mut sending = tokio::task::JoinSet::new();
    sending.spawn(async move {
        for line in lines {
            if sender.send(line).await.is_err() {
                return;
            }
        }
    });
    let rows = store.import(&mut receiver).await;
    sending.abort_all();
    rows
}

pub(crate) async fn dump_restores_everything_on_both_backends(db: Db) -> Result<()> {
    fill(&db.store).await?;
    let lines = dump(&db.store).await?;
    let (feed_id, head) = (db.store.feed_id().await?, db.store.feed_head().await?);
    let stats = db.store.stats(later(5)).await?;
    let shared = db.store.capabilities_shared_of_site(&site("twice.example")).await?;
    db.store.close().await;

    let dir = tempfile::tempdir()?;
    let elsewhere = Store::open(&StoreConfig::new(DatabaseUrl::in_data_dir(dir.path()))).await?;
    assert_eq!(import(&elsewhere, &lines).await? + 1, lines.len() as u64);
    assert_eq!(dump(&elsewhere).await?, lines);
    db.empty().await?;
    let back = Store::open(&db.config).await?;
    import(&back, &dump(&elsewhere).await?).await?;
    elsewhere.close().await;
    assert_eq!(dump(&back).await?, lines);
    assert_eq!((back.feed_id().await?, back.feed_head().await?), (feed_id, head));
    let moved = back.stats(later(5)).await?;
    assert_eq!((stats.sites_leased, moved.sites_leased), (1, 0), "leases are not moved");
    assert_eq!(
        store::Stats { sites_leased: 1, sites_due: stats.sites_due, ..moved },
        store::Stats { oldest_due_at: moved.oldest_due_at, ..stats }
    );

    assert_eq!(back.capabilities_shared_of_site(&site("twice.example")).await?, shared);
    assert_eq!((shared.len(), shared[0].members.len()), (2, 2));
    let kept = back.manifest_find(&manifest::ManifestId::of(&url(TWICE[0]))).await?.context("a manifest")?;
    assert_eq!(kept.training, PolicyChoice::Deny);
    let without_keys = "SELECT COUNT(*) FROM capability WHERE fullness IS NULL";
    assert_eq!(db.number(without_keys).await?, 0);

    // Numbers of visits and positions of the feed do not repeat after the import.
    let at = "https://shop.example/agent.json";
    visited(&back, "shop.example", later(300), vec![found(at, "later", &["book"], later(300))]).await?;
    let entries = back.feed_read(head, 9).await?;
    assert_eq!(entries.iter().map(|entry| entry.position.0).collect::<Vec<_>>(), [head.0 + 1]);
    assert!(matches!(import(&back, &lines).await, Err(StoreError::NotEmpty { .. })));
    back.close().await;
    Ok(())
}

/// A value that no column has by default; each column of a table has another one.
fn distinct_value(column: &Column, at: usize) -> String {
    match (column.table.as_str(), column.name.as_str(), column.kind.to_lowercase().as_str()) {
        ("feed_state", "id", _) => "1".to_owned(),
        (_, "document_hash", _) => "'document.hash'".to_owned(),
        (table, name, "text") => format!("'{table}.{name}'"),
        (.., "blob") => format!("x'41{:02x}'", at + 0x30),
        (.., "bytea") => format!("decode('41{:02x}', 'hex')", at + 0x30),
        _ => (at + 3).to_string(),
    }
}

/// The values of all columns of the one row of each filled table.
async fn values(db: &Db, columns: &[Column]) -> Result<Vec<Vec<String>>> {
    let mut values = Vec::with_capacity(columns.len());
    for Column { table, name, .. } in columns {
        values.push(db.texts(&format!("SELECT COALESCE(CAST({name} AS TEXT), '') FROM {table}")).await?);
    }
    Ok(values)
}

pub(crate) async fn dump_holds_every_column_of_every_table(db: Db) -> Result<()> {
    let mut columns = db.columns().await?;
    columns.retain(|column| !NOT_FILLED.contains(&column.table.as_str()));
    // other rows refer to documents
    columns.sort_by_key(|column| (column.table != "document", column.table.clone()));
    for columns in columns.chunk_by(|a, b| a.table == b.table) {
        let table = &columns[0].table;
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let row: Vec<String> =
            columns.iter().zip(0..).map(|(column, at)| distinct_value(column, at)).collect();
        db.execute(&format!("DELETE FROM {table}")).await?;
        db.execute(&format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), row.join(", ")))
            .await?;
    }
    let before = values(&db, &columns).await?;
    assert!(
        before.iter().all(|column| column.len() == 1 && !column[0].is_empty()),
        "every column has a value"
    );
    let lines = dump(&db.store).await?;
    db.store.close().await;
    db.empty().await?;
    let back = Store::open(&db.config).await?;
    import(&back, &lines).await?;
    back.close().await;

    let after = values(&db, &columns).await?;
    let lost: Vec<bool> = before.iter().zip(&after).map(|(before, after)| before != after).collect();
    let mut left_out = BTreeSet::new();
    for (column, _) in columns.iter().zip(&lost).filter(|(_, is_lost)| **is_lost) {
        let mut of_table = columns.iter().zip(&lost).filter(|(other, _)| other.table == column.table);
        let is_whole_table = of_table.all(|(_, is_lost)| *is_lost);
        let name = format!("{}.{}", column.table, column.name);
        left_out.insert(if is_whole_table { column.table.clone() } else { name });
    }
    assert_eq!(left_out, LEFT_OUT.iter().map(|(name, _)| (*name).to_owned()).collect());
    Ok(())
}

pub(crate) async fn import_of_a_damaged_dump_changes_nothing(db: Db) -> Result<()> {
    fill(&db.store).await?;
    let lines = dump(&db.store).await?;
    db.store.close().await;
    db.empty().await?;
    let store = Store::open(&db.config).await?;
    let line = |error| match error {
        Err(StoreError::BadDump { line, .. }) => line,
        other => panic!("{other:?}"),
    };
    assert_eq!(line(import(&store, &[]).await), 1);
    assert_eq!(line(import(&store, &["{\"agentdex_dump\":99}".into()]).await), 1);
    assert_eq!(line(import(&store, lines.get(..1).context("a line")?).await), 1);
    for broken in ["[\"site\",[1]]", "[\"nothing\",[]]", "[\"block\",[1,\"a\",2]]", "no JSON"] {
        let mut lines = lines.clone();
        lines[4] = broken.into();
        assert_eq!(line(import(&store, &lines).await), 5);
        assert_eq!(store.stats(start()).await?.sites, 0);
    }
    let site_state = lines.iter().position(|line| line.starts_with("[\"site_state\"")).context("a state")?;
    for number in ["9223372036854775807", "2147483648", "-1", "1.5"] {
        let mut lines = lines.clone();
        let mut row: serde_json::Value = serde_json::from_str(&lines[site_state])?;
        row[1][3] = serde_json::from_str(number)?;
        lines[site_state] = row.to_string();
        let error = import(&store, &lines).await.expect_err("a counter out of range is refused").to_string();
        let named = error.contains(&format!("line {}", site_state + 1)) && error.contains("column visits");
        assert!(named, "{error}");
    }
    // a NUL that an earlier version stored in an embedded database
    let mut with_nul = lines.clone();
    let block = lines.iter().position(|line| line.starts_with("[\"block\"")).context("a block")?;
    let mut row: serde_json::Value = serde_json::from_str(&lines[block])?;
    let reason = row[1][1].as_str().context("a reason")?.to_owned();
    row[1][1] = format!("{reason}\0").into();
    with_nul[block] = row.to_string();
    import(&store, &with_nul).await?;
    assert!(dump(&store).await?.contains(&lines[block]), "{reason}");
    store.close().await;
    Ok(())
}

pub(crate) async fn imports_or_refuses_dumps_of_earlier_schemas(db: Db) -> Result<()> {
    let refused = async |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().copied().map(str::to_owned).collect();
        import(&db.store, &lines).await.expect_err("an import of another schema is refused").to_string()
    };
    let newer = refused(&[r#"{"agentdex_dump":1,"schema":99}"#]).await;
    assert!(newer.contains("the dump has schema 99") && newer.contains("use the newer program"), "{newer}");
    let earlier = refused(&[r#"{"agentdex_dump":1}"#, r#"["document",["aa","00",1,1]]"#]).await;
    assert!(earlier.contains("table document") && earlier.contains("earlier than 10"), "{earlier}");

    // Schema 11: sites have six columns, and the bytes of a compacted one begin with its status.
    let packed = "0101000366ff3000091e81dcceab0681ffd3ab0600070007070304204e0304204f03042050030420510304205203042053020420540304\
                  051a106170692e73686f702e6578616d706c6581e0fcb706818382b80627a09c0103ff116120776f7264206f6620697473206f776ef703\
                  81e0fcb70691fcfcb70609";
    let packed: String = packed.split_whitespace().collect();
    let site_row = |name: &str, rest: &str| format!(r#"["site",["{name}",2,1728000000000,4,{rest}]]"#);
    let lines = [
        r#"{"agentdex_dump":1}"#.to_owned(),
        r#"["feed_state",[1,"0123456789abcdef0123456789abcdef",0,0]]"#.to_owned(),
        site_row("expanded.example", "null,null"),
        site_row("shop.example", &format!(r#""{packed}",7"#)),
    ];
    assert_eq!(import(&db.store, &lines).await?, 3);
    let shop = db.store.site_report(&site("shop.example"), 1).await?.context("a report")?;
    assert_eq!((shop.summary.status, shop.state.visits), (Status::Fresh, 7));
    assert_eq!((shop.state.failures_in_row, shop.state.hosts.len()), (3, 3));
    assert_eq!(shop.state.last_visit_at.map(|at| at.timestamp()), Some(0x66ff_3000));
    let columns = "SELECT COUNT(*) FROM site WHERE compacted_status = 'fresh' AND compacted_failures = 3";
    assert_eq!(db.number(columns).await?, 1);
    Ok(())
}

/// In schema 13, manifests and capabilities lack later columns, and there are no declarations.
pub(crate) async fn declarations_of_an_earlier_dump_are_grouped_at_the_next_visit(db: Db) -> Result<()> {
    fill(&db.store).await?;
    let mut lines = Vec::new();
    for line in dump(&db.store).await? {
        let Ok((table, mut values)) = serde_json::from_str::<(String, Vec<serde_json::Value>)>(&line) else {
            lines.push(r#"{"agentdex_dump":1,"schema":13}"#.to_owned());
            continue;
        };
        let added = match table.as_str() {
            "declaration" | "capability_search_count" => continue,
            "manifest" | "suspension" => 5,
            "capability" => 3,
            "registry_entry" | "registry_position" | "watch" => 2,
            _ => 0,
        };
        values.truncate(values.len() - added);
        lines.push(serde_json::json!([table, values]).to_string());
    }
    db.store.close().await;
    db.empty().await?;
    let store = Store::open(&db.config).await?;
    assert_eq!(import(&store, &lines).await? + 1, lines.len() as u64);
    assert!(store.capabilities_shared_of_site(&site("twice.example")).await?.is_empty());
    let registry = store.registry_position("https://registry.example/").await?;
    assert_eq!(registry, None, "entries without ranks are read again");
    let fetches = TWICE.map(|at| found(at, "the same", &["book", "pay"], later(300)));
    visited(&store, "twice.example", later(300), fetches.into()).await?;
    assert_eq!(store.capabilities_shared_of_site(&site("twice.example")).await?.len(), 2);
    store.close().await;
    Ok(())
}

pub(crate) async fn retention_keeps_entries_that_registered_readers_need(Db { store, .. }: Db) -> Result<()> {
    for round in 0..6 {
        let now = start() + DAY * round;
        let at = "https://shop.example/agent.json";
        visited(&store, "shop.example", now, vec![found(at, &format!("{round}"), &["book"], now)]).await?;
    }
    let now = start() + DAY * 10;
    assert_eq!(store.retain(&Retention::default(), now).await?, Retained::default());
    store.feed_reader_save("slow", FeedPosition(2), now).await?;
    store.feed_reader_save("fast", FeedPosition(6), now).await?;
    // The first three entries are older than seven days, and the slow reader has read two of them.
    let week = Retention { feed: Some(DAY * 7 + Duration::from_secs(1)), versions: None };
    let held = Some("slow".to_owned());
    let cut = |feed_entries, feed_held_back_by| Retained { feed_entries, feed_held_back_by, versions: 0 };
    assert_eq!(store.retain(&week, now).await?, cut(2, held.clone()));
    assert_eq!(store.retain(&week, now).await?, cut(0, held));
    assert_eq!(store.feed_first().await?, FeedPosition(3));
    let positions = async |after| -> Result<Vec<i64>, StoreError> {
        Ok(store.feed_read(FeedPosition(after), 9).await?.iter().map(|entry| entry.position.0).collect())
    };
    assert_eq!(positions(2).await?, [3, 4, 5, 6]);
    assert_eq!(positions(0).await?, [3, 4, 5, 6]);
    store.feed_reader_save("slow", FeedPosition(4), now).await?;
    assert_eq!(store.retain(&week, now).await?, cut(1, None));
    let outrun = positions(2).await;
    assert!(matches!(outrun, Err(StoreError::FeedOutrun { first: FeedPosition(4), .. })), "{outrun:?}");
    assert!(store.feed_reader_forget("slow").await? && !store.feed_reader_forget("slow").await?);
    let readers = store.feed_readers().await?;
    assert_eq!((readers.len(), readers[0].name.as_str()), (1, "fast"));
    // Removed entries stay removed, and positions continue with the next change.
    let all = Retention { feed: Some(Duration::ZERO), versions: Some(DAY * 7) };
    assert_eq!(store.retain(&all, now).await?, Retained { versions: 3, ..cut(3, None) });
    assert!(positions(6).await?.is_empty());
    assert_eq!(store.feed_head().await?, FeedPosition(6));
    let id = manifest::ManifestId::of(&url("https://shop.example/agent.json"));
    assert_eq!(store.manifest_versions(&id, 100).await?.len(), 3);
    assert_eq!(store.stats(now).await?.documents, 3);
    let never = Retention { feed: None, versions: Some(Duration::ZERO) };
    assert_eq!(store.retain(&never, now).await?.versions, 2);
    assert_eq!(
        store.manifest_versions(&id, 100).await?.len(),
        1,
        "the current version is kept regardless of its age"
    );
    Ok(())
}
