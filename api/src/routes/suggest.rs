//! `GET /suggest`: completions of a prefix, from the index.

use indexer::{Suggestion, SuggestionKind};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answers::search::search_problem;
use crate::dashboard;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};

/// Default number of completions: as many as fit below a search box.
const LIMIT_DEFAULT: u32 = 8;
const LIMIT_MAX: u32 = 50;

/// Completions, the most frequent first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuggestAnswer {
    q: String,
    #[schema(value_type = Vec<crate::openapi::schemas::Suggestion>)]
    suggestions: Vec<LabelledSuggestion>,
}

/// A completion with a label for people: "Book a hotel" for `travel:hotel-booking`.
#[derive(Debug, Serialize)]
struct LabelledSuggestion {
    #[serde(flatten)]
    suggestion: Suggestion,
    label: String,
}

impl From<Suggestion> for LabelledSuggestion {
    fn from(suggestion: Suggestion) -> Self {
        let label = match suggestion.kind {
            SuggestionKind::SemanticType => dashboard::type_words(&suggestion.text),
            _ => suggestion.text.clone(),
        };
        Self { suggestion, label }
    }
}

/// Completes the text that is being typed.
#[utoipa::path(
    get,
    path = "/suggest",
    tag = "search",
    params(
        ("q" = String, Query, description = "The text typed so far; a trailing space requests completions of the next word", max_length = 1024),
        ("limit" = Option<u32>, Query, description = "Maximum number of results; the default is 8", minimum = 1, maximum = 50),
    ),
    responses((status = 200, description = "Completions", body = SuggestAnswer)),
)]
pub(crate) async fn show(Request { app, client, context, query }: Request) -> HttpResult {
    query.only(&["q", "limit"])?;
    query.one("q")?;
    let Some(typed) = query.raw("q").map(ToOwned::to_owned) else {
        let detail = "give \"q\", the text typed so far, as in /suggest?q=bo";
        return Err(Problem::bad_request(detail).with_parameter("q"));
    };
    let limit = usize::try_from(query.limit(LIMIT_DEFAULT, LIMIT_MAX)?).unwrap_or(usize::MAX);
    let prefix = typed.clone();
    let suggested = app.index.run(client, move |searcher| searcher.suggest(&prefix, limit)).await?;
    let suggestions = suggested.map_err(|error| search_problem(&error))?;
    let suggestions = suggestions.into_iter().map(LabelledSuggestion::from).collect();
    context.json(&SuggestAnswer { q: typed, suggestions }, Caching::Search)
}
