//! Checks the value of a field against its specification.

use serde_json::Value;

use crate::address;
use crate::model::Severity;
use crate::object::{type_name, whole};
use crate::rule::{Field, Kind};
use crate::text;

/// A defect of a field.
pub(crate) enum Flaw {
    Missing(Severity),
    /// The JSON type of the value.
    Mistyped(&'static str),
    /// A negative number where zero or more is expected.
    Negative(String),
    /// Position and JSON type of the first element that is wrong.
    Element(usize, &'static str),
    /// A required text is empty.
    Empty,
    /// A value of the right type that is not allowed.
    Invalid(String),
}

impl Flaw {
    pub(crate) const fn code_part(&self) -> &'static str {
        match self {
            Self::Missing(_) => "missing",
            Self::Mistyped(_) | Self::Negative(_) | Self::Element(..) | Self::Empty => "mistyped",
            Self::Invalid(_) => "invalid",
        }
    }

    /// The text of the finding.
    pub(crate) fn message(&self, field: &Field) -> String {
        let key = field.key;
        match self {
            Self::Missing(_) => ["`", key, "` is missing"].concat(),
            Self::Mistyped(found) => {
                ["`", key, "` is ", found, ", expected ", field.kind.description()].concat()
            }
            Self::Negative(found) => format!("`{key}` is {found}, expected a whole number of at least 0"),
            Self::Element(_, found) => {
                format!("an element of `{key}` is {found}, expected {}", field.kind.description())
            }
            Self::Empty => format!("`{key}` is empty, expected {} with text", field.kind.description()),
            Self::Invalid(found) => {
                format!("`{key}` is \"{found}\", expected {}", field.kind.form_description())
            }
        }
    }
}

/// The meaning of null in an optional field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Null {
    /// An absent value, as in the JSON of protocol buffers.
    Absent,
    /// A value of a type that the specification does not allow.
    Value,
}

/// The defect of a field's value, if it has one.
pub(crate) fn flaw(value: Option<&Value>, field: &Field, null: Null) -> Option<Flaw> {
    let Some(value) = value else { return field.missing.map(Flaw::Missing) };
    if value.is_null() {
        let is_typed = null == Null::Value && field.kind.has_type();
        return (field.missing.is_some() || is_typed).then(|| Flaw::Mistyped(type_name(value)));
    }
    if let (Kind::Texts, Value::Array(list)) = (field.kind, value) {
        let is_text = |element: &Value| element.as_str().is_some_and(|text| !text.trim().is_empty());
        let wrong = list.iter().enumerate().find(|(_, element)| !is_text(element));
        let found =
            |element: &Value| if element.is_string() { "an empty string" } else { type_name(element) };
        return wrong.map(|(position, element)| Flaw::Element(position, found(element)));
    }
    if !has_type(value, field.kind) {
        let is_negative =
            matches!(field.kind, Kind::Integer) && value.as_f64().is_some_and(|number| number < 0.0);
        if is_negative {
            return Some(Flaw::Negative(value.to_string()));
        }
        return Some(Flaw::Mistyped(type_name(value)));
    }
    let text = value.as_str()?;
    if text.trim().is_empty() && !field.kind.has_form() {
        return field.missing.filter(|_| !matches!(field.kind, Kind::Any)).map(|_| Flaw::Empty);
    }
    (!has_form(text, field.kind)).then(|| Flaw::Invalid(text::capped(text, 60).to_owned()))
}

fn has_type(value: &Value, kind: Kind) -> bool {
    match kind {
        Kind::Any | Kind::Line(..) => true,
        Kind::Text | Kind::Url | Kind::Reference | Kind::UriReference | Kind::OneOf(_) | Kind::Form(..) => {
            value.is_string()
        }
        Kind::Bool => value.is_boolean(),
        Kind::Integer => value.is_number() && whole(value).is_some(),
        Kind::Number => value.is_number(),
        Kind::Object => value.is_object(),
        Kind::List | Kind::Texts => value.is_array(),
    }
}

fn has_form(text: &str, kind: Kind) -> bool {
    match kind {
        Kind::OneOf(known) => known.contains(&text),
        Kind::Form(accepts, _) | Kind::Line(accepts, _) => accepts(text),
        Kind::Url => is_url(text),
        Kind::Reference => is_url(text) || (text.starts_with('/') && !text.contains(char::is_whitespace)),
        Kind::UriReference => is_url(text) || is_relative_reference(text),
        _ => true,
    }
}

/// Whether a text is a relative reference (RFC 3986 §4.2), which may have `{name}` variables.
fn is_relative_reference(text: &str) -> bool {
    let first = text.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain =
        |letter: char| !letter.is_whitespace() && !letter.is_control() && !"\"<>\\^`|".contains(letter);
    !text.is_empty() && !first.contains(':') && text.chars().all(is_plain)
}

/// Whether a text is an absolute URL with a host.
pub(crate) fn is_url(text: &str) -> bool {
    if address::plain_origin(text).is_some() {
        return true;
    }
    let braceless = text.replace(['{', '}'], "x");
    crate::name::parse_url(&braceless).is_ok_and(|url| url.has_host())
}

/// `MAJOR.MINOR.PATCH` with optional pre-release and build (Semantic Versioning 2.0.0).
pub(crate) fn is_semver(text: &str) -> bool {
    let (core, _) = text.split_once('+').unwrap_or((text, ""));
    let (core, pre) = core.split_once('-').map_or((core, None), |(core, pre)| (core, Some(pre)));
    let number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let identifier =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let parts: Vec<&str> = core.split('.').collect();
    parts.len() == 3 && parts.into_iter().all(number) && pre.is_none_or(|pre| pre.split('.').all(identifier))
}

/// `MAJOR.MINOR`.
pub(crate) fn is_major_minor(text: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('.').is_some_and(|(major, minor)| number(major) && number(minor))
}

/// Whether a text has the form of an e-mail address.
pub(crate) fn is_email(text: &str) -> bool {
    let text = text.strip_prefix("mailto:").unwrap_or(text);
    let parts = text.split_once('@');
    parts.is_some_and(|(local, domain)| {
        !local.is_empty()
            && domain.contains('.')
            && !text.contains(char::is_whitespace)
            && !domain.contains('@')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_versions_emails_and_urls() {
        for (text, expected) in
            [("1.0.0", true), ("0.1.0-rc.1+b2", true), ("1.0", false), ("v1.0.0", false), ("01.0.0", false)]
        {
            assert_eq!(is_semver(text), expected, "{text}");
        }
        assert!(is_email("agents@shop.example") && !is_email("https://shop.example/@x y"));
        assert!(is_url("https://{tenant}.example/x") && !is_url("/x") && !is_url("mailto:a@b.example"));
    }
}
