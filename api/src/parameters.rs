//! Query strings, parsed strictly: an unknown name, an unknown value of a closed vocabulary, an invalid encoding or too many values cause a
//! 400 that lists the valid names or values. So a typo never causes an empty result. Pages alone ignore unknown names.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use indexer::CURSOR_BYTES_MAX;
use manifest::model::UnknownValue;
use percent_encoding::percent_decode_str;

use crate::problem::Problem;
use crate::response::RequestContext;

/// Maximum number of `name=value` pairs in one request: every known parameter several times over.
const PAIRS_MAX: usize = 64;
/// Maximum length of a value in bytes: enough for a question in full sentences.
const VALUE_BYTES_MAX: usize = 1_024;
/// Parameters that take a cursor of an earlier response, up to [`CURSOR_BYTES_MAX`].
const CURSORS: [&str; 2] = ["cursor", "pageToken"];
/// Maximum number of values of one key: more than the largest closed vocabulary.
const VALUES_MAX: usize = 50;

/// The decoded pairs of a query string, in order. Empty values count as absent, because forms send empty fields.
#[derive(Debug, Clone)]
pub(crate) struct QueryPairs(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for QueryPairs {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::parse(parts.uri.query().unwrap_or_default())
    }
}

impl QueryPairs {
    pub(crate) fn parse(query: &str) -> Result<Self, Problem> {
        let pieces = query.split('&').filter(|piece| !piece.is_empty());
        Self::checked(pieces.map(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            Ok((decoded(name)?, decoded(value)?))
        }))
    }

    /// Checks decoded pairs against the limits on their number and length.
    pub(crate) fn checked(
        given: impl IntoIterator<Item = Result<(String, String), Problem>>,
    ) -> Result<Self, Problem> {
        let mut pairs = Vec::new();
        for pair in given {
            let (name, value) = pair?;
            let is_cursor = CURSORS.contains(&name.as_str());
            let bytes_max = if is_cursor { CURSOR_BYTES_MAX } else { VALUE_BYTES_MAX };
            if value.len() > bytes_max {
                let detail = format!("\"{}\" is longer than {bytes_max} bytes", shown(&name));
                return Err(Problem::bad_request(detail).with_parameter(&shown(&name)));
            }
            pairs.push((name, value));
        }
        if pairs.len() > PAIRS_MAX {
            return Err(Problem::bad_request(format!("more than {PAIRS_MAX} parameters in one request")));
        }
        Ok(Self(pairs))
    }

    /// Rejects parameters that the route does not have.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        let Some((name, _)) = self.0.iter().find(|(name, _)| !known.contains(&name.as_str())) else {
            return Ok(());
        };
        let hint = if known.is_empty() { ": this route has no parameters" } else { "" };
        let detail = format!("unknown parameter \"{}\"{hint}", shown(name));
        Err(Problem::bad_request(detail).with_parameter(&shown(name)).with_known(known))
    }

    /// Rejects unknown parameters, except for pages, which drop them: newsletters and social networks append their own to the links that
    /// people share.
    pub(crate) fn known(self, context: &RequestContext, known: &[&str]) -> Result<Self, Problem> {
        if context.wants_page() {
            let kept = self.0.into_iter().filter(|(name, _)| known.contains(&name.as_str()));
            return Ok(Self(kept.collect()));
        }
        self.only(known)?;
        Ok(self)
    }

    /// All pairs except those with this name.
    pub(crate) fn without(&self, name: &str) -> Self {
        Self(self.0.iter().filter(|(other, _)| other != name).cloned().collect())
    }

    /// Every value of a key, not split at commas.
    pub(crate) fn texts(&self, key: &str) -> Vec<&str> {
        let of_key = self.0.iter().filter(|(name, _)| name == key);
        of_key.map(|(_, value)| value.trim()).filter(|value| !value.is_empty()).collect()
    }

    /// Every value of a key, from repeats and comma-separated lists.
    pub(crate) fn list(&self, key: &str) -> Result<Vec<&str>, Problem> {
        let values: Vec<&str> = self
            .texts(key)
            .into_iter()
            .flat_map(|text| text.split(','))
            .map(str::trim)
            .filter(|value| !value.is_empty())
            .collect();
        if values.len() > VALUES_MAX {
            let detail = format!("more than {VALUES_MAX} values for \"{key}\"");
            return Err(Problem::bad_request(detail).with_parameter(key));
        }
        Ok(values)
    }

    /// The values of a key whose vocabulary is closed.
    pub(crate) fn closed<T>(&self, key: &str) -> Result<Vec<T>, Problem>
    where
        T: FromStr<Err = UnknownValue>,
    {
        self.list(key)?
            .into_iter()
            .map(|text| text.parse().map_err(|error| unknown_value(key, &error)))
            .collect()
    }

    /// The only value of a key. Repeats are rejected.
    pub(crate) fn one(&self, key: &str) -> Result<Option<&str>, Problem> {
        match self.texts(key).as_slice() {
            [] => Ok(None),
            [value] => Ok(Some(value)),
            _ => Err(Problem::bad_request(format!("\"{key}\" must not be repeated")).with_parameter(key)),
        }
    }

    /// The only value of a key, parsed.
    pub(crate) fn one_parsed<T>(&self, key: &str) -> Result<Option<T>, Problem>
    where
        T: FromStr,
        T::Err: Display,
    {
        let Some(text) = self.one(key)? else { return Ok(None) };
        text.parse().map(Some).map_err(|error| {
            Problem::bad_request(format!("the value of \"{key}\" is invalid: {error}")).with_parameter(key)
        })
    }

    /// The only value of a key whose vocabulary is closed.
    pub(crate) fn one_closed<T>(&self, key: &str) -> Result<Option<T>, Problem>
    where
        T: FromStr<Err = UnknownValue>,
    {
        let Some(text) = self.one(key)? else { return Ok(None) };
        text.parse().map(Some).map_err(|error| unknown_value(key, &error))
    }

    /// The first value of a key, including leading and trailing spaces; empty for a key without a value.
    pub(crate) fn raw(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// `limit`, from 1 to `limit_max`.
    pub(crate) fn limit(&self, limit_default: u32, limit_max: u32) -> Result<u32, Problem> {
        let Some(text) = self.one("limit")? else { return Ok(limit_default) };
        text.parse::<u32>().ok().filter(|limit| (1..=limit_max).contains(limit)).ok_or_else(|| {
            let detail = format!("\"limit\" is a whole number from 1 to {limit_max}");
            Problem::bad_request(detail).with_parameter("limit")
        })
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .filter(|(_, value)| !value.trim().is_empty())
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// A 400 for a word outside a closed vocabulary, with the valid words.
pub(crate) fn unknown_value(key: &str, error: &UnknownValue) -> Problem {
    let detail = format!("\"{}\" is not a known {}", error.value, error.what);
    Problem::bad_request(detail).with_parameter(key).with_known(error.known.split(", "))
}

fn decoded(text: &str) -> Result<String, Problem> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced)
        .decode_utf8()
        .map_err(|_| Problem::bad_request("the query string is not UTF-8: percent-encode it as UTF-8"))?;
    Ok(decoded.into_owned())
}

/// The start of a client's parameter name, safe to repeat in a response.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use manifest::Format;

    fn pairs(query: &str) -> QueryPairs {
        QueryPairs::parse(query).unwrap()
    }

    fn detail(result: Result<impl std::fmt::Debug, Problem>) -> String {
        result.unwrap_err().body().in_words()
    }

    #[test]
    fn lists_accept_repeats_and_commas() {
        let pairs = pairs("format=awp,atp&format=woa&q=book%2C+please&q=caf%C3%A9&site=");
        assert_eq!(pairs.closed::<Format>("format").unwrap(), [Format::Awp, Format::Atp, Format::Woa]);
        assert_eq!(pairs.texts("q"), ["book, please", "café"]);
        assert!(pairs.texts("site").is_empty());
    }

    #[test]
    fn rejects_invalid_parameters_and_lists_the_valid_ones() {
        assert!(detail(pairs("qq=1").only(&["q", "limit"])).contains("\"qq\": one of q, limit"));
        assert!(detail(pairs("format=soap").closed::<Format>("format")).contains("awp, atp"));
        assert!(detail(pairs("limit=0").limit(20, 100)).contains("from 1 to 100"));
        assert!(detail(pairs("limit=1&limit=2").limit(20, 100)).contains("must not be repeated"));
        assert!(detail(QueryPairs::parse("q=%FF")).contains("UTF-8"));
        assert!(detail(QueryPairs::parse(&format!("q={}", "a".repeat(1_025)))).contains("longer than"));
        let cursor = |bytes: usize| format!("cursor={}", "a".repeat(bytes));
        assert!(QueryPairs::parse(&cursor(CURSOR_BYTES_MAX)).is_ok());
        assert!(detail(QueryPairs::parse(&cursor(CURSOR_BYTES_MAX + 1))).contains("longer than 10240"));
        assert!(detail(QueryPairs::parse(&"a=b&".repeat(65))).contains("more than 64"));
        assert!(detail(pairs(&format!("site={}", "a,".repeat(51))).list("site")).contains("more than 50"));
    }
}
