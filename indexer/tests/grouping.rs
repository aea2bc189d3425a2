//! Results that are grouped under the best of their group: near copies that call the same site, and results of the same site.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod support;

use indexer::{Grouping, IndexBuilder, SearchAnswer, SearchRequest, Searcher};
use manifest::{Capability, Publisher};
use serde_json::json;
use store::{FeedPosition, StoredManifest};

const DESCRIPTION: &str = "Search the catalogue of live webcams by place, weather and kind of view, and return the address of the \
                           stream, the local time, the resolution, and how long the camera has been online.";

fn webcams<'a>(stored: &'a mut StoredManifest, name: &str, description: &str) -> &'a mut Capability {
    let capability = support::add(stored, name, description);
    capability.invocation.url = Some("https://api.alpinecams.example/webcams".to_owned());
    capability.parameters = Some(json!({"type": "object", "properties": {
        "place": {"type": "string", "description": "City or region"},
        "weather": {"type": "string", "enum": ["sunny", "rainy"]},
        "page": {"type": "integer"}}}));
    capability
}

/// Three sites with declarations of one service, one of them its own, and a site with siblings.
fn web() -> Vec<StoredManifest> {
    let mut found = Vec::new();
    for (site, name) in [("alpinecams.example", "Alpine Cams"), ("coastcams.example", "Coast Cams")] {
        let mut stored = support::manifest(site, name);
        webcams(&mut stored, "search_webcams", &format!("{DESCRIPTION} Offered by {name}."));
        found.push(stored);
    }
    let mut same = support::manifest("mirrorcams.example", "Mirror");
    webcams(&mut same, "searchWebcams", DESCRIPTION);
    found.push(same);
    let mut other = support::manifest("skiresort.example", "Ski Resort");
    webcams(&mut other, "list_slopes", "List the slopes that have a webcam, with the depth of the snow.");
    webcams(&mut other, "block_webcam", "Block a webcam of a slope.");
    webcams(&mut other, "unblock_webcam", "Unblock a webcam of a slope.");
    found.push(other);
    found
}

fn searcher(dir: &tempfile::TempDir) -> Searcher {
    searcher_of(dir, &web())
}

fn searcher_of(dir: &tempfile::TempDir, web: &[StoredManifest]) -> Searcher {
    let builder = IndexBuilder::begin(dir.path(), "feed").unwrap();
    for stored in web {
        builder.add(stored).unwrap();
    }
    builder.finish(FeedPosition(1)).unwrap();
    Searcher::open(dir.path()).unwrap()
}

fn search(searcher: &Searcher, group_by: Grouping, limit: usize, cursor: Option<String>) -> SearchAnswer {
    let phrasings = vec!["search webcams".to_owned()];
    let request = SearchRequest { phrasings, group_by, limit, cursor, ..SearchRequest::default() };
    searcher.search(&request).unwrap()
}

#[test]
fn near_copies_are_grouped_in_one_row() {
    let dir = tempfile::tempdir().unwrap();
    let searcher = searcher(&dir);
    let ungrouped = search(&searcher, Grouping::None, 20, None);
    assert_eq!(ungrouped.hits.len(), 6);
    assert!(ungrouped.hits.iter().all(|hit| hit.group.is_none()));
    let answer = search(&searcher, Grouping::Copies, 20, None);
    assert_eq!(answer.total, 6, "every match is counted");
    let names: Vec<&str> = answer.hits.iter().map(|hit| hit.name.as_str()).collect();
    assert_eq!(names.len(), 4, "capabilities of one interface are not copies: {names:?}");
    let group = answer.hits[0].group.clone().unwrap();
    assert_eq!((group.by, group.others), (Grouping::Copies, 2));
    assert!(group.members.iter().all(|member| member.publisher == Publisher::Site), "{group:?}");
    let mut sites: Vec<&str> = group.members.iter().map(|member| member.site.as_str()).collect();
    assert_eq!(
        answer.hits[0].site.as_str(),
        "alpinecams.example",
        "the declaration of the called site comes first in the group"
    );
    sites.push(answer.hits[0].site.as_str());
    sites.sort_unstable();
    assert_eq!(sites, ["alpinecams.example", "coastcams.example", "mirrorcams.example"]);
}

#[test]
fn pages_repeat_neither_a_group_nor_its_members() {
    let dir = tempfile::tempdir().unwrap();
    let searcher = searcher(&dir);
    for group_by in [Grouping::Copies, Grouping::Site] {
        let whole = search(&searcher, group_by, 20, None);
        assert_eq!(whole.next_cursor, None);
        let (mut found, mut cursor) = (Vec::new(), None);
        loop {
            let page = search(&searcher, group_by, 1, cursor);
            found.extend(page.hits.iter().map(|hit| hit.id.clone()));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, whole.hits.iter().map(|hit| hit.id.clone()).collect::<Vec<_>>());
    }
}

#[test]
fn a_site_is_one_row_with_its_best_result() {
    let dir = tempfile::tempdir().unwrap();
    let answer = search(&searcher(&dir), Grouping::Site, 20, None);
    assert_eq!(answer.hits.len(), 4);
    let last = answer.hits.last().unwrap();
    let group = last.group.clone().unwrap();
    assert_eq!((last.site.as_str(), group.by, group.others), ("skiresort.example", Grouping::Site, 2));
    assert!(answer.hits[..3].iter().all(|hit| hit.group.is_none()));
}

/// Copies of a declaration with other addresses, on sites that rank higher because they have more results.
#[test]
fn copies_that_call_different_sites_are_not_grouped() {
    let mut web = web();
    web.truncate(1);
    for number in 0..7 {
        let site = format!("hub{number}.example");
        let mut copy = support::manifest(&site, "Hub");
        let capability =
            webcams(&mut copy, "search_webcams", &format!("{DESCRIPTION} Offered by Alpine Cams."));
        capability.invocation.url = Some(format!("https://{site}/webcams"));
        webcams(&mut copy, "search_webcams_of_a_place", "Search webcams of a place.");
        webcams(&mut copy, "search_webcams_by_weather", "Search webcams by the weather.");
        web.push(copy);
    }
    let dir = tempfile::tempdir().unwrap();
    let answer = search(&searcher_of(&dir, &web), Grouping::Copies, 20, None);
    let shown: Vec<&str> = answer.hits.iter().map(|hit| hit.site.as_str()).collect();
    assert!(shown.contains(&"alpinecams.example"), "{shown:?}");
    let group = answer.hits.iter().find(|hit| hit.site.as_str() == "alpinecams.example").unwrap();
    assert!(group.group.is_none(), "{:?}", group.group);
}

/// The service of a site is on another domain. A copy on a third site could state other sign-in URLs.
#[test]
fn copies_are_not_grouped_without_the_site_that_they_call() {
    let mut web = web();
    web.remove(0);
    let dir = tempfile::tempdir().unwrap();
    let answer = search(&searcher_of(&dir, &web), Grouping::Copies, 20, None);
    assert_eq!(answer.hits.len(), 5, "{:?}", answer.hits);
    assert!(answer.hits.iter().all(|hit| hit.group.is_none()));
}
