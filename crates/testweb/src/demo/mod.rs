//! The small web of `agentdex demo`.
//!
//! The sites are fictional, under reserved top-level domains. Most publish a manifest in one of the dialects that agentdex reads. Some are
//! broken, refuse crawlers or mislead them, like real sites.

mod sites;

use crate::{Answer, Host, Web, WebBuilder};
use sites::{Behaviour, File, SITES, Site};

/// Freshness lifetime of a demo file. It is short, so that a second visit revalidates the file.
const MAX_AGE_S: u32 = 2;

/// The robots.txt of most demo sites.
const OPEN_ROBOTS: &str = "User-agent: *\nDisallow: /account/\nDisallow: /checkout/\n";

/// The demo's web, with all hosts on 127.0.0.1. The caller may still set addresses, the port and a log file.
pub fn web() -> WebBuilder {
    Web::builder().hosts(hosts())
}

/// The hosts of the demo, for webs that also have other hosts.
pub fn hosts() -> Vec<Host> {
    let elsewhere = SITES.iter().filter_map(|site| match site.behaviour {
        Behaviour::MovedTo(host) => Some(open_host(host, site)),
        _ => None,
    });
    SITES.iter().map(host).chain(elsewhere).collect()
}

/// The domains to give a crawler.
pub fn seeds() -> Vec<&'static str> {
    SITES.iter().map(|site| site.domain).collect()
}

fn host(site: &Site) -> Host {
    match site.behaviour {
        Behaviour::Open => open_host(site.domain, site),
        Behaviour::Robots(text) => {
            open_host(site.domain, site).route("/robots.txt", with_cache_headers(Answer::text(text)))
        }
        Behaviour::RobotsUnavailable => {
            open_host(site.domain, site).route("/robots.txt", Answer::retry_after(503, "3600"))
        }
        Behaviour::MovedTo(host) => {
            Host::new(site.domain).catch_all(Answer::moved_to(301, &format!("https://{host}")))
        }
        Behaviour::OnePageForAll(page) => {
            Host::new(site.domain).catch_all(Answer::html(page).without_validators())
        }
    }
}

fn open_host(name: &str, site: &Site) -> Host {
    let host = Host::new(name)
        .route("/robots.txt", with_cache_headers(Answer::text(open_robots(site))))
        .route("/", with_cache_headers(home_page(site)))
        .catch_all(Answer::html(NOT_FOUND).with_status(404).without_validators());
    site.files.iter().fold(host, |host, file| host.route(file.path, with_cache_headers(file_answer(file))))
}

/// The robots.txt of a site. Sites that have files only at rare paths name them in it, so that a first visit finds them.
fn open_robots(site: &Site) -> String {
    const USUAL: [&str; 3] = ["agent.json", "agents.json", "agent-card.json"];
    let is_usual = |file: &File| USUAL.iter().any(|name| file.path.ends_with(name));
    let named: &[File] = if site.files.iter().any(is_usual) { &[] } else { site.files };
    let lines = named.iter().map(|file| format!("Agentmap: {}\n", file.path));
    std::iter::once(OPEN_ROBOTS.to_owned()).chain(lines).collect()
}

fn file_answer(file: &File) -> Answer {
    let answer = Answer::ok(file.media, file.body).gzip();
    answer
        .header("access-control-allow-origin", "*")
        .header("access-control-allow-methods", "GET, OPTIONS")
        .header("access-control-allow-headers", "Accept, Authorization")
}

/// The home page: a title, a sentence, and a link to the manifest, as ATP §2.2 and §2.3 recommend.
fn home_page(site: &Site) -> Answer {
    let manifest = site.files.iter().find(|file| file.path.ends_with("agent.json"));
    let link = manifest.map(|file| format!("<link rel=\"agent-manifest\" href=\"{}\">", file.path));
    let (title, lead, link_element) = (site.title, site.lead, link.unwrap_or_default());
    let page = Answer::html(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{title}</title>{link_element}</head>\n\
         <body><h1>{title}</h1><p>{lead}</p></body>\n</html>\n"
    ));
    match manifest {
        Some(file) => page.header("link", &format!("<{}>; rel=\"agent-manifest\"", file.path)),
        None => page,
    }
}

fn with_cache_headers(answer: Answer) -> Answer {
    answer.max_age(MAX_AGE_S)
}

const NOT_FOUND: &str = "<!doctype html>\n<title>Not found</title>\n<p>There is nothing here.</p>\n";
