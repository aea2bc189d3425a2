//! The page that shows what changed between two versions of a manifest.

use askama::Template;
use chrono::{DateTime, Utc};
use manifest::SiteName;
use serde_json::Value;
use store::VersionRecord;

use super::frame::{Frame, Section};
use super::links;
use super::time::Moment;
use crate::answers::diff::{Changed, Difference, Named};
use crate::answers::version_diff::DiffAnswer;
use crate::text;

/// Maximum length of a displayed value, in characters; the JSON response has all of it.
const VALUE_CHARS_MAX: usize = 600;
/// Versions offered for comparison.
const VERSIONS_MAX: usize = 20;

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
    breaking: Vec<String>,
    unsaid: bool,
    added: Vec<Group>,
    removed: Vec<Group>,
    changed: Vec<Group>,
    versions: Vec<Version>,
}

pub(crate) fn page(
    answer: &DiffAnswer,
    site: &SiteName,
    versions: &[VersionRecord],
    now: DateTime<Utc>,
) -> DiffPage {
    let difference: &Difference = &answer.difference;
    let version = |record: &VersionRecord| Version {
        seen: Moment::new(record.first_seen_at, now),
        href: links::with_query(&format!("/manifests/{}/diff", answer.id), [("to", record.hash.as_str())]),
        is_shown: record.hash == answer.to.hash,
    };
    DiffPage {
        frame: Frame::new(format!("What changed · {site}"), Section::Sites),
        site: site.to_string(),
        id: answer.id.to_string(),
        from: Moment::new(answer.from.first_seen_at, now),
        to: Moment::new(answer.to.first_seen_at, now),
        is_same: difference.added.is_empty()
            && difference.removed.is_empty()
            && difference.changed.is_empty(),
        breaking: difference.breaking_changes.clone(),
        unsaid: difference.breaking_without_major_version,
        added: difference.added.iter().map(named).collect(),
        removed: difference.removed.iter().map(named).collect(),
        changed: difference.changed.iter().map(changed).collect(),
        versions: versions.iter().take(VERSIONS_MAX).map(version).collect(),
    }
}

fn named(capability: &Named) -> Group {
    Group { name: capability.name.clone(), href: links::capability(&capability.id), fields: Vec::new() }
}

fn changed(changed: &Changed) -> Group {
    let field = |field: &crate::answers::diff::FieldChange| Field {
        name: field.field.clone(),
        from: shown(&field.from),
        to: shown(&field.to),
        breaks: field.breaks.clone(),
    };
    Group { fields: changed.fields.iter().map(field).collect(), ..named(&changed.capability) }
}

/// A value in readable form; `None` if it is missing.
fn shown(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(text::cut(&text, VALUE_CHARS_MAX))
}
