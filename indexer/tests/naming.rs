//! Documents that only others name, such as files of a site's users, are found and marked, but rank below declarations of sites.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod explained;
mod indexed;
mod support;

use explained::explanation;
use indexed::searcher;
use indexer::{FacetKey, Filters, Grouping, Hit, SearchRequest, Searcher};
use manifest::model::{SemanticType, TypeSource};
use manifest::{CapabilityId, IdentityMark, ManifestId, ManifestUrl, NamedBy, Publisher};
use policy::Status;
use store::StoredManifest;

/// A site that declares a capability poorly.
fn own(site: &str, native_id: &str, description: &str) -> StoredManifest {
    let mut stored = support::manifest(site, "Books");
    stored.status = Status::Unreachable;
    support::add(&mut stored, native_id, description);
    stored
}

/// A file of a user of the site, which declares a capability as well as possible.
fn upload(site: &str, native_id: &str, description: &str) -> StoredManifest {
    let mut stored = support::manifest(site, "Upload");
    let url = ManifestUrl::parse(&format!("https://{site}/u/someone/agent.json")).unwrap();
    stored.manifest.id = ManifestId::of(&url);
    stored.manifest.url = url;
    (stored.named_by, stored.publisher) = (NamedBy::Others, Publisher::Unknown);
    let capability = support::add(&mut stored, native_id, description);
    capability.invocation.method = Some("POST".to_owned());
    capability.invocation.url = Some(format!("https://{site}/api"));
    capability.semantic_types = vec![SemanticType {
        name: "commerce:refund".to_owned(),
        source: TypeSource::Declared,
        confidence: 1.0,
        rule: None,
    }];
    stored
}

fn found(searcher: &Searcher, query: &str, filters: Filters) -> Vec<Hit> {
    let phrasings = if query.is_empty() { Vec::new() } else { vec![query.to_owned()] };
    let request = SearchRequest { phrasings, filters, explain: true, ..SearchRequest::default() };
    searcher.search(&request).unwrap().hits
}

fn is_exact(hit: &Hit) -> bool {
    explanation(hit)["exact"] == true
}

#[test]
fn documents_that_only_others_name_rank_below_declarations_of_sites() {
    let manifests = [
        own("books.example", "cancel_order", "Cancels an order of books."),
        upload("files.example", "cancel_orders", "Cancels an order of books at once."),
    ];
    let (_dir, searcher) = searcher(&manifests);
    let hits = found(&searcher, "cancel an order", Filters::default());
    let sites: Vec<&str> = hits.iter().map(|hit| hit.site.as_str()).collect();
    assert_eq!(sites, ["books.example", "files.example"]);
    let reason = |hit: &Hit| explanation(hit).get("demoted").cloned();
    assert_eq!(reason(&hits[0]), None);
    assert_eq!(reason(&hits[1]), Some("named_by_others".into()));
    assert_eq!(hits[0].identity_marks, [IdentityMark::Unsigned, IdentityMark::Bound]);
    assert_eq!(hits[1].identity_marks, [IdentityMark::Unsigned, IdentityMark::NamedByOthers]);
    assert!(hits[0].is_of_site() && !hits[1].is_of_site());
}

#[test]
fn a_name_that_others_choose_is_not_an_exact_match() {
    let (_dir, searcher) =
        searcher(&[upload("files.example", "books.example", "Cancels an order of files.example.")]);
    let urn = "urn:air:files.example:awp:books.example";
    for text in ["books.example", "files.example", urn] {
        let hits = found(&searcher, text, Filters::default());
        assert!(!hits.iter().any(is_exact), "{text}");
        let names = Filters { names: vec![text.to_owned()], ..Filters::default() };
        assert!(found(&searcher, "", names).is_empty(), "{text}");
    }
    let all = found(&searcher, "order", Filters::default());
    assert!(
        is_exact(&found(&searcher, all[0].id.as_str(), Filters::default())[0]),
        "its own id matches exactly"
    );
}

#[test]
fn filters_exclude_documents_that_only_others_name() {
    let manifests = [
        own("books.example", "cancel_order", "Cancels an order of books."),
        upload("files.example", "cancel_orders", "Cancels an order of books at once."),
    ];
    let (_dir, searcher) = searcher(&manifests);
    for (key, value, sites) in [
        (FacetKey::Identity, "bound", vec!["books.example"]),
        (FacetKey::Identity, "named_by_others", vec!["files.example"]),
        (FacetKey::Verified, "true", vec![]),
        (FacetKey::NamedBy, "site", vec!["books.example"]),
        (FacetKey::NamedBy, "others", vec!["files.example"]),
        (FacetKey::Publisher, "books.example", vec!["books.example"]),
        (FacetKey::Publisher, "files.example", vec![]),
        (FacetKey::Site, "files.example", vec!["files.example"]),
    ] {
        let hits = found(&searcher, "", Filters::default().with(key, [value]).unwrap());
        let found: Vec<&str> = hits.iter().map(|hit| hit.site.as_str()).collect();
        assert_eq!(found, sites, "{key}={value}");
    }
}

/// A file that a catalog of the site lists, with the words of the request, does not hide what the site itself declares.
#[test]
fn a_document_of_a_user_does_not_lead_the_near_copy_at_a_usual_path() {
    let text =
        "Cancels one order of books that was placed in the last thirty days, with a full refund to the card.";
    let declared = own("books.example", "cancel_order", text);
    let mut listed = upload("books.example", "cancel_order", text);
    listed.manifest.name = Some("Books".to_owned());
    let listed = StoredManifest { named_by: NamedBy::Site, ..listed };
    let (_dir, searcher) = searcher(&[declared.clone(), listed.clone()]);
    let search = |group_by| {
        let phrasings = vec!["cancel my order of books".to_owned()];
        searcher.search(&SearchRequest { phrasings, group_by, ..SearchRequest::default() }).unwrap().hits
    };
    assert_eq!(search(Grouping::None)[0].manifest_id, listed.manifest.id, "it says more about the call");
    let hits = search(Grouping::Copies);
    assert_eq!((hits.len(), &hits[0].manifest_id), (1, &declared.manifest.id), "{hits:?}");
}

/// The site publishes one document at a path that its home page names. A user's file, and one of the customer of a host, have the same
/// text.
#[test]
fn the_near_copy_that_the_site_publishes_leads_at_any_path() {
    let text =
        "Cancels one order of books that was placed in the last thirty days, with a full refund to the card.";
    let copy = |path: &str, publisher| {
        let mut copy = upload("books.example", "cancel_order", text);
        let url = ManifestUrl::parse(&format!("https://{path}")).unwrap();
        copy.manifest.id = ManifestId::of(&url);
        let capability = &mut copy.manifest.capabilities[0];
        capability.id = CapabilityId::of_key(url.as_str());
        copy.manifest.url = url;
        StoredManifest { named_by: NamedBy::Site, publisher, ..copy }
    };
    let of_user = copy("books.example/u/someone/agent.json", Publisher::Unknown);
    let of_host = copy("shop.books.example/agent.json", Publisher::Host);
    let mut of_site = copy("books.example/api/agents.json", Publisher::Site);
    of_site.status = Status::Unreachable;
    for (manifests, leader) in [
        (vec![of_user.clone(), of_site.clone()], &of_site),
        (vec![of_user.clone(), of_host.clone()], &of_host),
        (vec![of_user, of_host.clone(), of_site.clone()], &of_site),
    ] {
        let (_dir, searcher) = searcher(&manifests);
        let phrasings = vec!["cancel my order of books".to_owned()];
        let request = SearchRequest { phrasings, group_by: Grouping::Copies, ..SearchRequest::default() };
        let hits = searcher.search(&request).unwrap().hits;
        assert_eq!((hits.len(), &hits[0].manifest_id), (1, &leader.manifest.id), "{hits:?}");
    }
}

/// A file of a user does not affect the score of its site, does not represent the site, and is not the original of its copies.
#[test]
fn user_uploads_are_not_attributed_to_the_site() {
    let site = "books.example";
    let mut declared = own(site, "cancel_order", "Cancels an order of books.");
    declared.manifest.capabilities[0].invocation.url = Some("https://api.example/cancel".to_owned());
    let alone = searcher(std::slice::from_ref(&declared));
    let score = |searcher: &Searcher| {
        let hits = found(searcher, "cancel an order", Filters::default());
        explanation(hits.iter().find(|hit| hit.is_of_site()).unwrap())["site"].as_f64()
    };
    let both = searcher(&[declared, upload(site, "cancel_orders", "Cancels an order of books at once.")]);
    let (before, after) = (score(&alone.1).unwrap(), score(&both.1).unwrap());
    assert!((before - after).abs() < 0.04, "the ranking treats the file as another site: {before} {after}");
    let request = SearchRequest {
        phrasings: vec!["cancel an order".to_owned()],
        group_by: Grouping::Site,
        ..SearchRequest::default()
    };
    let hits = both.1.search(&request).unwrap().hits;
    assert!(hits.len() == 2 && hits.iter().all(|hit| hit.group.is_none()), "{hits:?}");
}

/// A document of the site itself is the only exact match of its domain. The index does not contain documents without capabilities, so it
/// does not know whether the site has one.
#[test]
fn the_domain_is_an_exact_match_of_what_the_site_publishes_alone() {
    let at = |path: &str, id: &str, publisher: Publisher| {
        let mut stored = own("plat.example", id, "Pays a bill of plat.example.");
        stored.manifest.url = ManifestUrl::parse(&format!("https://{path}")).unwrap();
        stored.manifest.id = ManifestId::of(&stored.manifest.url);
        stored.publisher = publisher;
        let capability = &mut stored.manifest.capabilities[0];
        capability.key = format!("{}#awp:{id}", stored.manifest.url);
        capability.id = CapabilityId::of_key(&capability.key);
        stored
    };
    let site = at("plat.example/agent.json", "own", Publisher::Site);
    let customer = at("evil.plat.example/agent.json", "customer", Publisher::Host);
    let upload = at("plat.example/u/x.json", "upload", Publisher::Unknown);
    let other = own("other.example", "plat.example", "Pays a bill of plat.example.");
    let exact = |manifests: &[StoredManifest], text: &str| {
        let (_dir, searcher) = searcher(manifests);
        let hits = found(&searcher, text, Filters::default()).into_iter().filter(is_exact);
        let mut ids: Vec<String> = hits.map(|hit| hit.native_id).collect();
        ids.sort();
        ids
    };
    let all = [site, customer.clone(), upload.clone(), other.clone()];
    assert_eq!(exact(&all, "plat.example"), ["own"]);
    assert_eq!(exact(&all, "evil.plat.example"), ["customer"]);
    for form in [
        "https://plat.example/",
        "www.plat.example",
        "plat.example.",
        "PLAT.example:443",
        "@plat.example",
        "did:web:plat.example",
        "urn:air:plat.example:agents:x",
        "plat\u{ff0e}example",
    ] {
        let impostor = own("evil.example", form, "Pays a bill of plat.example.");
        let all = [all[0].clone(), impostor];
        assert_eq!(exact(&all, form), ["own"], "{form}");
    }
    let impostor = own("evil.example", "https://unknown.plat.example/", "Pays a bill of plat.example.");
    let both = [all[0].clone(), impostor];
    assert_eq!(exact(&both, "https://unknown.plat.example/"), [""; 0], "its site is known");
    assert_eq!(exact(&[customer, upload.clone(), other.clone()], "plat.example"), [""; 0]);
    assert_eq!(exact(&[upload, other.clone()], "plat.example"), [""; 0], "no other site may use the domain");
    assert_eq!(exact(&[other], "plat.example"), ["plat.example"], "the index does not know the domain");
}

/// Also in quotes, in a sentence, and in the name of a server.
#[test]
fn a_request_with_a_known_domain_has_exact_matches_of_its_owner_alone() {
    for (text, expected) in [
        ("victim.example,", vec!["victim.example"]),
        ("(victim.example)", vec!["victim.example"]),
        ("[victim](https://victim.example)", vec!["victim.example"]),
        ("https:victim.example", vec!["victim.example"]),
        ("did:wba:victim.example", vec!["victim.example"]),
        ("victim[.]example", vec!["victim.example"]),
        ("\"victim.example\"", vec!["victim.example"]),
        ("victim\u{2024}example", vec!["victim.example"]),
        ("example.victim/mcp", vec!["victim.example"]),
        ("victim.example:pay", vec![]),
        ("open account at victim.example", vec![]),
    ] {
        let owner = own("victim.example", "example.victim/mcp", "Pays a bill.");
        let impostor = own("evil.example", text, "Pays a bill at victim.example.");
        let (_dir, searcher) = searcher(&[impostor, owner]);
        let hits = found(&searcher, text, Filters::default()).into_iter().filter(is_exact);
        let sites: Vec<String> = hits.map(|hit| hit.site.to_string()).collect();
        assert_eq!(sites, expected, "{text}");
    }
}

/// Others repeat the request in their texts, and have more results.
#[test]
fn results_of_a_site_that_the_request_names_among_other_words_rank_first() {
    for text in [
        "open account at victim.example",
        "victim.example account",
        "the victim.example account",
        "victim.example:account",
        "account api.victim.example",
        "account example.victim/mcp",
    ] {
        let owner = own("victim.example", "open", "Opens an account.");
        let mut manifests = vec![owner];
        for number in 0..12 {
            manifests.push(own(&format!("evil{number}.example"), text, &format!("{text}, {text} {number}")));
        }
        let (_dir, searcher) = searcher(&manifests);
        let hits = found(&searcher, text, Filters::default());
        assert_eq!(hits.first().map(|hit| hit.site.as_str()), Some("victim.example"), "{text}");
        assert_eq!(explanation(&hits[0])["named_site"], true, "{text}");
    }
}

/// Somebody links to a file that a user uploaded and to the host of a customer, before and after the bank's own card is read.
#[test]
fn what_others_publish_below_a_named_domain_does_not_lead() {
    let bank = own("victim.example", "open", "Opens an account.");
    let text = "open account at victim.example";
    let mut below = Vec::new();
    for (url, publisher, named_by) in [
        ("https://victim.example/u/x.json", Publisher::Unknown, NamedBy::Others),
        ("https://evil.victim.example/a.json", Publisher::Host, NamedBy::Others),
        ("https://own.victim.example/a.json", Publisher::Host, NamedBy::Site),
    ] {
        let mut document = own("victim.example", text, &format!("{text} {url}"));
        document.manifest.url = ManifestUrl::parse(url).unwrap();
        document.manifest.id = ManifestId::of(&document.manifest.url);
        (document.publisher, document.named_by) = (publisher, named_by);
        below.push(document);
    }
    let before: Vec<_> = below.iter().cloned().chain([bank.clone()]).collect();
    let after: Vec<_> = [bank].into_iter().chain(below).collect();
    for manifests in [before, after] {
        let (_dir, searcher) = searcher(&manifests);
        let hits = found(&searcher, text, Filters::default());
        let of_named: Vec<_> = hits.iter().filter(|hit| explanation(hit)["named_site"] == true).collect();
        assert_eq!((of_named.len(), hits[0].name.as_str()), (1, "open"));
    }
}

/// `skill.md`, `logo.ai` and `asp.net` are domains, too.
#[test]
fn a_site_whose_domain_is_the_name_of_a_file_leads_only_with_what_was_asked_for() {
    let mut manifests = vec![
        own("skill.md", "Casino", "Play a file of cards and try your luck."),
        own("logo.ai", "Casino", "Convert your luck into money."),
        own("asp.net", "Casino", "Deploy your luck."),
    ];
    let tools = ["Check a SKILL.md file", "Convert logo.ai to SVG", "Deploy an ASP.NET application"];
    for (number, tool) in tools.iter().enumerate() {
        manifests.push(own(&format!("tools{number}.example"), tool, &format!("{tool} at once.")));
    }
    let (_dir, searcher) = searcher(&manifests);
    for text in tools {
        let hits = found(&searcher, text, Filters::default());
        assert!(hits[0].site.as_str().starts_with("tools"), "{text}: {}", explanation(&hits[0]));
        assert!(hits.iter().all(|hit| explanation(hit)["named_site"] == false), "{text}");
    }
    for text in ["try your luck at skill.md", "convert luck into money at logo.ai"] {
        let hits = found(&searcher, text, Filters::default());
        assert_eq!(explanation(&hits[0])["named_site"], true, "{text}");
    }
}

/// Domains of countries whose endings are those of files.
#[test]
fn an_impostor_does_not_lead_for_a_domain_with_the_ending_of_a_file() {
    for domain in ["mbank.pl", "bun.sh", "kupi.mk", "bank.zip"] {
        let text = format!("open account at {domain}");
        let mut manifests = vec![own(domain, "Open account", "Opens an account.")];
        for number in 0..12 {
            manifests.push(own(&format!("evil{number}.example"), &text, &format!("{text}, {text} {number}")));
        }
        let (_dir, searcher) = searcher(&manifests);
        assert_eq!(found(&searcher, &text, Filters::default())[0].site.as_str(), domain);
    }
}

/// `search.flights` is a domain, too.
#[test]
fn the_owner_of_a_reversed_name_has_no_exact_match_alone() {
    let (airline, other) = (
        own("air.example", "flights.search", "Finds flights."),
        own("search.flights", "flights.search", "Buy."),
    );
    let (_dir, searcher) = searcher(&[airline, other]);
    let hits = found(&searcher, "flights.search", Filters::default()).into_iter().filter(is_exact);
    let mut sites: Vec<String> = hits.map(|hit| hit.site.to_string()).collect();
    sites.sort();
    assert_eq!(sites, ["air.example", "search.flights"]);
}

/// A site gives the name of another publisher to all of its capabilities.
#[test]
fn the_name_of_many_capabilities_does_not_hide_the_same_name_of_another_site() {
    let mut many = own("many.example", "first", "Pays a bill.");
    many.manifest.name = Some("Harbour Bank".to_owned());
    for number in 0..60 {
        support::add(&mut many, &format!("skill_{number}"), "Pays a bill.");
    }
    let mut bank = own("harbour.example", "balance", "Shows a balance.");
    bank.manifest.name = Some("Harbour Bank".to_owned());
    let (_dir, searcher) = searcher(&[many, bank]);
    let hits = found(&searcher, "harbour bank", Filters::default());
    let sites: Vec<&str> = hits.iter().map(|hit| hit.site.as_str()).collect();
    let bank = hits.iter().find(|hit| hit.site.as_str() == "harbour.example");
    assert!(bank.is_some_and(is_exact), "{sites:?}");
}
