//! What a watch is requested to deliver: the changes of a site, or the results of a search.

use manifest::{ManifestUrl, SiteScope};
use serde::Deserialize;
use store::WatchTarget;
use utoipa::ToSchema;

use super::search_parameters::SearchParameters;
use super::site::site_of;
use crate::parameters::QueryPairs;
use crate::problem::Problem;

/// Maximum length of the URL of a receiver.
const URL_CHARS_MAX: usize = 2_048;
/// Maximum length of the query of a search. It is in each message, and a search in the browser is shorter.
const SEARCH_BYTES_MAX: usize = 1_024;
/// Parameters of a search that do not apply to a watch, which delivers every relevant result that is new or has changed.
const NOT_IN_WATCHES: [&str; 9] =
    ["cursor", "explain", "facets", "fields", "group_by", "limit", "sort", "updated_since", "view"];

/// A site or a search to watch, and the URL that receives the changes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WatchRequest {
    /// A domain name, as in `skyhop.example`. Give either this or `search`.
    #[schema(max_length = 253)]
    site: Option<String>,
    /// Words and filters as the query of `GET /search`, as in `q=book+flight&price=free`.
    #[schema(max_length = 1024)]
    search: Option<String>,
    /// The URL that receives the changes: https on port 443, of a public name.
    #[schema(max_length = 2048)]
    url: String,
}

/// A valid [`WatchRequest`].
#[derive(Debug)]
pub(crate) struct WatchRequested {
    pub(crate) target: WatchTarget,
    pub(crate) receiver: ManifestUrl,
}

impl WatchRequest {
    pub(crate) fn read(body: &[u8]) -> Result<WatchRequested, Problem> {
        let request: Self = manifest::budget::parse_within_budget(body, &manifest::budget::REQUEST)
            .map_err(|error| invalid_body(&crate::body::expected(&error.to_string())))?;
        let target = match (&request.site, &request.search) {
            (Some(site), None) => {
                let site = site_of(site.trim()).map_err(|problem| problem.with_parameter("site"))?;
                WatchTarget::Site(site)
            }
            (None, Some(query)) => {
                let query = query.trim();
                search_of(query).map_err(|problem| problem.with_parameter("search"))?;
                WatchTarget::Search(query.to_owned())
            }
            (Some(_), Some(_)) => return Err(invalid_body("it has both \"site\" and \"search\"")),
            (None, None) => return Err(invalid_body("it has neither \"site\" nor \"search\"")),
        };
        Ok(WatchRequested { target, receiver: receiver_of(request.url.trim())? })
    }
}

fn invalid_body(reason: &str) -> Problem {
    Problem::bad_request(format!(
        "the body does not have the expected format ({reason}): send {{\"site\": \"skyhop.example\", \"url\": \"https://…\"}}, or \
         \"search\": \"q=book+flight\" in place of \"site\""
    ))
}

/// The search of a watch.
pub(crate) fn search_of(query: &str) -> Result<SearchParameters, Problem> {
    if query.len() > SEARCH_BYTES_MAX {
        return Err(Problem::bad_request(format!("\"search\" is longer than {SEARCH_BYTES_MAX} bytes")));
    }
    if query.contains(char::is_control) {
        return Err(Problem::bad_request("\"search\" contains a control character".to_owned()));
    }
    if !query.is_empty() && !query.contains('=') {
        let words = url::form_urlencoded::byte_serialize(query.as_bytes()).collect::<String>();
        let detail = format!("\"search\" is the query of a search: write \"q={words}\"");
        return Err(Problem::bad_request(detail));
    }
    let pairs = QueryPairs::parse(query)?;
    if let Some((name, _)) = pairs.pairs().find(|(name, _)| NOT_IN_WATCHES.contains(name)) {
        return Err(Problem::bad_request(format!(
            "\"{name}\" does not apply to a watch, which delivers every relevant result that is new or has changed"
        )));
    }
    let parameters = SearchParameters::read(&pairs)?;
    if parameters.is_empty() {
        return Err(Problem::bad_request(
            "give \"q\", as in q=book+flight, or at least one filter, as in format=awp",
        ));
    }
    Ok(parameters)
}

fn receiver_of(url: &str) -> Result<ManifestUrl, Problem> {
    if url.chars().count() > URL_CHARS_MAX {
        let detail = format!("\"url\" is longer than {URL_CHARS_MAX} characters");
        return Err(Problem::bad_request(detail).with_parameter("url"));
    }
    ManifestUrl::parse(url)
        .and_then(|receiver| SiteScope::Public.check_url(&receiver).map(|()| receiver))
        .map_err(|error| Problem::bad_request(error.to_string()).with_parameter("url"))
}
