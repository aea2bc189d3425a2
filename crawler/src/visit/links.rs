//! Where an answer leads: Link headers, `<link>` elements, Agentmap lines, and the links of manifests.
//!
//! Pure. A target on the same site is asked in the same visit, under its own robots.txt; one on another site becomes a seed
//! of that site. Documents that are not https, or lie on other ports, are not followed.

use std::sync::Arc;

use http::header::LINK;
use manifest::model::Follow;
use manifest::{Discovery, Manifest, ManifestUrl, SiteScope, web};
use policy::{BodyKind, RobotsFile};
use store::{LINK_BYTES_MAX, Seed};

use crate::egress::Head;

use super::task::{Role, Task, body_of_link, body_of_path};

/// Relations that lead to a manifest (RFC 8288 names and those that the dialects register).
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
/// Labels below a host whose TXT records lead to manifests.
pub(crate) const TEXT_LABELS: [&str; 2] = ["_atp", "_agent"];
/// Links followed from one document; catalogs name more, and their pages come with later visits.
const LINKS_FOLLOWED_MAX: usize = 50;
/// Links of one document that become seeds of other sites.
const SEEDS_MAX: usize = 1_000;

/// Links of a manifest that are looked at: twice those that can be followed or become seeds. More would keep the async
/// runtime from its other work.
const LINKS_READ_MAX: usize = 2 * (LINKS_FOLLOWED_MAX + SEEDS_MAX);

/// What an answer leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Leads {
    pub(crate) tasks: Vec<Task>,
    pub(crate) seeds: Vec<Seed>,
}

impl Leads {
    fn add(&mut self, from: &ManifestUrl, task: Task) {
        if task.url.port() != 443 {
            return;
        }
        // a site of a private network links to itself; to others it links as anybody does
        if task.url.site() == from.site() {
            if self.tasks.len() < LINKS_FOLLOWED_MAX {
                let linked_from = is_kept(from).then(|| Box::new(from.clone()));
                self.tasks.push(Task { linked_from, ..task });
            }
        } else {
            self.add_seed(task.url, from);
        }
    }

    /// Another site becomes a seed where its name may be one.
    fn add_seed(&mut self, url: ManifestUrl, from: &ManifestUrl) {
        let may_be_seed = is_kept(&url) && is_kept(from) && SiteScope::Public.check_url(&url).is_ok();
        if self.seeds.len() < SEEDS_MAX && may_be_seed {
            let known =
                self.seeds.last().and_then(|seed| seed.origin.source()).filter(|known| ***known == *from);
            let from = known.map_or_else(|| Arc::new(from.clone()), Arc::clone);
            self.seeds.push(Seed::linked(url, from));
        }
    }

    /// What a redirect to another site leads to.
    pub(crate) fn of_redirect(url: ManifestUrl, from: &ManifestUrl) -> Self {
        let mut leads = Self::default();
        leads.add_seed(url, from);
        leads
    }
}

/// Whether a URL is short enough to be kept with every link.
pub(super) fn is_kept(url: &ManifestUrl) -> bool {
    url.as_str().len() <= LINK_BYTES_MAX
}

/// What the homepage leads to: its Link headers first, then its head.
pub(crate) fn of_page(url: &ManifestUrl, head: &Head, body: &[u8]) -> Leads {
    let mut leads = of_headers(url, head);
    let page = web::read_head(body);
    let base = page.base.and_then(|base| url.join(&base).ok()).unwrap_or_else(|| url.clone());
    for link in page.links {
        if link.rels.iter().any(|rel| MANIFEST_RELS.contains(&rel.as_str())) {
            add_reference(
                &mut leads,
                url,
                &base,
                &link.href,
                Discovery::HtmlLink,
                link.media_type.as_deref(),
            );
        }
    }
    leads
}

/// What the Link headers of an answer lead to.
pub(crate) fn of_headers(url: &ManifestUrl, head: &Head) -> Leads {
    let mut leads = Leads::default();
    for link in head.texts(&LINK).flat_map(web::link_header) {
        if link.rels.iter().any(|rel| MANIFEST_RELS.contains(&rel.as_str())) {
            add_reference(
                &mut leads,
                url,
                url,
                &link.href,
                Discovery::LinkHeader,
                link.media_type.as_deref(),
            );
        }
    }
    leads
}

/// What the Agentmap lines of robots.txt lead to.
pub(crate) fn of_robots(url: &ManifestUrl, file: &RobotsFile) -> Leads {
    let mut leads = Leads::default();
    for reference in file.agentmaps() {
        add_reference(&mut leads, url, url, reference, Discovery::Agentmap, None);
    }
    leads
}

/// What a TXT record leads to: `v=atp1; manifest=/.well-known/agent.json` (ATP), or `url=…` in the `_agent` ones.
pub(crate) fn of_text_record(url: &ManifestUrl, text: &str) -> Leads {
    let mut leads = Leads::default();
    let references = text.split(';').filter_map(|part| {
        let (key, value) = part.split_once('=')?;
        let is_reference =
            ["manifest", "url", "uri"].iter().any(|known| key.trim().eq_ignore_ascii_case(known));
        is_reference.then(|| value.trim().trim_matches('"'))
    });
    for reference in references {
        let root = url.join("/").unwrap_or_else(|_| url.clone());
        add_reference(&mut leads, &root, &root, reference, Discovery::Dns, None);
    }
    leads
}

/// What a manifest leads to.
pub(crate) fn of_manifest(manifest: &Manifest) -> Leads {
    let mut leads = Leads::default();
    let followed = manifest.links.iter().filter_map(|link| Some((link, link.follow?)));
    for (link, follow) in followed.take(LINKS_READ_MAX) {
        let Ok(url) = ManifestUrl::parse(&link.url) else { continue };
        if url == manifest.url {
            continue;
        }
        let discovery = match manifest.format() {
            manifest::Format::Pointer => Discovery::Pointer,
            _ => Discovery::CatalogEntry,
        };
        // a part is known by the URL of its manifest
        if follow == Follow::Merge && !is_kept(&manifest.url) {
            continue;
        }
        let role = match follow {
            Follow::Merge => Role::Part,
            Follow::Manifest => Role::Manifest,
        };
        // a part on another site would need that site's lease; it is left to that site
        if role == Role::Part && url.site() != manifest.url.site() {
            continue;
        }
        let body = body_of_link(link, &url);
        leads.add(&manifest.url, Task { role, ..Task::new(url, body, discovery) });
    }
    leads
}

fn add_reference(
    leads: &mut Leads,
    from: &ManifestUrl,
    base: &ManifestUrl,
    reference: &str,
    discovery: Discovery,
    media_type: Option<&str>,
) {
    let Ok(url) = base.join(reference) else { return };
    if url == *from {
        return;
    }
    let is_openapi = media_type.is_some_and(|media_type| media_type.contains("openapi"));
    let body = if is_openapi { BodyKind::OpenApi } else { body_of_path(&url) };
    leads.add(from, Task::new(url, body, discovery));
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue, StatusCode};

    fn url(text: &str) -> ManifestUrl {
        ManifestUrl::parse(text).unwrap()
    }

    fn head(link: &str) -> Head {
        let mut headers = HeaderMap::new();
        headers.insert(LINK, HeaderValue::from_str(link).unwrap());
        Head { status: StatusCode::OK, headers, address: None }
    }

    #[test]
    fn link_headers_and_elements_lead_on_the_same_site_and_seed_others() {
        let head = head(
            "</a.json>; rel=\"agent-manifest\"; type=\"application/json\", <https://b.example/c.json>;rel=ard, \
             </style.css>; rel=preload; as=style",
        );
        let page =
            b"<head><base href='/app/'><link rel=service-desc href=openapi.json><link rel=icon href=/i>";
        let leads = of_page(&url("https://a.example/"), &head, page);
        let tasks: Vec<&str> = leads.tasks.iter().map(|task| task.url.as_str()).collect();
        assert_eq!(tasks, ["https://a.example/a.json", "https://a.example/app/openapi.json"]);
        assert_eq!(leads.tasks[0].discovery, Discovery::LinkHeader);
        assert_eq!(leads.tasks[1].body, BodyKind::OpenApi);
        assert_eq!(leads.seeds.len(), 1);
        assert_eq!(leads.seeds[0].host.as_str(), "b.example");
    }

    #[test]
    fn what_is_not_https_or_not_on_its_port_is_not_followed() {
        let head = head(
            "<http://a.example/a>; rel=ard, <https://a.example:8443/a>; rel=ard, <https://10.0.0.1/>; rel=ard",
        );
        assert_eq!(of_headers(&url("https://a.example/"), &head), Leads::default());
    }

    #[test]
    fn what_may_not_be_a_site_is_not_linked_to() {
        let from = url("https://a.example/");
        let link = |to: &str| of_headers(&from, &head(&format!("<{to}>; rel=ard"))).seeds.len();
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
                assert!(Leads::of_redirect(refused, &from).seeds.is_empty());
            }
        }
        assert_eq!(link("https://b.test/a.json"), 1);
        assert_eq!(Leads::of_redirect(url("https://b.test/"), &from).seeds.len(), 1);
        let inside = url("https://a.internal/");
        assert_eq!(of_headers(&inside, &head("</a.json>; rel=ard")).tasks.len(), 1, "its own documents");
    }

    #[test]
    fn a_link_to_or_from_a_long_url_becomes_no_seed() {
        let of_length = |site: &str, length: usize| {
            let start = format!("https://{site}/?");
            url(&format!("{start}{}", "a".repeat(length - start.len())))
        };
        let seeds = |to: usize, from: usize| {
            Leads::of_redirect(of_length("b.example", to), &of_length("a.example", from)).seeds.len()
        };
        assert_eq!(seeds(LINK_BYTES_MAX, LINK_BYTES_MAX), 1);
        assert_eq!(seeds(LINK_BYTES_MAX + 1, 30), 0);
        assert_eq!(seeds(30, LINK_BYTES_MAX + 1), 0);
        let followed = |from: usize| {
            let leads = of_headers(&of_length("a.example", from), &head("</a.json>; rel=ard"));
            leads.tasks.into_iter().map(|task| task.linked_from.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(followed(LINK_BYTES_MAX), [true]);
        assert_eq!(followed(LINK_BYTES_MAX + 1), [false], "it is followed without its source");
    }

    #[test]
    fn links_of_one_document_share_its_url() {
        let text: Vec<String> =
            (0..20).map(|number| format!("<https://b{number}.example/>; rel=ard")).collect();
        let leads = of_headers(&url("https://a.example/"), &head(&text.join(", ")));
        let sources: Vec<_> = leads.seeds.iter().filter_map(|seed| seed.origin.source()).collect();
        assert_eq!(sources.len(), 20);
        assert!(sources.iter().all(|source| Arc::ptr_eq(source, sources[0])));
    }

    #[test]
    fn text_records_lead_on_the_same_site() {
        let page = url("https://a.example/.well-known/agent.json");
        for (text, wanted) in [
            ("v=atp1; manifest=/atp/agent.json", Some("https://a.example/atp/agent.json")),
            ("v=1;url=https://a.example/x.json;ttl=60", Some("https://a.example/x.json")),
            ("v=spf1 -all", None),
            ("manifest=http://a.example/x", None),
        ] {
            let leads = of_text_record(&page, text);
            assert_eq!(leads.tasks.first().map(|task| task.url.as_str()), wanted, "{text}");
        }
    }

    #[test]
    fn links_of_a_manifest_are_looked_at_up_to_a_number() {
        let (page, follow) = (url("https://a.example/catalog.json"), Some(Follow::Manifest));
        let mut manifest = manifest::read(&manifest::Document {
            bytes: b"{}",
            url: &page,
            final_url: None,
            discovery: Discovery::Root,
            served: None,
            linked: &[],
            force: None,
        });
        let link = |number: usize| manifest::model::Link {
            rel: "item".to_owned(),
            url: format!("https://b{number}.example/agent.json"),
            title: None,
            media_type: None,
            follow,
        };
        let cost = |manifest: &Manifest| {
            let mut leads = Leads::default();
            let spent = allocation_counter::measure(|| leads = of_manifest(manifest));
            assert_eq!((leads.tasks.len(), leads.seeds.len()), (0, SEEDS_MAX));
            spent.count_total
        };
        manifest.links = (0..LINKS_READ_MAX).map(link).collect();
        let most = cost(&manifest);
        manifest.links = (0..20 * LINKS_READ_MAX).map(link).collect();
        assert_eq!(cost(&manifest), most, "what comes later costs nothing");
    }
}
