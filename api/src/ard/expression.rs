//! Filter expressions of `GET /agents` (ARD 0.91 Appendix A).
//!
//! `type = 'application/mcp-server-card+json' AND createdAfter > '2026-01-01'`: comparisons joined by AND. Several values,
//! separated by commas or listed after IN, mean OR. Values may be quoted; a comma separates values even inside quotes.

use chrono::{DateTime, Utc};
use indexer::Filters;

use super::filter::{self, Path};
use crate::answers::search_parameters::instant;
use crate::problem::Problem;

/// Maximum number of comparisons in one expression: every path once, and both time bounds.
const COMPARISONS_MAX: usize = 20;

/// The restriction of an expression.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Expression {
    pub(super) filters: Filters,
    /// The kind of listed entries: capabilities by default, or the kind in `metadata.entry`.
    pub(super) entries: Option<Entries>,
}

manifest::string_enum! {
    /// The kinds of entries.
    Entries, "kind of entry" { Capabilities = "capability", Manifests = "manifest" }
}

/// One piece of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A field, a keyword or a value without quotes.
    Word(String),
    Quoted(String),
    /// A comparison operator: `=`, `>`, `>=`.
    Operator(String),
    Punctuation(char),
}

pub(super) fn read(text: &str) -> Result<Expression, Problem> {
    let tokens = tokens(text)?;
    let mut expression = Expression::default();
    for (count, comparison) in tokens.split(is_and).enumerate() {
        if count >= COMPARISONS_MAX {
            return Err(refused(&format!("more than {COMPARISONS_MAX} comparisons in one expression")));
        }
        compare(&mut expression, comparison)?;
    }
    Ok(expression)
}

fn is_and(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.eq_ignore_ascii_case("and"))
}

fn compare(expression: &mut Expression, tokens: &[Token]) -> Result<(), Problem> {
    let [Token::Word(field), operator, rest @ ..] = tokens else {
        return Err(refused("each comparison has the form field = 'value', and AND joins them"));
    };
    let operator = match operator {
        Token::Operator(operator) => operator.as_str(),
        Token::Word(word) if word.eq_ignore_ascii_case("in") => "=",
        _ => return Err(refused(&format!("after \"{field}\" comes =, >, >= or IN"))),
    };
    let values = values(field, rest)?;
    let equals = matches!(operator, "=" | "==" | ":");
    let after = matches!(operator, ">" | ">=");
    let filters = &mut expression.filters;
    match field.as_str() {
        "createdAfter" | "created_after" if equals || after => {
            set_time(&mut filters.first_seen_since, field, &values)
        }
        "updatedAfter" | "updated_after" if equals || after => {
            set_time(&mut filters.updated_since, field, &values)
        }
        "createdAt" | "created_at" if after => set_time(&mut filters.first_seen_since, field, &values),
        "updatedAt" | "updated_at" if after => set_time(&mut filters.updated_since, field, &values),
        "metadata.entry" if equals => {
            let word = values.first().map(String::as_str).unwrap_or_default();
            let parsed =
                word.parse().map_err(|error: manifest::model::UnknownValue| refused(&error.to_string()));
            expression.entries = Some(parsed?);
            Ok(())
        }
        _ if equals => filter::restrict(filters, Path::read(field)?, values),
        _ => Err(refused(&format!("\"{field} {operator}\" is not understood: compare it with ="))),
    }
}

fn set_time(into: &mut Option<DateTime<Utc>>, field: &str, values: &[String]) -> Result<(), Problem> {
    let [value] = values else { return Err(refused(&format!("\"{field}\" takes a single time"))) };
    let time = instant(value).map_err(|_| {
        refused(&format!("\"{field}\" takes a date or a time, like '2026-11-21' or '2026-11-21T07:00:00Z'"))
    })?;
    *into = Some(into.map_or(time, |before| before.max(time)));
    Ok(())
}

fn values(field: &str, tokens: &[Token]) -> Result<Vec<String>, Problem> {
    let mut values = Vec::new();
    for token in tokens {
        match token {
            Token::Word(text) | Token::Quoted(text) => {
                values.extend(
                    text.split(',').map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned),
                );
            }
            Token::Punctuation(',' | '(' | ')') => {}
            Token::Punctuation(_) | Token::Operator(_) => {
                return Err(refused(&format!(
                    "the value of \"{field}\" is not understood: put it in quotes"
                )));
            }
        }
    }
    if values.is_empty() {
        return Err(refused(&format!("\"{field}\" has no value")));
    }
    Ok(values)
}

fn tokens(text: &str) -> Result<Vec<Token>, Problem> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '\'' | '"' => {
                let inside = rest.get(1..).unwrap_or_default();
                let end = inside.find(first).ok_or_else(|| refused("a quoted value does not end"))?;
                (Token::Quoted(inside.get(..end).unwrap_or_default().to_owned()), end + 2)
            }
            '=' | '>' | '<' | '!' | ':' => {
                let length = rest.find(|c| !matches!(c, '=' | '>' | '<' | '!' | ':')).unwrap_or(rest.len());
                (Token::Operator(rest.get(..length).unwrap_or_default().to_owned()), length)
            }
            '(' | ')' | ',' => (Token::Punctuation(first), 1),
            _ => {
                let ends = |c: char| {
                    c.is_whitespace() || matches!(c, '=' | '>' | '<' | '!' | '(' | ')' | ',' | '\'' | '"')
                };
                let length = rest.find(ends).unwrap_or(rest.len());
                (Token::Word(rest.get(..length).unwrap_or_default().to_owned()), length)
            }
        };
        tokens.push(token);
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    Ok(tokens)
}

fn refused(detail: &str) -> Problem {
    let example = "for example: type = 'application/mcp-server-card+json' AND updatedAfter > '2026-01-01'";
    Problem::bad_request(format!("the filter is not understood: {detail}; {example}"))
        .with_parameter("filter")
}

#[cfg(test)]
mod tests {
    use indexer::FacetKey;

    use super::*;

    #[test]
    fn parses_the_expressions_of_the_standard() {
        let read = read("type = 'application/mcp-server-card+json' AND createdAfter > '2026-01-01'").unwrap();
        assert!(read.filters.values(FacetKey::MediaType).eq(["application/mcp-server-card+json"]));
        assert_eq!(read.filters.first_seen_since.unwrap().to_rfc3339(), "2026-01-01T00:00:00+00:00");
        assert_eq!(read.entries, None);
    }

    #[test]
    fn parses_several_values_in_every_notation() {
        for text in [
            "publisherId=a.example,b.example",
            "publisherId IN ('a.example', \"b.example\")",
            "publisher = 'a.example,b.example'",
        ] {
            let filters = read(text).unwrap().filters;
            assert!(filters.values(FacetKey::Publisher).eq(["a.example", "b.example"]), "{text}");
        }
        let read = read("metadata.entry = 'manifest' and updatedAt >= 2026-11-21T07:00:00Z").unwrap();
        assert_eq!(read.entries, Some(Entries::Manifests));
        assert!(read.filters.updated_since.is_some());
    }

    type Make = fn(usize) -> String;

    /// Hostile expressions, built from a number of repeated units.
    const HOSTILE: &[(&str, Make)] = &[
        ("comparisons", |n| "type = a AND ".repeat(n)),
        ("values", |n| format!("publisher = {}", "a.example,".repeat(n))),
        ("listed values", |n| format!("publisher IN ({})", "'a.example', ".repeat(n))),
        ("quotes", |n| format!("type = {}", "'".repeat(2 * n))),
        ("open quotes", |n| format!("type = {}'", "\"'\"".repeat(n))),
        ("operators", |n| format!("type {}", "=".repeat(n))),
        ("separated operators", |n| format!("type {}", "= ".repeat(n))),
        ("parentheses", |n| format!("type = {}", "(".repeat(n))),
        ("spaces", |n| format!("type{}=", " ".repeat(n))),
        ("a long word", |n| "w".repeat(n)),
    ];

    /// Twice as long an expression allocates at most twice as much; the longest URL has 8 KiB.
    #[test]
    fn cost_of_expressions_is_linear() {
        for (name, make) in HOSTILE {
            let cost = |units: usize| allocation_counter::measure(|| drop(read(&make(units)))).bytes_total;
            // The first call builds tables that all calls share.
            cost(10);
            let (one, two) = (cost(1_000), cost(2_000));
            assert!(10 * two <= 23 * one + 10 * 4_096, "{name}: {one} bytes become {two}");
            assert!(two <= 1_024 * 1_024, "{name}: {two} bytes");
        }
    }

    #[test]
    fn refuses_unknown_expressions() {
        for text in [
            "",
            "type",
            "type =",
            "= 'x'",
            "type = 'x' OR type = 'y' > 3",
            "type = 'x",
            "type ! 'x'",
            "nonsense = 'x'",
            "type > 'x'",
            "updatedAfter > 'yesterday'",
            "type = 'x' AND",
            "type = 'a' AND type = 'b'",
            "metadata.entry = 'x'",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read(&vec!["tags = 'x'"; 21].join(" AND ")).is_err());
    }
}
