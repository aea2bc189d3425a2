//! Seeds from a list at a URL that the operator names.
//!
//! Requests follow the rules of the host, also after a redirect ([`StandaloneRequests`]). A list that robots.txt forbids is not read.

use http::HeaderMap;
use http::header::LOCATION;
use manifest::ManifestUrl;
use policy::redirect::{Purpose, RedirectDecision, decide};
use policy::{BodyKind, FetchOutcome};

use crate::registry_pages::denial;
use crate::seeds::SeedError;
use crate::visit::{Message, StandaloneRequests};

/// Maximum number of redirects of a list; Tranco's has one.
const HOPS_MAX: usize = 3;
/// What to do about redirects that are not followed.
const FINAL_URL: &str = "name the URL of the list itself";

/// The bytes of a list at a URL.
pub(crate) async fn fetch_list(
    requests: &mut StandaloneRequests,
    url: &ManifestUrl,
) -> Result<Vec<u8>, SeedError> {
    let unfetched = |(reason, advice): (String, &'static str)| SeedError::Unfetched {
        name: url.to_string(),
        reason,
        advice,
    };
    let mut chain = vec![url.clone()];
    while let Some(current) = chain.last() {
        // the kind of body with the largest limit
        let answer = requests.send(current, BodyKind::OpenApi, Message::Get(&HeaderMap::new())).await;
        let reply = answer.map_err(|error| unfetched((error.to_string(), error.advice())))?;
        let head = &reply.head;
        match (FetchOutcome::of_response(head.status.as_u16(), &head.headers), reply.body) {
            (None, Some(body)) => return Ok(body.bytes),
            (None, None) if chain.len() > HOPS_MAX => {
                return Err(unfetched((format!("more than {HOPS_MAX} redirects"), FINAL_URL)));
            }
            (None, None) => match decide(&chain, head.text(&LOCATION), Purpose::Resource) {
                RedirectDecision::Follow(next) | RedirectDecision::OtherSite(next) => chain.push(next),
                RedirectDecision::Refuse(refusal) => {
                    return Err(unfetched((format!("its redirect is not followed: {refusal}"), FINAL_URL)));
                }
            },
            (Some(_), _) => return Err(unfetched(denial(&reply.head, "check the URL"))),
        }
    }
    Err(unfetched(("there is no URL to request".to_owned(), FINAL_URL)))
}
