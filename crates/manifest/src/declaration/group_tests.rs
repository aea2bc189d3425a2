//! Tests grouping with the layouts of published sites.

use super::*;

fn manifest(
    path: &str,
    format: Format,
    content: &str,
    declarations: &[(&str, Option<&str>, u32)],
) -> SiteManifest {
    let host = Host::parse("shop.example").unwrap();
    let url = crate::name::ManifestUrl::on_host(&host, path).unwrap();
    let declared = |(native_id, operation, fullness): &(&str, Option<&str>, u32)| Declared {
        id: CapabilityId::of_key(&format!("{url}#{native_id}")),
        native_id: (*native_id).to_owned(),
        operation: operation.map(str::to_owned),
        fullness: *fullness,
    };
    SiteManifest {
        id: ManifestId::of(&url),
        host,
        format,
        content_hash: ContentHash::of(content.as_bytes()),
        publisher: Publisher::Site,
        links_away: 0,
        declarations: declarations.iter().map(declared).collect(),
    }
}

/// The groups as `path native_id`, the leader first, sorted.
fn groups(manifests: &[SiteManifest], paths: &[&str]) -> Vec<Vec<String>> {
    let describe = |member: &Member| {
        let (manifest, path) =
            manifests.iter().zip(paths).find(|(manifest, _)| manifest.id == member.manifest).unwrap();
        let declared = manifest.declarations.iter().find(|declared| declared.id == member.id).unwrap();
        format!("{path} {}", declared.native_id)
    };
    let mut groups: Vec<Vec<String>> =
        group(manifests).iter().map(|Group(members)| members.iter().map(describe).collect()).collect();
    groups.sort_unstable();
    groups
}

#[test]
fn agents_txt_and_agents_json_give_one_capability_for_each_name() {
    let manifests = [
        manifest("/agents.txt", Format::AgentsTxt, "txt", &[("search", None, 0), ("pay", None, 0)]),
        manifest(
            "/.well-known/agents.json",
            Format::AgentsJson,
            "json",
            &[("search", Some("GET /search"), 9), ("detail", Some("GET /detail"), 9)],
        ),
    ];
    assert_eq!(
        groups(&manifests, &["txt", "json"]),
        [vec!["json detail"], vec!["json search", "txt search"], vec!["txt pay"]]
    );
}

#[test]
fn a_name_of_agents_txt_joins_only_the_agents_json_of_its_host() {
    let mut other_host = manifest(
        "/.well-known/agents.json",
        Format::AgentsJson,
        "json",
        &[("search", Some("GET /search"), 9)],
    );
    other_host.host = Host::parse("blog.shop.example").unwrap();
    let awp = manifest("/agent.json", Format::Awp, "awp", &[("search", Some("POST /search"), 9)]);
    let txt = manifest("/agents.txt", Format::AgentsTxt, "txt", &[("search", None, 0)]);
    let found = groups(&[other_host, awp, txt], &["blog", "awp", "txt"]);
    assert_eq!(found, [["awp search"], ["blog search"], ["txt search"]]);
}

#[test]
fn equal_documents_at_two_paths_are_one_capability_for_each_native_id() {
    // The addresses differ because they are relative to the documents.
    let manifests = [
        manifest(
            "/agent.json",
            Format::Generic,
            "same",
            &[("find", Some("GET /find"), 4), ("note", None, 1)],
        ),
        manifest(
            "/.well-known/agent.json",
            Format::Generic,
            "same",
            &[("find", Some("GET /.well-known/find"), 5), ("note", None, 2)],
        ),
        manifest("/woa.json", Format::Woa, "woa", &[("x", Some("GET /find"), 3)]),
    ];
    assert_eq!(
        groups(&manifests, &["root", "known", "woa"]),
        [vec!["known find", "root find"], vec!["known note", "root note"], vec!["woa x"]]
    );
}

#[test]
fn declarations_of_one_operation_are_one_capability_led_by_the_fullest() {
    let manifests = [
        manifest("/a", Format::Awp, "a", &[("book", Some("POST /book"), 5)]),
        manifest("/b", Format::OpenApi, "b", &[("createBooking", Some("POST /book"), 7)]),
        manifest("/c", Format::Atp, "c", &[("book", Some("GET /book"), 9)]),
        manifest("/d", Format::McpCard, "d", &[("book", None, 9)]),
    ];
    assert_eq!(
        groups(&manifests, &["a", "b", "c", "d"]),
        [vec!["b createBooking", "a book"], vec!["c book"], vec!["d book"]]
    );
}

#[test]
fn two_declarations_of_one_document_stay_two_capabilities() {
    let rpc = Some("POST /rpc");
    let manifests = [
        manifest("/a", Format::Awp, "a", &[("find", rpc, 5), ("book", rpc, 5)]),
        manifest("/b", Format::Atp, "b", &[("find", rpc, 4), ("cancel", rpc, 4)]),
        manifest("/c", Format::Awp, "a", &[("find", rpc, 4), ("book", rpc, 4)]),
    ];
    assert_eq!(
        groups(&manifests, &["a", "b", "c"]),
        [vec!["a book", "c book"], vec!["a find", "b find", "c find"], vec!["b cancel"]]
    );
}

#[test]
fn the_order_of_the_manifests_does_not_matter() {
    let mut manifests: Vec<SiteManifest> = (0..6)
        .map(|number| {
            let declared =
                [("find", Some("GET /find"), 3), ("book", (number % 2 == 0).then_some("POST /book"), 3)];
            manifest(&format!("/{number}"), Format::Awp, &number.to_string(), &declared)
        })
        .collect();
    let first = group(&manifests);
    manifests.reverse();
    assert_eq!(group(&manifests), first);
    assert_eq!(first.len(), 5, "one search, one booking, three bookings without an address");
}

#[test]
fn many_declarations_of_one_operation_are_grouped_in_linear_time() {
    let operations: Vec<String> = (0..20_000).map(|number| format!("n{number}")).collect();
    let declared: Vec<_> = operations.iter().map(|name| (name.as_str(), Some("POST /rpc"), 1)).collect();
    let manifests =
        [manifest("/a", Format::Awp, "a", &declared), manifest("/b", Format::Atp, "b", &declared)];
    assert_eq!(group(&manifests).len(), 20_000);
}

/// A catalog of the site may link to documents that its users wrote, with any number of declarations.
#[test]
fn declarations_in_documents_of_users_stay_separate_capabilities() {
    let at = |publisher, path: &str, content: &str, paths: &[&str]| {
        let declared: Vec<(&str, Option<&str>, u32)> =
            paths.iter().map(|path| (*path, Some("POST /pay"), 90)).collect();
        SiteManifest { publisher, ..manifest(path, Format::OpenApi, content, &declared) }
    };
    let own = [
        at(Publisher::Site, "/openapi.json", "own", &["pay"]),
        at(Publisher::Site, "/agent.json", "other", &["pay"]),
    ];
    for upload in [
        at(Publisher::Unknown, "/u/evil.json", "evil", &["pay"]),
        at(Publisher::Unknown, "/u/evil.json", "own", &["pay"]),
        at(Publisher::Unknown, "/u/evil.json", "evil", &["a", "b"]),
    ] {
        let mut found =
            groups(&[own.as_slice(), std::slice::from_ref(&upload)].concat(), &["own", "agent", "user"]);
        found.retain(|group| !group.iter().any(|member| member.starts_with("user")));
        assert!(matches!(found.as_slice(), [both] if both.len() == 2), "{found:?}");
        let alone = groups(&[upload.clone(), upload], &["user", "user"]);
        assert!(alone.iter().all(|group| group.len() == 1), "{alone:?}");
    }
}

/// The home page of a site links to its own description and to the fuller one of a customer.
/// Customers of a site have their own hosts, and may declare the operations of other customers there.
#[test]
fn declarations_of_customers_stay_separate_capabilities() {
    let at = |host: &str, path: &str, content: &str| {
        let mut of_host = manifest(path, Format::OpenApi, content, &[("pay", Some("POST /pay"), 5)]);
        of_host.host = Host::parse(host).unwrap();
        SiteManifest { publisher: Publisher::Host, ..of_host }
    };
    let documents = [
        at("one.shop.example", "/1/agent.json", "one"),
        at("one.shop.example", "/1/agents.json", "two"),
        at("two.shop.example", "/2/agent.json", "one"),
        manifest("/agent.json", Format::Awp, "own", &[("pay", Some("POST /pay"), 5)]),
    ];
    let found = groups(&documents, &["a", "b", "c", "own"]);
    assert_eq!(found.iter().map(Vec::len).max(), Some(2), "{found:?}");
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn a_more_distant_document_does_not_define_names_of_a_closer_one() {
    let txt = manifest("/agents.txt", Format::AgentsTxt, "txt", &[("pay", None, 0)]);
    let upload = |links_away| SiteManifest {
        links_away,
        ..manifest("/u/agents.json", Format::AgentsJson, "json", &[("pay", Some("POST /u/pay"), 9)])
    };
    let found = |json| groups(&[txt.clone(), json], &["txt", "json"]);
    assert_eq!(found(upload(0)), [vec!["json pay", "txt pay"]]);
    assert_eq!(found(upload(1)), [vec!["json pay"], vec!["txt pay"]]);
}
