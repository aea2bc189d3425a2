//! `POST /feedback`: a client reports which capability it chose for a query. Off by default.
//!
//! Feedback does not change the ranking: operators review it, remove wrong feedback, export it and evaluate the ranking with it. A
//! capability must be a result of its query. The limits for each client and each site apply over all processes. Only a hash of the client's
//! address is stored, and it changes every day.

use std::net::IpAddr;

use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use data_encoding::HEXLOWER;
use indexer::{Hit, SearchRequest};
use manifest::CapabilityId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::{Feedback, FeedbackCap, FeedbackCaps, FeedbackOutcome};
use utoipa::ToSchema;

use crate::answers::capability::parse_id;
use crate::answers::search::search;
use crate::client::Client;
use crate::clock;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::HttpResult;
use crate::state::App;
use crate::text::one_line;

const BODY_BYTES_MAX: usize = 4 * 1024;
/// Maximum length of a stored query: people type a sentence.
const QUERY_CHARS_MAX: usize = 300;
/// Number of first results that may be chosen: people read no further.
const RANK_MAX: usize = 100;
/// Limits per client, per site and in total: a person chooses a few dozen results a day, more than a few hundred lines about one site are
/// not useful, and all lines together take a few megabytes.
const CAPS: FeedbackCaps =
    FeedbackCaps { of_client: 50, of_client_for_site: 10, of_site: 500, of_all: 50_000 };
/// Bytes of a client's hash: enough to distinguish the clients of a day.
pub(super) const CLIENT_BYTES: usize = 12;
const SECONDS_A_DAY: i64 = 24 * 60 * 60;

/// Which capability was chosen, by its id, for which request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FeedbackRequest {
    /// The query as it was sent to the search.
    #[schema(min_length = 1, max_length = 300)]
    query: String,
    // A doc comment here would add a second schema, of an object, to the schema of the id.
    #[schema(value_type = crate::openapi::schemas::CapabilityId, inline)]
    capability: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FeedbackAnswer {
    /// False if this client has already sent the same feedback today.
    kept: bool,
    /// Rank of the capability among the results of the query, from 1.
    place: u32,
}

/// Stores which capability was chosen for a query.
#[utoipa::path(
    post,
    path = "/feedback",
    tag = "search",
    request_body = FeedbackRequest,
    responses((status = 202, description = "The feedback was accepted", body = FeedbackAnswer)),
)]
pub(crate) async fn submit(Request { app, client, query, .. }: Request, body: Bytes) -> HttpResult {
    query.only(&[])?;
    if !app.config.feedback {
        return Err(Problem::forbidden(
            "this instance does not store feedback: the operator can enable it with --feedback, or feedback = true in [api]",
        ));
    }
    let (query, capability) = read(&body)?;
    let quota = app
        .limits
        .feedback(client)
        .map_err(|exhausted| exhausted.problem("this address has sent too much feedback"))?;
    let feedback = feedback_of(&app, client, query, capability).await?;
    let kept = match app.store.feedback_save(&feedback, CAPS).await? {
        FeedbackOutcome::Saved => true,
        FeedbackOutcome::Duplicate => false,
        FeedbackOutcome::Full(cap) => return Err(full(cap, &feedback)),
    };
    let answer = FeedbackAnswer { kept, place: feedback.place };
    let mut response = (StatusCode::ACCEPTED, axum::Json(answer)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    quota.write_headers(response.headers_mut());
    Ok(response)
}

fn read(body: &[u8]) -> Result<(String, CapabilityId), Problem> {
    if body.len() > BODY_BYTES_MAX {
        let detail = format!("the body is larger than {BODY_BYTES_MAX} bytes");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let request: FeedbackRequest = manifest::budget::parse_within_budget(body, &manifest::budget::REQUEST).map_err(|error| {
        Problem::bad_request(format!(
            "the body does not have the expected format ({error}): send {{\"query\": \"book flight\", \"capability\": \"c…\"}}"
        ))
    })?;
    if request.query.chars().count() > QUERY_CHARS_MAX {
        let detail = format!("\"query\" is longer than {QUERY_CHARS_MAX} characters");
        return Err(Problem::bad_request(detail).with_parameter("query"));
    }
    let query = one_line(&request.query, QUERY_CHARS_MAX);
    if query.is_empty() {
        return Err(
            Problem::bad_request("\"query\" is empty: send the query of the search").with_parameter("query")
        );
    }
    let capability = parse_id(&request.capability).map_err(|problem| problem.with_parameter("capability"))?;
    Ok((query, capability))
}

/// Whether the id belongs to the result or to one of its declarations.
fn is_result(hit: &Hit, id: &CapabilityId) -> bool {
    hit.id == *id || hit.declarations.iter().any(|declaration| declaration.id == *id)
}

/// Repeats the client's search: a capability that is not among its results cannot have been chosen.
async fn feedback_of(
    app: &App,
    client: Client,
    query: String,
    capability: CapabilityId,
) -> Result<Feedback, Problem> {
    let request =
        SearchRequest { phrasings: vec![query.clone()], limit: RANK_MAX, ..SearchRequest::default() };
    let found =
        search(&app.index, client, request).await.map_err(|problem| problem.renamed("q", "query"))?.answer;
    let at = found.hits.iter().position(|hit| is_result(hit, &capability)).ok_or_else(|| {
        let detail = format!(
            "{capability} is not among the first {RANK_MAX} results for this query; send the query that found it"
        );
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with_parameter("capability")
    })?;
    let (site, capability) =
        found.hits.get(at).map(|hit| (hit.site.clone(), hit.id.clone())).ok_or_else(|| {
            Problem::not_found(format!("there is no capability {capability}; it may have left the index"))
        })?;
    let now = clock::now();
    let salt = app.store.feedback_salt(now.timestamp() / SECONDS_A_DAY, &fresh_salt()).await?;
    let place = u32::try_from(at + 1).unwrap_or(u32::MAX);
    Ok(Feedback { at: now, query, capability, site, place, client: key(&salt, client.address) })
}

fn fresh_salt() -> String {
    HEXLOWER.encode(&rand::random::<[u8; 32]>())
}

/// Identifies a client for one day. The salt is deleted at the end of the day; without it, the key cannot be traced to an address.
fn key(salt: &str, address: IpAddr) -> String {
    let digest = Sha256::new().chain_update(salt).chain_update(address.to_string()).finalize();
    HEXLOWER.encode(digest.get(..CLIENT_BYTES).unwrap_or_default())
}

fn full(cap: FeedbackCap, feedback: &Feedback) -> Problem {
    let until_midnight = SECONDS_A_DAY - feedback.at.timestamp().rem_euclid(SECONDS_A_DAY);
    let wait_s = u32::try_from(until_midnight).unwrap_or(u32::MAX);
    let site = &feedback.site;
    match cap {
        FeedbackCap::Client => Problem::too_many("this address has used up its feedback for today", wait_s),
        FeedbackCap::ClientForSite => {
            Problem::too_many(format!("this address has used up its feedback about {site} for today"), wait_s)
        }
        FeedbackCap::Site => {
            Problem::forbidden(format!("the feedback about {site} has reached its limit: no more is stored"))
        }
        FeedbackCap::All => Problem::forbidden(
            "the feedback has reached its limit: the operator has to remove some of it first",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_query_and_a_capability_id() {
        let id = "caaaaaaaaaaaaaaaa";
        let (query, capability) =
            read(format!("{{\"query\": \" book\\n flight \", \"capability\": \"{id}\"}}").as_bytes())
                .unwrap();
        assert_eq!((query.as_str(), capability.as_str()), ("book flight", id));
        let long = "x".repeat(301);
        for (wrong, word) in [
            (String::new(), "expected"),
            ("[]".into(), "expected"),
            (format!("{{\"query\": \"x\", \"capability\": \"{id}\", \"more\": 1}}"), "more"),
            (format!("{{\"query\": \" \", \"capability\": \"{id}\"}}"), "empty"),
            (format!("{{\"query\": \"{long}\", \"capability\": \"{id}\"}}"), "longer"),
            ("{\"query\": \"x\", \"capability\": \"7\"}".into(), "id of a capability"),
        ] {
            let detail = read(wrong.as_bytes()).unwrap_err().body().detail.clone();
            assert!(detail.contains(word), "{wrong}: {detail}");
        }
        assert_eq!(read(&[b' '; 5_000]).unwrap_err().body().status, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn client_hash_changes_every_day() {
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let (today, tomorrow) = (fresh_salt(), fresh_salt());
        assert_eq!(key(&today, one), key(&today, one));
        assert_ne!(key(&today, one), key(&today, other));
        assert_ne!(key(&today, one), key(&tomorrow, one));
        assert_eq!(key(&today, one).len(), 2 * CLIENT_BYTES);
    }
}
