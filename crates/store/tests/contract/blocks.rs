//! Opt-out and suspension.

use anyhow::{Context, Result};
use manifest::{CapabilityId, ContentHash, ManifestId, SiteName};
use policy::{AbuseReason, FetchOutcome, Status};
use store::{BlockOutcome, DatedText, Store, StoreError, SuspensionOutcome, SuspensionRecord, VisitRecord};

use crate::build::{
    body, feed_after, fetch, found, later, lease, leased, request, says, seed, site, start, url, visit,
    visited,
};
use crate::claims::owned;
use crate::harness::Db;

const AT: &str = "https://sky.example/agent.json";

pub(crate) async fn block_deletes_the_data_of_a_site_and_keeps_a_tombstone(
    Db { store, .. }: Db,
) -> Result<()> {
    let name = site("sky.example");
    visited(&store, "sky.example", start(), vec![found(AT, "one", &["book"], start())]).await?;
    visited(&store, "sky.example", later(1), vec![found(AT, "two", &["book"], later(1))]).await?;
    let outcome = store.site_block(&name, "asked by mail ✉", later(2)).await?;
    assert_eq!(outcome, BlockOutcome::Blocked { manifests_removed: 1, documents_removed: 2 });
    assert_eq!(store.site_block(&name, "again", later(3)).await?, BlockOutcome::AlreadyBlocked);
    assert_eq!(feed_after(&store, 2).await?, says(&[("removed", "opted_out")]));

    let id = ManifestId::of(&url(AT));
    assert!(store.manifest_find(&id).await?.is_none() && store.manifest_versions(&id, 100).await?.is_empty());
    let capability = CapabilityId::of_key(&format!("{AT}#awp:book"));
    assert!(store.manifest_of_capability(&capability).await?.is_none());
    for text in ["one", "two"] {
        assert!(store.document_find(&ContentHash::of(&body(text))).await?.is_none());
    }
    assert!(store.semantic_types().await?.is_empty());
    let report = store.site_report(&name, 9).await?.context("the tombstone")?;
    assert_eq!(
        report.blocked.map(|block| (block.reason, block.at)),
        Some(("asked by mail ✉".into(), later(2)))
    );
    assert_eq!((report.summary.status, report.summary.next_visit_at), (Status::OptedOut, None));
    assert!(report.visits.is_empty() && report.state.resources.is_empty());
    let stats = store.stats(later(3)).await?;
    assert_eq!((stats.sites_blocked, stats.manifests, stats.documents, stats.sites_due), (1, 0, 0, 0));

    store.seeds_add(&[seed("sky.example"), seed("www.sky.example")], later(4)).await?;
    let far = later(1_000_000_000);
    assert!(store.sites_lease(&request("w", 9, far), later(4)).await?.is_empty());
    assert_eq!(store.next_due_at().await?, None);
    Ok(())
}

pub(crate) async fn block_ends_a_visit_in_progress(Db { store, .. }: Db) -> Result<()> {
    let token = leased(&store, "sky.example", start()).await?.token;
    let requested = [site("other.example"), site("sky.example")];
    assert!(store.blocked_among(&requested).await?.is_empty());
    store.site_block(&site("sky.example"), "asked", later(1)).await?;
    assert_eq!(store.blocked_among(&requested).await?, [site("sky.example")]);
    assert!(
        store
            .leases_renew(std::slice::from_ref(&token), std::time::Duration::from_mins(1), later(1))
            .await?
            .is_empty()
    );
    let record = visit("sky.example", later(1), vec![found(AT, "one", &["book"], later(1))]);
    for error in
        [store.visit_save(&token, &record).await.err(), store.standalone_end(&token, &[]).await.err()]
    {
        assert!(matches!(error, Some(StoreError::Blocked { .. })), "{error:?}");
    }
    assert_eq!(store.stats(later(1)).await?.manifests, 0);
    Ok(())
}

pub(crate) async fn unblocked_site_is_due_again(Db { store, .. }: Db) -> Result<()> {
    let name = site("sky.example");
    assert!(!store.site_unblock(&name, start()).await?);
    // A site that was never seeded can be blocked too.
    let outcome = store.site_block(&name, "asked", start()).await?;
    assert_eq!(outcome, BlockOutcome::Blocked { manifests_removed: 0, documents_removed: 0 });
    assert!(store.site_unblock(&name, later(1)).await?);
    assert_eq!(store.next_due_at().await?, None, "no seed names a host to visit");
    let report = store.site_report(&name, 1).await?.context("the site")?;
    assert_eq!(report.summary.next_visit_at, None);
    store.seeds_add(&[seed("sky.example")], later(1)).await?;
    assert!(store.next_due_at().await?.is_some_and(|at| at <= later(1)), "a seed names it");
    let leased = lease(&store, "sky.example", later(1)).await?;
    assert_eq!(leased.site.status, Status::Pending);
    store.visit_save(&leased.token, &visit("sky.example", later(1), Vec::new())).await?;
    Ok(())
}

pub(crate) async fn block_keeps_documents_of_other_sites(Db { store, .. }: Db) -> Result<()> {
    let other = "https://other.example/agent.json";
    visited(&store, "sky.example", start(), vec![found(AT, "same", &["book"], start())]).await?;
    visited(&store, "other.example", start(), vec![found(other, "same", &["book"], start())]).await?;
    visited(&store, "other.example", later(1), vec![fetch(other, FetchOutcome::NotModified, later(1))])
        .await?;
    let outcome = store.site_block(&site("sky.example"), "asked", later(2)).await?;
    assert_eq!(outcome, BlockOutcome::Blocked { manifests_removed: 1, documents_removed: 0 });
    assert!(store.document_find(&ContentHash::of(&body("same"))).await?.is_some());
    assert_eq!(store.manifests_page(None, 9).await?.len(), 1);
    Ok(())
}

const SPAM: AbuseReason = AbuseReason::Spam;

fn suspension(reason: AbuseReason, note: &str, minute: i64) -> SuspensionRecord {
    SuspensionRecord { reason, note: note.into(), places: Vec::new(), at: later(minute) }
}

pub(crate) async fn suspension_removes_a_site_until_it_is_lifted(Db { store, .. }: Db) -> Result<()> {
    let name = site("sky.example");
    visited(&store, "sky.example", start(), vec![found(AT, "one", &["book"], start())]).await?;
    let token = lease(&store, "sky.example", later(1)).await?.token;
    let spam = suspension(SPAM, "copies of one text ✉", 2);
    let outcome = store.site_suspend(&name, &spam).await?;
    assert_eq!(outcome, SuspensionOutcome::Suspended { manifests_removed: 1, documents_removed: 1 });
    let again = suspension(AbuseReason::Malware, "", 3);
    assert_eq!(store.site_suspend(&name, &again).await?, SuspensionOutcome::AlreadySuspended);
    assert_eq!(feed_after(&store, 1).await?, says(&[("removed", "suspended_spam")]));
    assert_eq!(store.suspension_find(&name).await?, Some(spam.clone()));
    assert_eq!(
        store.blocked_among(&[site("other.example"), name.clone()]).await?,
        std::slice::from_ref(&name)
    );
    let saved = store.visit_save(&token, &visit("sky.example", later(3), Vec::new())).await;
    assert!(matches!(saved, Err(StoreError::Blocked { .. })), "a visit in progress ends: {saved:?}");

    let report = store.site_report(&name, 9).await?.context("the tombstone")?;
    assert_eq!((report.suspended, report.blocked), (Some(spam), None));
    assert_eq!((report.summary.status, report.summary.next_visit_at), (Status::Suspended, None));
    assert!(report.visits.is_empty() && report.state.resources.is_empty());
    store.seeds_add(&[seed("sky.example")], later(4)).await?;
    let far = later(1_000_000_000);
    assert!(store.sites_lease(&request("w", 9, far), later(4)).await?.is_empty());
    assert_eq!(store.housekeeping(later(60 * 24 * 9)).await?.sites_compacted, 0);

    assert!(!store.site_unblock(&name, later(5)).await?, "an unblock lifts no suspension");
    assert!(store.site_unsuspend(&name, later(5)).await?);
    assert!(!store.site_unsuspend(&name, later(6)).await?);
    assert_eq!(store.next_due_at().await?, Some(later(5)));
    visited(&store, "sky.example", later(7), vec![found(AT, "one", &["book"], later(7))]).await?;
    assert_eq!(feed_after(&store, 2).await?, says(&[("added", "")]));
    Ok(())
}

pub(crate) async fn an_owner_objects_to_a_suspension_and_the_operator_answers(
    Db { store, .. }: Db,
) -> Result<()> {
    let (name, other) = (site("sky.example"), site("other.example"));
    let claim = owned(7, start());
    let leased = leased(&store, "sky.example", start()).await?;
    let record = VisitRecord { claim: Some(claim.clone()), ..visit("sky.example", start(), Vec::new()) };
    store.visit_save(&leased.token, &record).await?;
    assert!(!store.objection_save(&name, "why?", later(1)).await?, "it is not suspended");
    let places = vec![AT.to_owned(), "caaaaaaaaaaaaaaaa".to_owned()];
    let spam = SuspensionRecord { places, ..suspension(SPAM, "copies", 2) };
    store.site_suspend(&name, &spam).await?;
    store.site_suspend(&other, &suspension(SPAM, "", 2)).await?;
    assert_eq!(store.claim_find(&name).await?, Some(claim), "the key stays valid for the objection");
    assert!(!store.objection_answer(&name, "no", later(3)).await?, "there is no objection");
    assert_eq!(store.objections_list(9).await?, []);
    assert!(store.objection_save(&name, "we removed them \u{2709}", later(4)).await?);
    assert!(store.objection_save(&other, "a mistake", later(3)).await?);
    let found = store.suspended_site_find(&name).await?.context("a suspension")?;
    let text = |text: &str, minute| Some(DatedText { text: text.to_owned(), at: later(minute) });
    assert_eq!((found.suspension, found.objection), (spam, text("we removed them \u{2709}", 4)));
    assert!(store.objection_answer(&other, "it is not", later(5)).await?);
    let names = async || {
        let listed = store.objections_list(9).await?;
        Ok::<_, StoreError>(listed.into_iter().map(|found| (found.site, found.answer)).collect::<Vec<_>>())
    };
    assert_eq!(names().await?, [(name.clone(), None), (other.clone(), text("it is not", 5))]);
    assert!(store.objection_save(&other, "look again", later(6)).await?);
    assert_eq!(
        names().await?,
        [(name.clone(), None), (other.clone(), None)],
        "a new objection has no answer"
    );
    store.site_block(&other, "opted out", later(7)).await?;
    assert_eq!(names().await?, [(name.clone(), None)], "an opt-out erases the objection");
    assert!(store.site_unsuspend(&name, later(8)).await?);
    assert_eq!(store.suspended_site_find(&name).await?, None);
    Ok(())
}

pub(crate) async fn suspended_site_of_an_owner_who_opted_out_stays_closed(
    Db { store, .. }: Db,
) -> Result<()> {
    let name = site("sky.example");
    let quoting = SuspensionRecord { places: vec![AT.to_owned()], ..suspension(SPAM, "copies of Sky", 0) };
    store.site_suspend(&name, &quoting).await?;
    store.site_block(&name, "asked", later(1)).await?;
    let kept = store.suspension_find(&name).await?.context("a suspension")?;
    assert_eq!(kept, suspension(SPAM, "", 0), "an opt-out erases what may quote the site");
    assert_eq!(status_of(&store, &name).await?, Status::OptedOut);
    assert!(store.site_unblock(&name, later(2)).await?);
    assert_eq!(status_of(&store, &name).await?, Status::Suspended);
    assert_eq!(store.next_due_at().await?, None, "an owner cannot lift a suspension by opting out");
    store.site_block(&name, "asked", later(3)).await?;
    assert!(store.site_unsuspend(&name, later(4)).await?);
    assert_eq!(status_of(&store, &name).await?, Status::OptedOut);
    assert_eq!(store.next_due_at().await?, None);
    store.site_suspend(&name, &suspension(SPAM, "", 5)).await?;
    assert_eq!(status_of(&store, &name).await?, Status::OptedOut);
    Ok(())
}

async fn status_of(store: &Store, name: &SiteName) -> Result<Status> {
    Ok(store.site_summary(name).await?.context("a site")?.status)
}
