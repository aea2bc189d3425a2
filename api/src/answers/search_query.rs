//! The parameters of a search, as the OpenAPI document describes them.

use indexer::FacetKey;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Array, Required};

use super::search_parameters::{View, filter_keys};
use crate::openapi::schemas::{FacetWords, GroupingWord, SortWord, vocabulary};

vocabulary! {
    ViewWord = View,
}

/// The query and its filters. Values of one parameter are combined with OR, parameters with AND.
pub(crate) struct SearchQuery;

/// The search text.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes search_parameters")]
struct WordsQuery {
    /// Words; may be left out when a filter is given. Supports "phrases", -word, site:, type:, format:, method:, safety: and auth:.
    /// Repeats are phrasings of one query.
    #[param(max_length = 1024)]
    q: Option<String>,
}

/// The parameters of a search after its filters.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes search_parameters")]
struct OrderQuery {
    /// A date or a time.
    updated_since: Option<String>,
    #[param(inline)]
    sort: Option<SortWord>,
    /// Maximum number of results; the default is 20, and 50 for a feed.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
}

impl IntoParams for SearchQuery {
    fn into_params(parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let filters = filter_keys().map(filter_parameter);
        let words = WordsQuery::into_params(&parameter_in).into_iter();
        words.chain(filters).chain(OrderQuery::into_params(&parameter_in)).collect()
    }
}

/// The parameter of a filter: a list of strings, limited to the words of the vocabulary if the filter has one.
fn filter_parameter(key: FacetKey) -> Parameter {
    let filter = key.filter();
    let words = filter.vocabulary.map(|words| words());
    let value = ObjectBuilder::new().schema_type(Type::String).enum_values(words);
    ParameterBuilder::new()
        .name(key.as_str())
        .parameter_in(ParameterIn::Query)
        .description(filter.parameter.filter(|text| !text.is_empty()))
        .required(Required::False)
        .schema(Some(Array::new(value)))
        .style(Some(ParameterStyle::Form))
        .explode(Some(false))
        .build()
}

/// The format of the results: parameters of a search that a search feed does not have.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes search_parameters")]
pub(crate) struct ResultsQuery {
    /// `next_cursor` of the previous page.
    #[param(max_length = 10240, pattern = "^[A-Za-z0-9_-]*$")]
    cursor: Option<String>,
    /// Members of the rows that are wanted; all unless given.
    #[param(style = Form, explode = false)]
    fields: Option<Vec<String>>,
    /// What to count the results by.
    #[param(style = Form, explode = false, inline)]
    facets: Option<FacetWords>,
    /// Which results become members of the group of their best one: near copies (the default), all results of a site, or
    /// none. `site` shows which site answers best.
    #[param(inline)]
    group_by: Option<GroupingWord>,
    #[param(inline)]
    view: Option<ViewWord>,
    /// Whether the first ten results explain their scores.
    explain: Option<bool>,
}
