//! The error page: a description of the error, and advice.

use askama::Template;
use indexer::FacetKey;
use manifest::SiteName;
use url::form_urlencoded;

use super::frame::{Frame, Section};
use super::labels;
use super::links::{Link, with_query};
use crate::problem::{NOTHING_HERE, ProblemBody};

#[derive(Template)]
#[template(path = "problem.html")]
pub(crate) struct ProblemPage {
    frame: Frame,
    status: u16,
    title: String,
    detail: String,
    /// The known values, each with the address of this page with it; a value of another kind has no address.
    known: Vec<Link>,
    /// Text for the operator, if the detail is not for visitors.
    for_operator: Option<String>,
    /// The page under the address that accepts changes.
    elsewhere: Option<Link>,
    /// A site that is not known and could be added.
    unknown_site: Option<String>,
    /// Whether a site could not be added because its name is not a domain.
    is_misspelt_site: bool,
    /// Whether the page offers to add a site.
    is_for_publishers: bool,
    back: Link,
}

impl ProblemPage {
    /// The page for a problem with a request of `path`.
    pub(crate) fn new(problem: &ProblemBody, path: &str, query: &str) -> Self {
        let is_unknown = problem.status.as_u16() == 404;
        let site = site_of(path).filter(|(_, is_page)| *is_page || !is_unknown).map(|(site, _)| site);
        let is_misspelt_site = path == "/sites" && problem.parameter() == Some("domain");
        let title = match &site {
            Some(site) if is_unknown => format!("{site} is not listed"),
            _ if is_misspelt_site => "This is not the name of a site".to_owned(),
            _ if problem.status.as_u16() == 400 && is_capability(path) => "Not found".to_owned(),
            _ => title(problem).to_owned(),
        };
        let back = match &site {
            Some(site) if !is_unknown => {
                Link { text: format!("Back to {site}"), href: format!("/sites/{site}") }
            }
            _ => Link { text: "Back to the search".to_owned(), href: "/".to_owned() },
        };
        let elsewhere = problem.own_origin.as_ref().map(|own| {
            let page = match &site {
                Some(site) => format!("/sites/{site}"),
                None if path == "/sites" => "/sites#add".to_owned(),
                None => "/".to_owned(),
            };
            Link { text: own.clone(), href: format!("{own}{page}") }
        });
        Self {
            for_operator: for_operator(problem),
            elsewhere,
            frame: Frame::new(title.clone(), Section::None).unlisted(),
            status: problem.status.as_u16(),
            title,
            detail: lead(problem, path),
            known: known(problem, path, query),
            unknown_site: site.filter(|_| is_unknown),
            is_for_publishers: !is_misspelt_site && !matches!(problem.status.as_u16(), 401 | 403),
            is_misspelt_site,
            back,
        }
    }
}

/// The detail of the error. For an address without a page, the page has a button instead of the advice, which is for API clients.
fn lead(problem: &ProblemBody, path: &str) -> String {
    match problem.status.as_u16() {
        404 if problem.detail.starts_with(NOTHING_HERE) => "There is no page at this address.".to_owned(),
        400 if is_capability(path) => "There is no capability at this address.".to_owned(),
        503 if for_operator(problem).is_some() => {
            "There is nothing to search yet. The index is being built, or its operator has not started that."
                .to_owned()
        }
        405 => {
            "This address is for programs and has no page. The API reference says how they use it.".to_owned()
        }
        _ => sentence(&problem.detail),
    }
}

/// The detail of an error that only the operator can correct: there is no index.
fn for_operator(problem: &ProblemBody) -> Option<String> {
    let is_for_operator = problem.status.as_u16() == 503 && problem.detail.contains("run `");
    is_for_operator.then(|| sentence(&problem.detail))
}

/// Whether a path is that of the page of a capability.
fn is_capability(path: &str) -> bool {
    path.strip_prefix("/capabilities/").is_some_and(|id| !id.contains('/'))
}

/// A detail as a sentence. A first word that is code, such as a parameter or the name of a site, keeps its letters.
fn sentence(detail: &str) -> String {
    let first = detail.split_whitespace().next().unwrap_or_default();
    let is_word = first.chars().all(|c| c.is_ascii_lowercase());
    let text = if is_word { labels::capitalised(detail) } else { detail.to_owned() };
    let has_end = text.ends_with(['.', '!', '?', ':']) || text.contains("http") && text.ends_with(['/', '"']);
    if has_end { text } else { format!("{text}.") }
}

/// Maximum length of the words of a search that the links repeat.
const WORDS_BYTES_MAX: usize = 200;

fn known(problem: &ProblemBody, path: &str, query: &str) -> Vec<Link> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let words = pairs.find(|(name, words)| name == "q" && words.len() <= WORDS_BYTES_MAX);
    let link = |value: &String| {
        let Some(parameter) = problem.parameter() else {
            return Link { text: value.clone(), href: String::new() };
        };
        let key = parameter.parse::<FacetKey>().ok();
        let text = key.map_or_else(|| value.clone(), |key| labels::facet_value(key, value));
        let pairs = words.iter().map(|(name, words)| (&**name, &**words));
        Link { text, href: with_query(path, pairs.chain([(parameter, value.as_str())])) }
    };
    problem.known.iter().map(link).collect()
}

fn title(problem: &ProblemBody) -> &'static str {
    match problem.status.as_u16() {
        400 | 422 => "This request is invalid",
        403 => "This is not allowed",
        404 | 410 => "Not found",
        429 => "Not yet",
        503 => "Not available right now",
        _ => problem.title,
    }
}

/// The site of `/sites/{domain}` and of addresses below it, and whether the address is that of its page.
fn site_of(path: &str) -> Option<(String, bool)> {
    let rest = path.strip_prefix("/sites/")?;
    let domain = rest.split('/').next()?;
    SiteName::parse(domain).ok().map(|site| (site.to_string(), domain.len() == rest.len()))
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;
    use crate::problem::Problem;

    #[test]
    fn known_values_are_links_that_keep_the_words() {
        let unknown = Problem::bad_request("\"x\" is not a known format").with_parameter("format");
        let unknown = unknown.with_known(["mcp_card"]);
        let [link]: [Link; 1] =
            known(unknown.body(), "/search", "q=book+a+flight&format=x").try_into().unwrap();
        assert_eq!(link.href, "/search?q=book+a+flight&format=mcp_card");
        assert_eq!(link.text, labels::format_of_slug("mcp_card"));
        let tools = Problem::not_found("no such tool").with_known(["search"]);
        assert!(known(tools.body(), "/tools/x", "").iter().all(|link| link.href.is_empty()));
    }

    #[test]
    fn an_address_without_a_page_has_a_sentence() {
        let of = |problem: Problem| lead(problem.body(), "/x");
        assert_eq!(
            of(Problem::not_found(format!("{NOTHING_HERE}; begin at /"))),
            "There is no page at this address."
        );
        assert_eq!(of(Problem::not_found("there is no capability x")), "There is no capability x.");
        assert_eq!(
            of(Problem::not_found("shop.example asked for a delay")),
            "shop.example asked for a delay."
        );
        let misspelt = Problem::bad_request("the id of a capability is ...");
        assert_eq!(lead(misspelt.body(), "/capabilities/x"), "There is no capability at this address.");
        assert!(of(Problem::of_status(StatusCode::METHOD_NOT_ALLOWED)).contains("for programs"));
    }
}
