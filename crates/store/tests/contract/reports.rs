//! Reports about sites: stored once, within caps, counted, dismissed, and deleted by age.

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use manifest::CapabilityId;
use policy::AbuseReason;
use store::{Report, ReportCap, ReportCaps, ReportFilter, ReportOutcome, ReportedSite, SuspensionRecord};

use crate::build::{later, site, start};
use crate::harness::Db;

const WIDE: ReportCaps = ReportCaps { of_site: 9, of_all: 99 };

fn report(about: &str, note: &str, at: DateTime<Utc>) -> Report {
    Report { at, site: site(about), capability: None, reason: AbuseReason::Spam, note: note.into() }
}

fn of_site(about: &str) -> ReportFilter {
    ReportFilter { site: Some(site(about)), ..ReportFilter::default() }
}

pub(crate) async fn reports_are_stored_once_counted_and_dismissed(Db { store, .. }: Db) -> Result<()> {
    let first = report("spam.example", "copies \u{1f6eb}\0 of one text", start());
    assert_eq!(store.report_save(&first, WIDE).await?, ReportOutcome::Saved);
    let again = Report { at: later(1), ..first.clone() };
    assert_eq!(store.report_save(&again, WIDE).await?, ReportOutcome::Duplicate);
    let capability = Some(CapabilityId::of_key("https://spam.example/agent.json#awp:book"));
    let about_one = Report { capability: capability.clone(), at: later(2), ..first.clone() };
    assert_eq!(store.report_save(&about_one, WIDE).await?, ReportOutcome::Saved);
    let other = Report { reason: AbuseReason::Malware, ..report("bad.example", "", later(3)) };
    assert_eq!(store.report_save(&other, WIDE).await?, ReportOutcome::Saved);

    let all = store.reports_page(&ReportFilter::default(), None, 9).await?;
    let seen: Vec<_> =
        all.iter().map(|line| (line.report.site.as_str(), line.report.reason.as_str())).collect();
    assert_eq!(seen, [("bad.example", "malware"), ("spam.example", "spam"), ("spam.example", "spam")]);
    assert_eq!((&all[1].report.capability, all[1].report.at), (&capability, later(2)));
    assert!(all[2].report.note.starts_with("copies \u{1f6eb}") && !all[2].report.note.contains('\0'));
    assert_eq!(store.reports_page(&ReportFilter::default(), Some(all[0].id), 1).await?, all[1..2]);
    assert_eq!(store.reports_page(&of_site("bad.example"), None, 9).await?, all[..1]);

    let suspension =
        SuspensionRecord { reason: AbuseReason::Spam, note: String::new(), places: Vec::new(), at: later(4) };
    store.site_suspend(&site("spam.example"), &suspension).await?;
    let counted = |about: &str, reports, latest_at, is_suspended| ReportedSite {
        site: site(about),
        reports,
        latest_at,
        is_suspended,
    };
    let listed = store.reports_by_site(9).await?;
    let expected = [counted("spam.example", 2, later(2), true), counted("bad.example", 1, later(3), false)];
    assert_eq!(listed, expected, "reports remain after a suspension");
    assert_eq!(store.reports_by_site(1).await?, expected[..1]);

    let one = ReportFilter { id: Some(all[1].id), ..ReportFilter::default() };
    assert_eq!(store.reports_dismiss(&one).await?, 1);
    store.site_block(&site("spam.example"), "asked", later(5)).await?;
    assert!(store.reports_page(&of_site("spam.example"), None, 9).await?.is_empty(), "a block deletes them");
    assert_eq!(store.reports_dismiss(&ReportFilter::default()).await?, 1);
    Ok(())
}

/// Ten reports about a site are kept, regardless of reports about other sites.
pub(crate) async fn reports_have_caps(Db { store, .. }: Db) -> Result<()> {
    let caps = ReportCaps { of_site: 12, of_all: 24 };
    let mut number = 0;
    for (about, count, wanted) in [
        ("spam.example", 12, ReportOutcome::Saved),
        ("spam.example", 1, ReportOutcome::Full(ReportCap::Site)),
        ("bad.example", 12, ReportOutcome::Saved),
        ("worse.example", 4, ReportOutcome::Saved),
        ("worse.example", 1, ReportOutcome::Full(ReportCap::All)),
    ] {
        for _ in 0..count {
            number += 1;
            let saved = store.report_save(&report(about, &format!("note {number}"), start()), caps).await?;
            assert_eq!(saved, wanted, "{number} {about}");
        }
    }
    let left = store.reports_page(&ReportFilter::default(), None, 99).await?;
    let of = |about: &str| -> Vec<&str> {
        let lines = left.iter().filter(|line| line.report.site.as_str() == about);
        lines.map(|line| line.report.note.as_str()).collect()
    };
    assert_eq!((of("spam.example").len(), of("bad.example").len(), of("worse.example").len()), (10, 10, 4));
    assert_eq!(of("spam.example").first(), Some(&"note 10"), "the latest reports were replaced");
    Ok(())
}

pub(crate) async fn old_reports_are_deleted(Db { store, .. }: Db) -> Result<()> {
    store.report_save(&report("spam.example", "old", start()), WIDE).await?;
    store.report_save(&report("spam.example", "newer", start() + TimeDelta::days(2)), WIDE).await?;
    store.housekeeping(start() + TimeDelta::days(90)).await?;
    assert_eq!(store.reports_page(&ReportFilter::default(), None, 9).await?.len(), 2);
    store.housekeeping(start() + TimeDelta::days(91)).await?;
    let left = store.reports_page(&ReportFilter::default(), None, 9).await?;
    assert_eq!(left.iter().map(|line| line.report.note.as_str()).collect::<Vec<_>>(), ["newer"]);
    Ok(())
}
