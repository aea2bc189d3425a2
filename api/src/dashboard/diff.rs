//! The page with the changes between two versions of a manifest.

use askama::Template;
use manifest::SiteName;
use serde_json::Value;
use store::VersionRecord;

use super::frame::{Frame, Section};
use super::time::Moment;
use super::{labels, links};
use crate::answers::diff::{Changed, Difference, FieldChange, Named};
use crate::answers::version_diff::DiffAnswer;
use crate::page_context::PageContext;
use crate::text;

/// Maximum length of a displayed value, in characters; the JSON response has all of it.
const VALUE_CHARS_MAX: usize = 600;
/// Maximum number of versions offered for comparison.
const VERSIONS_MAX: usize = 20;
/// Maximum number of displayed rows of each list, and changed fields of all capabilities; the JSON response has more.
const ROWS_MAX: usize = 200;
/// Maximum length of a displayed name or reason, in characters.
const WORDS_CHARS_MAX: usize = 300;

struct Field {
    name: String,
    from: Option<String>,
    to: Option<String>,
    breaks: Option<String>,
}

struct Group {
    name: String,
    href: String,
    fields: Vec<Field>,
}

struct Version {
    seen: Moment,
    href: String,
    is_shown: bool,
}

#[derive(Template)]
#[template(path = "diff.html")]
pub(crate) struct DiffPage {
    frame: Frame,
    site: String,
    id: String,
    from: Moment,
    to: Moment,
    is_same: bool,
    /// Whether there is no earlier version to compare with.
    is_single: bool,
    breaking: Vec<String>,
    unsaid: bool,
    /// A sentence if a text of a listed capability addresses the model that reads it.
    warning: Option<&'static str>,
    added: Vec<Group>,
    removed: Vec<Group>,
    changed: Vec<Group>,
    /// A sentence with the number of rows that are not shown.
    left_out: Option<String>,
    versions: Vec<Version>,
}

/// Limits the rows of a page.
struct Rows {
    left_out: u64,
}

impl Rows {
    /// The first entries of a list, at most `max`. Counts the others as left out.
    fn first<'a, T>(&mut self, list: &'a [T], max: usize) -> &'a [T] {
        let (shown, rest) = list.split_at(list.len().min(max));
        self.left_out += rest.len() as u64;
        shown
    }
}

pub(crate) fn page(
    answer: &DiffAnswer,
    site: &SiteName,
    versions: &[VersionRecord],
    context: &PageContext,
) -> DiffPage {
    let now = context.now;
    let difference: &Difference = &answer.difference;
    let version = |record: &VersionRecord| Version {
        seen: Moment::new(record.first_seen_at, now),
        href: links::with_query(&format!("/manifests/{}/diff", answer.id), [("to", record.hash.as_str())]),
        is_shown: record.hash == answer.to.hash,
    };
    let addresses_reader = difference.addresses_reader()
        || [&answer.from, &answer.to].iter().any(|version| version.addresses_reader);
    let mut rows = Rows { left_out: difference.fields_left_out };
    let breaking = rows.first(&difference.breaking_changes, ROWS_MAX);
    let added = rows.first(&difference.added, ROWS_MAX).iter().map(named).collect();
    let removed = rows.first(&difference.removed, ROWS_MAX).iter().map(named).collect();
    let mut fields_max = ROWS_MAX;
    let shown = rows.first(&difference.changed, ROWS_MAX);
    let changed = shown.iter().map(|changed| group(changed, &mut fields_max, &mut rows)).collect();
    DiffPage {
        frame: Frame::new(format!("What changed · {site}"), Section::Sites)
            .at(context, &format!("/manifests/{}/diff", answer.id))
            .described(&format!("What {site} changed in its manifest, and whether that breaks a caller.")),
        is_single: versions.len() < 2,
        site: site.to_string(),
        id: answer.id.to_string(),
        from: Moment::new(answer.from.first_seen_at, now),
        to: Moment::new(answer.to.first_seen_at, now),
        is_same: difference.added.is_empty()
            && difference.removed.is_empty()
            && difference.changed.is_empty(),
        breaking: breaking.iter().map(|why| text::cut(why, WORDS_CHARS_MAX)).collect(),
        unsaid: difference.breaking_without_major_version,
        warning: addresses_reader.then_some("Texts of these capabilities give orders to AI models."),
        added,
        removed,
        changed,
        left_out: (rows.left_out > 0).then(|| labels::counted(rows.left_out, "more change", "more changes")),
        versions: versions.iter().take(VERSIONS_MAX).map(version).collect(),
    }
}

fn named(capability: &Named) -> Group {
    let name = text::cut(&capability.name, WORDS_CHARS_MAX);
    Group { name, href: links::capability(&capability.id), fields: Vec::new() }
}

/// A changed capability with at most `fields_max` fields. Subtracts their number from `fields_max`.
fn group(changed: &Changed, fields_max: &mut usize, rows: &mut Rows) -> Group {
    let value = |field: &FieldChange, value: &Value| {
        if field.values_left_out { Some("too long to be shown".to_owned()) } else { shown(value) }
    };
    let field = |field: &FieldChange| Field {
        name: text::cut(&field.field, WORDS_CHARS_MAX),
        from: value(field, &field.from),
        to: value(field, &field.to),
        breaks: field.breaks.as_deref().map(|why| text::cut(why, WORDS_CHARS_MAX)),
    };
    let fields = rows.first(&changed.fields, *fields_max);
    *fields_max -= fields.len();
    Group { fields: fields.iter().map(field).collect(), ..named(&changed.capability) }
}

/// A value in readable form; `None` if it is missing.
fn shown(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) if values.iter().all(is_scalar) => {
            values.iter().map(scalar).collect::<Vec<_>>().join(", ")
        }
        other => scalar(other),
    };
    Some(text::cut(&text, VALUE_CHARS_MAX))
}

const fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_) | Value::Null)
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_shown_in_words() {
        for (value, words) in [
            (json!(["oauth2", "api_key"]), Some("oauth2, api_key")),
            (json!([]), Some("none")),
            (json!(true), Some("yes")),
            (json!(null), None),
            (json!({"type": "string"}), Some("{\"type\":\"string\"}")),
        ] {
            assert_eq!(shown(&value).as_deref(), words, "{value}");
        }
    }
}
