//! Requirements of specifications as data: rules, and object shapes as tables of fields.
//!
//! The checker applies the tables of a dialect to a document, and the catalogue of finding codes is generated from them. A code is
//! `<shape>.<field>.<missing|mistyped|invalid>` or the code of a rule.

use crate::model::Severity;

/// A requirement other than the presence or type of a single field.
pub(crate) struct Rule {
    /// Stable: `awp.action.id.duplicate`.
    pub(crate) code: &'static str,
    pub(crate) severity: Severity,
    /// Specification and section.
    pub(crate) spec: &'static str,
    /// What is wrong, in words that apply to any document.
    pub(crate) wrong: &'static str,
    /// What to do about it.
    pub(crate) fix: &'static str,
}

/// An object of a specification: the prefix of its finding codes, the section that defines it, and its fields.
pub(crate) struct Shape {
    /// `awp.action`
    pub(crate) code: &'static str,
    /// `AWP 0.1 §9`
    pub(crate) spec: &'static str,
    pub(crate) fields: &'static [Field],
}

/// One row of a specification's table of fields.
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) kind: Kind,
    /// Severity of its absence; `None` if it is optional.
    pub(crate) missing: Option<Severity>,
    /// Severity of a wrong type or value.
    pub(crate) wrong: Severity,
    /// What to publish, as an imperative sentence.
    pub(crate) fix: &'static str,
}

/// The required value of a field.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Any,
    Text,
    Bool,
    Integer,
    Number,
    Object,
    List,
    /// A list of strings.
    Texts,
    /// An absolute URL.
    Url,
    /// An absolute URL or a path.
    Reference,
    /// An absolute URL or any relative reference: `tools`, `?id=1` (RFC 3986 §4.1).
    UriReference,
    /// A string from a closed list, case-sensitive.
    OneOf(&'static [&'static str]),
    /// A string that passes a test, with a description of the test.
    Form(fn(&str) -> bool, &'static str),
    /// The value of a text line, which is always a string, that passes a test, with a description of the test.
    Line(fn(&str) -> bool, &'static str),
}

/// A required field.
pub(crate) const fn must(key: &'static str, kind: Kind, fix: &'static str) -> Field {
    Field { key, kind, missing: Some(Severity::Must), wrong: Severity::Must, fix }
}

/// A recommended field.
pub(crate) const fn should(key: &'static str, kind: Kind, fix: &'static str) -> Field {
    Field { key, kind, missing: Some(Severity::Should), wrong: Severity::Should, fix }
}

/// An optional field.
pub(crate) const fn may(key: &'static str, kind: Kind, fix: &'static str) -> Field {
    Field { key, kind, missing: None, wrong: Severity::Should, fix }
}

/// An optional field. A wrong value breaks a requirement.
pub(crate) const fn optional_must(key: &'static str, kind: Kind, fix: &'static str) -> Field {
    Field { key, kind, missing: None, wrong: Severity::Must, fix }
}

impl Field {
    /// The field's name in codes: `rate_limit` for `rateLimit`, `context` for `@context`.
    pub(crate) fn code_part(&self) -> String {
        let mut part = String::with_capacity(self.key.len() + 2);
        for letter in self.key.chars() {
            match letter {
                '@' | '$' => {}
                '-' | '.' | ' ' => part.push('_'),
                _ if letter.is_ascii_uppercase() => {
                    if !part.is_empty() {
                        part.push('_');
                    }
                    part.push(letter.to_ascii_lowercase());
                }
                _ => part.push(letter),
            }
        }
        part
    }
}

impl Kind {
    /// Whether a value of the right JSON type can still be wrong.
    pub(crate) const fn has_form(self) -> bool {
        matches!(
            self,
            Self::Url
                | Self::Reference
                | Self::UriReference
                | Self::OneOf(_)
                | Self::Form(..)
                | Self::Line(..)
        )
    }

    /// Whether a value can be of the wrong JSON type.
    pub(crate) const fn has_type(self) -> bool {
        !matches!(self, Self::Any | Self::Line(..))
    }

    /// The required form of a value of the right type.
    pub(crate) fn form_description(self) -> String {
        match self {
            Self::OneOf(known) => format!("one of {}", known.join(", ")),
            Self::Form(_, words) | Self::Line(_, words) => words.to_owned(),
            other => other.description().to_owned(),
        }
    }

    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Any => "any value",
            Self::Text | Self::OneOf(_) | Self::Form(..) | Self::Line(..) => "a string",
            Self::Bool => "true or false",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Object => "an object",
            Self::List => "an array",
            Self::Texts => "an array of strings",
            Self::Url => "a string with an absolute URL",
            Self::Reference => "a string with a path or an absolute URL",
            Self::UriReference => "a string with a relative or absolute URI",
        }
    }
}

/// The findings of one file: shapes and rules.
pub(crate) struct FindingTable {
    pub(crate) shapes: &'static [&'static Shape],
    pub(crate) rules: &'static [&'static Rule],
}

/// Declares the findings of a file: a constant for each shape and each rule, and `FINDINGS`, the table of all of them.
///
/// A shape has a code, the clause that defines it, and one row for each field. A rule has a severity, a code, the clause,
/// what is wrong, and what to do about it.
macro_rules! findings {
    (
        $(shape $shape:ident($shape_code:literal, $shape_spec:expr) { $($field:expr,)* })*
        $(rule $rule:ident: $severity:ident($rule_code:literal, $rule_spec:expr) $wrong:literal => $fix:literal;)*
    ) => {
        $(pub(crate) const $shape: $crate::rule::Shape =
            $crate::rule::Shape { code: $shape_code, spec: $shape_spec, fields: &[$($field),*] };)*
        $(pub(crate) const $rule: $crate::rule::Rule = $crate::rule::Rule {
            code: $rule_code,
            severity: $crate::model::Severity::$severity,
            spec: $rule_spec,
            wrong: $wrong,
            fix: $fix,
        };)*
        pub(crate) const FINDINGS: $crate::rule::FindingTable =
            $crate::rule::FindingTable { shapes: &[$(&$shape),*], rules: &[$(&$rule),*] };
    };
}
pub(crate) use findings;
