//! Extracts the links of a response: Link headers, `<link>` elements, Agentmap lines, and the links of manifests.
//!
//! These are pure functions. A target on the same site is requested in the same visit, under the robots.txt of its host. A target on
//! another site becomes a seed of that site. Only https on port 443 is followed.

use std::collections::HashSet;
use std::sync::Arc;

use http::header::LINK;
use manifest::model::{Follow, Format, Link, Protocol};
use manifest::{Discovery, Host, Manifest, ManifestUrl, SiteScope, web};
use policy::plan::ROBOTS_PATH;
use policy::{BodyKind, RobotsFile};
use store::{LINK_BYTES_MAX, Seed, SiteState};

use egress::Head;

use super::task::{Role, Task, body_of_link, body_of_path};

/// Link relations that lead to a manifest (names from RFC 8288 and those that the dialects define).
const MANIFEST_RELS: [&str; 12] = [
    "agent-manifest",
    "agent",
    "agent-card",
    "agents",
    "agents-json",
    "agentmap",
    "ard",
    "ai-catalog",
    "api-catalog",
    "service-desc",
    "mcp",
    "woa",
];
/// Labels of TXT records below a host that lead to manifests.
pub(crate) const TEXT_LABELS: [&str; 2] = ["_atp", "_agent"];
/// Labels of SVCB records below a host. The first names a host with entries, the second a host with a registry (ARD 0.91 §5.1).
pub(crate) const SERVICE_LABELS: [&str; 2] = ["_entries._agents", "_search._agents"];
/// The path of the manifest at a host that an SVCB record names, because the record itself has no path.
const SERVICE_PATH: &str = "/.well-known/ard.json";
/// The path of the card of an MCP server below its endpoint (SEP-2127 discovery, Hosted Server Card Location).
const SERVER_CARD_PATH: &str = "/server-card";
/// Maximum number of links that are read from a document in one visit. More would block the async runtime for too long. [`Plan`] limits how
/// many are followed.
///
/// [`Plan`]: super::plan::Plan
const LINKS_READ_MAX: usize = 2_100;

/// Tasks and seeds that result from a response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FollowUps {
    pub(crate) tasks: Vec<Task>,
    pub(crate) seeds: Vec<Seed>,
}

impl FollowUps {
    fn add(&mut self, from: &ManifestUrl, task: Task) {
        if task.url.port() != 443 {
            return;
        }
        // sites of private networks may link to their own hosts, but their links to other sites must be public
        if task.url.site() == from.site() {
            let linked_from = is_kept(from).then(|| Box::new(from.clone()));
            self.tasks.push(Task { linked_from, ..task });
        } else {
            self.add_seed(task.url, from);
        }
    }

    /// Adds the target of a reference in the document `from`. Of links to its own site, adds only the first [`LINKS_READ_MAX`].
    fn add_reference(
        &mut self,
        (from, base): (&ManifestUrl, &ManifestUrl),
        reference: &str,
        discovery: Discovery,
        media_type: Option<&str>,
    ) {
        if self.tasks.len() >= LINKS_READ_MAX {
            return;
        }
        let Some(url) = base.join(reference).ok().filter(|url| url != from && url != base) else { return };
        let is_openapi = media_type.is_some_and(|media_type| media_type.contains("openapi"));
        let body = if is_openapi { BodyKind::OpenApi } else { body_of_path(&url) };
        self.add(from, Task::new(url, body, discovery));
    }

    /// Adds another site as a seed if its name is valid.
    fn add_seed(&mut self, url: ManifestUrl, from: &ManifestUrl) {
        let may_be_seed = is_kept(&url) && is_kept(from) && SiteScope::Public.check_url(&url).is_ok();
        if self.seeds.len() < LINKS_READ_MAX && may_be_seed {
            let known =
                self.seeds.last().and_then(|seed| seed.origin.source()).filter(|known| ***known == *from);
            let from = known.map_or_else(|| Arc::new(from.clone()), Arc::clone);
            self.seeds.push(Seed::linked(url, from));
        }
    }

    /// Moves links that no visit has followed before those that were followed. Parts stay before all links, because their manifest is read
    /// with them.
    pub(super) fn put_unknown_first(&mut self, site: &SiteState) {
        let known: HashSet<&ManifestUrl> = site.resources.iter().map(|known| &known.url).collect();
        self.tasks.sort_by_cached_key(|task| (task.role != Role::Part, known.contains(&task.url)));
    }

    /// Adds the tasks and seeds of further responses.
    pub(super) fn extend(&mut self, more: impl Iterator<Item = Self>) {
        for more in more {
            self.tasks.extend(more.tasks);
            self.seeds.extend(more.seeds);
        }
    }

    /// The seed of a redirect to another site.
    pub(crate) fn of_redirect(url: ManifestUrl, from: &ManifestUrl) -> Self {
        let mut follow_ups = Self::default();
        follow_ups.add_seed(url, from);
        follow_ups
    }
}

/// Whether a URL is short enough to be stored with every link.
pub(super) fn is_kept(url: &ManifestUrl) -> bool {
    url.as_str().len() <= LINK_BYTES_MAX
}

/// The links of a home page: its Link headers first, then its head. They count as links of `from`, the URL that was requested, even if it
/// redirects, because its host determines by whom the targets are named. References are relative to `url`, the URL of the page.
pub(crate) fn of_page((from, url): (&ManifestUrl, &ManifestUrl), head: &Head, body: &[u8]) -> FollowUps {
    let mut follow_ups = of_headers((from, url), head);
    let page = web::read_head(body);
    let base = page.base.and_then(|base| url.join(&base).ok()).unwrap_or_else(|| url.clone());
    for link in page.links.iter().filter(|link| has_manifest_rel(&link.rels)) {
        let media_type = link.media_type.as_deref();
        follow_ups.add_reference((from, &base), &link.href, Discovery::HtmlLink, media_type);
    }
    follow_ups
}

/// The targets of the Link headers of a response. `from` and `url` are the same as for [`of_page`].
pub(crate) fn of_headers((from, url): (&ManifestUrl, &ManifestUrl), head: &Head) -> FollowUps {
    let mut follow_ups = FollowUps::default();
    let links = head.texts(&LINK).flat_map(web::link_header);
    for link in links.filter(|link| has_manifest_rel(&link.rels)) {
        let media_type = link.media_type.as_deref();
        follow_ups.add_reference((from, url), &link.href, Discovery::LinkHeader, media_type);
    }
    follow_ups
}

fn has_manifest_rel(rels: &[String]) -> bool {
    rels.iter().any(|rel| MANIFEST_RELS.contains(&rel.as_str()))
}

/// The targets of the Agentmap lines of robots.txt.
pub(crate) fn of_robots(host: &Host, file: &RobotsFile) -> FollowUps {
    let mut follow_ups = FollowUps::default();
    let Ok(url) = ManifestUrl::on_host(host, ROBOTS_PATH) else { return follow_ups };
    for reference in file.agentmaps() {
        follow_ups.add_reference((&url, &url), reference, Discovery::Agentmap, None);
    }
    follow_ups
}

/// The target of a TXT record: `v=atp1; manifest=/.well-known/agent.json` (ATP), or `url=…` in records at `_agent`.
pub(crate) fn of_text_record(url: &ManifestUrl, text: &str) -> FollowUps {
    let mut follow_ups = FollowUps::default();
    let references = text.split(';').filter_map(|part| {
        let (key, value) = part.split_once('=')?;
        let is_reference =
            ["manifest", "url", "uri"].iter().any(|known| key.trim().eq_ignore_ascii_case(known));
        is_reference.then(|| value.trim().trim_matches('"'))
    });
    for reference in references {
        let root = url.join("/").unwrap_or_else(|_| url.clone());
        follow_ups.add_reference((&root, &root), reference, Discovery::Dns, None);
    }
    follow_ups
}

/// The manifest at the target of an SVCB record. A registry is not searched; its host is visited like any other.
pub(crate) fn of_service_record(url: &ManifestUrl, target: &str) -> FollowUps {
    let mut follow_ups = FollowUps::default();
    let reference =
        if target == "." { SERVICE_PATH.to_owned() } else { format!("https://{target}{SERVICE_PATH}") };
    let root = url.join("/").unwrap_or_else(|_| url.clone());
    follow_ups.add_reference((&root, &root), &reference, Discovery::Dns, None);
    follow_ups
}

/// Whether a visit reads all links of a manifest.
pub(super) fn are_read_whole(manifest: &Manifest) -> bool {
    followed(manifest).nth(LINKS_READ_MAX).is_none()
}

/// The links of a manifest that are followed, with their positions.
fn followed(manifest: &Manifest) -> impl Iterator<Item = (usize, &Link, Follow)> {
    let followed = manifest.links.iter().filter_map(|link| Some((link, link.follow?)));
    followed.enumerate().map(|(place, (link, follow))| (place, link, follow))
}

/// The first [`LINKS_READ_MAX`] links of a manifest.
pub(crate) fn of_manifest(manifest: &Manifest) -> FollowUps {
    of_manifest_in_visit(manifest, 0)
}

/// The links of a manifest that the visit after `visits` others reads. If there are more than [`LINKS_READ_MAX`], each visit reads the next
/// ones. Only the parts among the first [`LINKS_READ_MAX`] are read in each visit, because a manifest is read together with its parts.
pub(super) fn of_manifest_in_visit(manifest: &Manifest, visits: u32) -> FollowUps {
    let mut follow_ups = FollowUps::default();
    let turns = followed(manifest).count().div_ceil(LINKS_READ_MAX).max(1);
    let turn = usize::try_from(visits).unwrap_or_default() % turns;
    let is_read = |place: usize, follow: Follow| match follow {
        Follow::Merge => place < LINKS_READ_MAX,
        Follow::Manifest => place / LINKS_READ_MAX == turn,
    };
    for (_, link, follow) in followed(manifest).filter(|(place, _, follow)| is_read(*place, *follow)) {
        let Ok(url) = ManifestUrl::parse(&link.url) else { continue };
        if url == manifest.url {
            continue;
        }
        let discovery = match manifest.format() {
            Format::Pointer => Discovery::Pointer,
            _ => Discovery::CatalogEntry,
        };
        // a part is stored with the URL of its manifest
        if follow == Follow::Merge && !is_kept(&manifest.url) {
            continue;
        }
        let role = match follow {
            Follow::Merge => Role::Part,
            Follow::Manifest => Role::Manifest,
        };
        // requesting a part on another site would need the lease of that site, so it becomes a seed of that site
        let body = body_of_link(link, &url);
        follow_ups.add(&manifest.url, Task { role, ..Task::new(url, body, discovery) });
    }
    if let Some(card) = server_card(manifest) {
        follow_ups.add(&manifest.url, Task::new(card, BodyKind::Manifest, Discovery::CatalogEntry));
    }
    follow_ups
}

/// Where the MCP server that a manifest names may host its card: at the path that the discovery of server cards reserves below the endpoint.
/// It counts as one more link of the manifest. Only the first endpoint at https counts, and only if it is on the site of the manifest. A
/// card or an entry of a registry describes its server itself.
fn server_card(manifest: &Manifest) -> Option<ManifestUrl> {
    if matches!(manifest.format(), Format::McpCard | Format::McpRegistry) {
        return None;
    }
    let mut servers = manifest.interfaces.iter().filter(|known| known.protocol == Protocol::Mcp);
    let endpoint = ManifestUrl::parse(servers.find_map(|known| known.url.as_deref())?).ok()?;
    let card = format!("{}{SERVER_CARD_PATH}", endpoint.as_str().trim_end_matches('/'));
    let is_usable = endpoint.site() == manifest.url.site()
        && !endpoint.as_str().contains(['?', '{'])
        && !endpoint.as_str().contains("%7B");
    let is_linked = || manifest.links.iter().any(|link| link.follow.is_some() && link.url == card);
    if !is_usable || is_linked() {
        return None;
    }
    ManifestUrl::parse(&card).ok().filter(is_kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue, StatusCode};
    use manifest::model::Interface;
    use policy::robots::PRODUCT_TOKEN;
    use policy::{RobotsResponse, RobotsVerdict};

    fn url(text: &str) -> ManifestUrl {
        ManifestUrl::parse(text).unwrap()
    }

    fn head(link: &str) -> Head {
        let mut headers = HeaderMap::new();
        headers.insert(LINK, HeaderValue::from_str(link).unwrap());
        Head { status: StatusCode::OK, headers, address: None }
    }

    /// The links of a page that did not redirect.
    fn headers_of(page: &ManifestUrl, head: &Head) -> FollowUps {
        of_headers((page, page), head)
    }

    #[test]
    fn links_of_a_page_count_as_links_of_the_requested_url() {
        let (from, at) = (url("https://tenant.a.example/"), url("https://a.example/u/evil.html"));
        let page = b"<link rel=ard href=two.json><link rel=ard href=/u/evil.html>";
        let follow_ups = of_page((&from, &at), &head("<one.json>; rel=ard"), page);
        let tasks: Vec<_> = follow_ups.tasks.iter().map(|task| task.url.as_str()).collect();
        assert_eq!(tasks, ["https://a.example/u/one.json", "https://a.example/u/two.json"]);
        assert!(follow_ups.tasks.iter().all(|task| task.linked_from.as_deref() == Some(&from)));
    }

    #[test]
    fn follows_links_on_the_same_site_and_seeds_others() {
        let head = head(
            "</a.json>; rel=\"agent-manifest\"; type=\"application/json\", <https://b.example/c.json>;rel=ard, \
             </style.css>; rel=preload; as=style",
        );
        let page =
            b"<head><base href='/app/'><link rel=service-desc href=openapi.json><link rel=icon href=/i>";
        let follow_ups = of_page((&url("https://a.example/"), &url("https://a.example/")), &head, page);
        let tasks: Vec<&str> = follow_ups.tasks.iter().map(|task| task.url.as_str()).collect();
        assert_eq!(tasks, ["https://a.example/a.json", "https://a.example/app/openapi.json"]);
        assert_eq!(follow_ups.tasks[0].discovery, Discovery::LinkHeader);
        assert_eq!(follow_ups.tasks[1].body, BodyKind::OpenApi);
        assert_eq!(follow_ups.seeds.len(), 1);
        assert_eq!(follow_ups.seeds[0].host.as_str(), "b.example");
    }

    #[test]
    fn follows_only_https_on_port_443() {
        let head = head(
            "<http://a.example/a>; rel=ard, <https://a.example:8443/a>; rel=ard, <https://10.0.0.1/>; rel=ard",
        );
        assert_eq!(headers_of(&url("https://a.example/"), &head), FollowUps::default());
    }

    #[test]
    fn ignores_links_to_invalid_sites() {
        let from = url("https://a.example/");
        let link = |to: &str| headers_of(&from, &head(&format!("<{to}>; rel=ard"))).seeds.len();
        for refused in [
            "https://co.uk/a.json",
            "https://b.internal/a.json",
            "https://b.local/a.json",
            "https://b.home.arpa/a.json",
            "https://b.onion/a.json",
            "https://b.invalid/a.json",
            "https://127.in-addr.arpa/a.json",
            "https://b.example:22/a.json",
        ] {
            assert_eq!(link(refused), 0, "{refused}");
            if let Ok(refused) = ManifestUrl::parse(refused) {
                assert!(FollowUps::of_redirect(refused, &from).seeds.is_empty());
            }
        }
        assert_eq!(link("https://b.test/a.json"), 1);
        assert_eq!(FollowUps::of_redirect(url("https://b.test/"), &from).seeds.len(), 1);
        let inside = url("https://a.internal/");
        assert_eq!(
            headers_of(&inside, &head("</a.json>; rel=ard")).tasks.len(),
            1,
            "documents of the same site are requested"
        );
    }

    #[test]
    fn ignores_links_to_or_from_long_urls() {
        let of_length = |site: &str, length: usize| {
            let start = format!("https://{site}/?");
            url(&format!("{start}{}", "a".repeat(length - start.len())))
        };
        let seeds = |to: usize, from: usize| {
            FollowUps::of_redirect(of_length("b.example", to), &of_length("a.example", from)).seeds.len()
        };
        assert_eq!(seeds(LINK_BYTES_MAX, LINK_BYTES_MAX), 1);
        assert_eq!(seeds(LINK_BYTES_MAX + 1, 30), 0);
        assert_eq!(seeds(30, LINK_BYTES_MAX + 1), 0);
        let followed = |from: usize| {
            let follow_ups = headers_of(&of_length("a.example", from), &head("</a.json>; rel=ard"));
            follow_ups.tasks.into_iter().map(|task| task.linked_from.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(followed(LINK_BYTES_MAX), [true]);
        assert_eq!(followed(LINK_BYTES_MAX + 1), [false], "it is followed without its source");
    }

    #[test]
    fn links_of_one_document_share_its_url() {
        let text: Vec<String> =
            (0..20).map(|number| format!("<https://b{number}.example/>; rel=ard")).collect();
        let follow_ups = headers_of(&url("https://a.example/"), &head(&text.join(", ")));
        let sources: Vec<_> = follow_ups.seeds.iter().filter_map(|seed| seed.origin.source()).collect();
        assert_eq!(sources.len(), 20);
        assert!(sources.iter().all(|source| Arc::ptr_eq(source, sources[0])));
    }

    #[test]
    fn follows_service_records_to_the_manifest_of_their_target() {
        let page = url("https://a.example/agent.json");
        for (target, task, seed) in [
            (".", Some("https://a.example/.well-known/ard.json"), None),
            ("agents.a.example", Some("https://agents.a.example/.well-known/ard.json"), None),
            ("finder.example", None, Some("https://finder.example/.well-known/ard.json")),
            ("localhost", None, None),
            ("not a name", None, None),
        ] {
            let follow_ups = of_service_record(&page, target);
            assert_eq!(follow_ups.tasks.first().map(|task| task.url.as_str()), task, "{target}");
            let found = follow_ups.seeds.first().and_then(|seed| seed.url.as_ref()).map(ManifestUrl::as_str);
            assert_eq!(found, seed, "{target}");
        }
    }

    #[test]
    fn robots_agentmap_lines_are_read_for_any_first_url() {
        let body = Some(b"User-agent: *\nAllow: /\nAgentmap: /x/agent.json\n".as_slice());
        let verdict = RobotsVerdict::of(RobotsResponse::Answered { status: 200, body }, PRODUCT_TOKEN);
        let follow_ups = of_robots(&url("https://a.example/").host(), verdict.file().unwrap());
        let [task] = follow_ups.tasks.as_slice() else { panic!("{follow_ups:?}") };
        assert_eq!(task.url, url("https://a.example/x/agent.json"));
        assert_eq!(task.linked_from.as_deref(), Some(&url("https://a.example/robots.txt")));
    }

    #[test]
    fn follows_text_records_on_the_same_site() {
        let page = url("https://a.example/.well-known/agent.json");
        for (text, wanted) in [
            ("v=atp1; manifest=/atp/agent.json", Some("https://a.example/atp/agent.json")),
            ("v=1;url=https://a.example/x.json;ttl=60", Some("https://a.example/x.json")),
            ("v=spf1 -all", None),
            ("manifest=http://a.example/x", None),
        ] {
            let follow_ups = of_text_record(&page, text);
            assert_eq!(follow_ups.tasks.first().map(|task| task.url.as_str()), wanted, "{text}");
        }
    }

    fn manifest_at(page: &ManifestUrl) -> Manifest {
        manifest::read(&manifest::Document {
            bytes: b"{}",
            url: page,
            final_url: None,
            discovery: Discovery::Root,
            served: None,
            linked: &[],
            force: None,
        })
    }

    #[test]
    fn parts_on_another_site_become_seeds() {
        let mut manifest = manifest_at(&url("https://a.example/agent-manifest.json"));
        let link = |to: &str| Link::new("tools", to.to_owned(), Some(Follow::Merge));
        manifest.links = vec![link("https://a.example/tools.json"), link("https://b.example/tools.json")];
        let follow_ups = of_manifest(&manifest);
        let tasks: Vec<_> = follow_ups.tasks.iter().map(|task| (task.url.as_str(), task.role)).collect();
        assert_eq!(tasks, [("https://a.example/tools.json", Role::Part)]);
        let seeds: Vec<_> = follow_ups.seeds.iter().filter_map(|seed| seed.url.as_ref()).collect();
        assert_eq!(seeds, [&url("https://b.example/tools.json")]);
    }

    #[test]
    fn the_card_of_a_server_of_the_same_site_is_one_more_link() {
        let mut manifest = manifest_at(&url("https://a.example/agent-manifest.json"));
        let server = |endpoint: &str| Interface::new(Protocol::Mcp, Some(endpoint.to_owned()));
        let cards = |manifest: &Manifest| {
            let FollowUps { tasks, seeds } = of_manifest(manifest);
            assert!(seeds.is_empty(), "{seeds:?}");
            tasks.into_iter().map(|task| task.url.to_string()).collect::<Vec<_>>()
        };
        for (endpoint, card) in [
            ("https://a.example/mcp", Some("https://a.example/mcp/server-card")),
            ("https://a.example/mcp/", Some("https://a.example/mcp/server-card")),
            ("https://mcp.a.example/", Some("https://mcp.a.example/server-card")),
            ("https://b.example/mcp", None),
            ("https://a.example/mcp?key=1", None),
            ("https://a.example:8443/mcp", None),
            ("http://a.example/mcp", None),
        ] {
            manifest.interfaces = vec![server(endpoint)];
            assert_eq!(cards(&manifest), card.into_iter().collect::<Vec<_>>(), "{endpoint}");
        }
        manifest.interfaces = vec![server("https://a.example/one"), server("https://a.example/two")];
        assert_eq!(cards(&manifest), ["https://a.example/one/server-card"], "one request for a document");
        let linked = "https://a.example/one/server-card".to_owned();
        manifest.links = vec![Link::new("mcp-server-card", linked, Some(Follow::Manifest))];
        assert_eq!(cards(&manifest).len(), 1, "the link is followed once");
        manifest.links.clear();
        manifest.interfaces[0].protocol = Protocol::A2a;
        manifest.interfaces.truncate(1);
        assert!(cards(&manifest).is_empty());
    }

    #[test]
    fn bounds_the_links_read_from_a_manifest() {
        let (page, follow) = (url("https://a.example/catalog.json"), Some(Follow::Manifest));
        let mut manifest = manifest_at(&page);
        let link = |number: usize| Link {
            anchor: None,
            rel: "item".to_owned(),
            url: format!("https://b{number}.example/agent.json"),
            title: None,
            media_type: None,
            follow,
        };
        let cost = |manifest: &Manifest| {
            let mut follow_ups = FollowUps::default();
            let spent = allocation_counter::measure(|| follow_ups = of_manifest(manifest));
            assert_eq!((follow_ups.tasks.len(), follow_ups.seeds.len()), (0, LINKS_READ_MAX));
            spent.count_total
        };
        manifest.links = (0..LINKS_READ_MAX).map(link).collect();
        let most = cost(&manifest);
        manifest.links = (0..20 * LINKS_READ_MAX).map(link).collect();
        assert_eq!(cost(&manifest), most, "further links cost nothing");
    }

    #[test]
    fn visits_read_the_links_of_a_large_catalog_in_turns() {
        const LINKS: usize = 2 * LINKS_READ_MAX + 40;
        let page = url("https://a.example/catalog.json");
        let mut manifest = manifest_at(&page);
        let link = |number: usize, follow: Follow| {
            Link::new("item", format!("https://a.example/{number}.json"), Some(follow))
        };
        manifest.links = (0..LINKS).map(|number| link(number, Follow::Manifest)).collect();
        manifest.links[7].follow = Some(Follow::Merge);
        assert!(!are_read_whole(&manifest));
        let mut read = HashSet::new();
        for visits in 0..3 {
            let tasks = of_manifest_in_visit(&manifest, visits).tasks;
            let parts = tasks.iter().filter(|task| task.role == Role::Part).map(|task| task.url.as_str());
            assert_eq!(parts.collect::<Vec<_>>(), ["https://a.example/7.json"], "visit {visits}");
            read.extend(tasks.into_iter().map(|task| task.url));
        }
        assert_eq!(read.len(), LINKS);
        let first = of_manifest(&manifest).tasks;
        assert_eq!((first.len(), &first), (LINKS_READ_MAX, &of_manifest_in_visit(&manifest, 3).tasks));
        manifest.links.truncate(LINKS_READ_MAX);
        assert!(are_read_whole(&manifest), "all of them are compared with what is known");
        assert_eq!(of_manifest_in_visit(&manifest, 1).tasks.len(), LINKS_READ_MAX);
    }
}
