//! The changes between two versions of a manifest, by capability, and whether they break a caller.
//!
//! Pure. A change breaks a correct caller if an operation was removed or moved, if a new argument is required, if an argument is no longer
//! accepted, or if the call needs more caution. By semantic versioning such a change raises the major version; a document that breaks
//! callers without doing so is flagged.
//!
//! Publishers decide how long lists are. Lists are compared as sets, in linear time. Only a limited number of changes is listed, but
//! breaking changes are searched in all of them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::Hash;

use manifest::model::Tristate;
use manifest::{Capability, CapabilityId, Confirmation, Manifest, SafetyClass, required_properties};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::text::quoted;
use crate::value_size::bytes_left_after;

/// Maximum number of listed changes of fields.
const CHANGES_MAX: usize = 2_000;
/// Maximum total size of the names and values of listed changes. A value counts as 8 bytes plus its texts.
const TEXTS_BYTES_MAX: usize = 512 * 1_024;
/// Maximum number of times that the name of a field is repeated in `breaking_changes`.
const NAME_FACTOR: usize = 3;

/// The difference between two versions, as returned to clients.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Difference {
    pub(crate) added: Vec<Named>,
    pub(crate) removed: Vec<Named>,
    /// Changed capabilities, with at most 2,000 changed fields, whose names and values have at most 512 KiB.
    pub(crate) changed: Vec<Changed>,
    /// Changed fields that are not listed.
    pub(crate) fields_left_out: u64,
    /// Whether a caller of the earlier version may fail with the later one.
    pub(crate) breaking: bool,
    /// One sentence for each listed change that breaks a caller.
    pub(crate) breaking_changes: Vec<String>,
    /// Whether the first number of the document's own version was raised; null where either document states no version.
    pub(crate) major_version_raised: Option<bool>,
    /// Whether the change is breaking and the major version of the document was not raised.
    pub(crate) breaking_without_major_version: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Named {
    #[schema(value_type = String)]
    pub(crate) id: CapabilityId,
    pub(crate) native_id: String,
    pub(crate) name: String,
    /// Present if a text of it, in either version, addresses the model that reads it: it is data, not instructions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) addresses_reader: bool,
}

impl Named {
    fn of(capability: &Capability) -> Self {
        Self {
            id: capability.id.clone(),
            native_id: capability.native_id.clone(),
            name: capability.title.clone().unwrap_or_else(|| capability.name.clone()),
            addresses_reader: capability.addresses_reader,
        }
    }

    /// A capability of which two versions are compared.
    fn of_both(before: &Capability, after: &Capability) -> Self {
        let named = Self::of(after);
        Self { addresses_reader: named.addresses_reader || before.addresses_reader, ..named }
    }
}

/// A capability that differs between the versions.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Changed {
    #[serde(flatten)]
    pub(crate) capability: Named,
    pub(crate) fields: Vec<FieldChange>,
}

#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct FieldChange {
    /// `method`, `parameters.date`, `safety`…
    pub(crate) field: String,
    pub(crate) from: Value,
    pub(crate) to: Value,
    /// Whether the values are too large to be listed. They are null then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) values_left_out: bool,
    /// Why this breaks a caller; null where it does not.
    pub(crate) breaks: Option<String>,
}

impl Difference {
    /// Whether a text of one of the listed capabilities addresses the model that reads it.
    pub(crate) fn addresses_reader(&self) -> bool {
        let changed = self.changed.iter().map(|changed| &changed.capability);
        self.added.iter().chain(&self.removed).chain(changed).any(|named| named.addresses_reader)
    }
}

/// Compares two versions.
pub(crate) fn difference(from: &Manifest, to: &Manifest) -> Difference {
    let before: BTreeMap<&CapabilityId, &Capability> = by_id(from);
    let after: BTreeMap<&CapabilityId, &Capability> = by_id(to);
    let only = |of: &Manifest, other: &BTreeMap<&CapabilityId, &Capability>| -> Vec<Named> {
        let missing = of.capabilities.iter().filter(|capability| !other.contains_key(&capability.id));
        missing.map(Named::of).collect()
    };
    let (added, removed) = (only(to, &before), only(from, &after));
    let mut budget = ChangeBudget::new();
    let changed: Vec<Changed> = to
        .capabilities
        .iter()
        .filter_map(|capability| {
            let left_out = budget.left_out;
            let before = before.get(&capability.id)?;
            let fields = fields(before, capability, &mut budget);
            let has_changed = !fields.is_empty() || budget.left_out > left_out;
            has_changed.then(|| Changed { capability: Named::of_both(before, capability), fields })
        })
        .collect();
    let gone = removed.iter().map(|named| format!("{} is gone", named.native_id));
    let altered = changed.iter().flat_map(|changed| {
        let broken = changed.fields.iter().filter_map(|field| field.breaks.as_ref());
        broken.map(|why| format!("{}: {why}", changed.capability.native_id))
    });
    let breaking_changes: Vec<String> = gone.chain(altered).collect();
    let breaking = !breaking_changes.is_empty() || budget.breaks_unlisted;
    let major_version_raised = major_raised(from, to);
    Difference {
        added,
        removed,
        changed,
        fields_left_out: budget.left_out,
        breaking,
        breaking_changes,
        major_version_raised,
        breaking_without_major_version: breaking && major_version_raised != Some(true),
    }
}

/// Remaining number of changes that one difference may list.
struct ChangeBudget {
    changes: usize,
    bytes: usize,
    left_out: u64,
    /// Whether any change beyond the limit breaks a caller.
    breaks_unlisted: bool,
}

impl ChangeBudget {
    const fn new() -> Self {
        Self { changes: CHANGES_MAX, bytes: TEXTS_BYTES_MAX, left_out: 0, breaks_unlisted: false }
    }

    /// Lists a change; counts it if the list is full.
    fn add(
        &mut self,
        changes: &mut Vec<FieldChange>,
        field: &str,
        [from, to]: [&Value; 2],
        breaks: Option<String>,
    ) {
        let bytes = self.bytes.checked_sub(NAME_FACTOR * field.len());
        let (Some(changes_left), Some(bytes)) = (self.changes.checked_sub(1), bytes) else {
            self.left_out += 1;
            self.breaks_unlisted |= breaks.is_some();
            return;
        };
        let after_values = bytes_left_after(from, bytes).and_then(|left| bytes_left_after(to, left));
        (self.changes, self.bytes) = (changes_left, after_values.unwrap_or(bytes));
        let [from, to] = [from, to].map(|value| after_values.map_or(Value::Null, |_| value.clone()));
        let values_left_out = after_values.is_none();
        changes.push(FieldChange { field: field.to_owned(), from, to, values_left_out, breaks });
    }
}

fn by_id(manifest: &Manifest) -> BTreeMap<&CapabilityId, &Capability> {
    manifest.capabilities.iter().map(|capability| (&capability.id, capability)).collect()
}

fn major_raised(from: &Manifest, to: &Manifest) -> Option<bool> {
    let major = |manifest: &Manifest| -> Option<u64> {
        let version = manifest.document_version.as_deref()?.trim_start_matches(['v', 'V']);
        version.split('.').next()?.parse().ok()
    };
    Some(major(to)? > major(from)?)
}

fn fields(from: &Capability, to: &Capability, budget: &mut ChangeBudget) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    let mut compare = |field: &str, from: Value, to: Value, breaks: Option<&str>| {
        if from != to {
            budget.add(&mut changes, field, [&from, &to], breaks.map(ToOwned::to_owned));
        }
    };
    compare("name", json!(from.name), json!(to.name), None);
    compare("title", json!(from.title), json!(to.title), None);
    compare("description", json!(from.description), json!(to.description), None);
    compare("semantic_types", json!(from.semantic_types), json!(to.semantic_types), None);
    let (was, is) = (&from.invocation, &to.invocation);
    compare("protocol", json!(was.protocol), json!(is.protocol), Some("it is called over another protocol"));
    compare("method", json!(was.method), json!(is.method), Some("it is called with another method"));
    compare("endpoint", json!(was.endpoint()), json!(is.endpoint()), Some("it is called at another address"));
    compare("native", json!(was.native), json!(is.native), Some("it has another name at its endpoint"));
    compare("safety", json!(from.safety.class), json!(to.safety.class), more_dangerous(from, to));
    let confirmation = (to.safety.confirmation > from.safety.confirmation
        && to.safety.confirmation == Confirmation::Required)
        .then_some("a person has to confirm now");
    compare("confirmation", json!(from.safety.confirmation), json!(to.safety.confirmation), confirmation);
    let locked = (to.auth.required == Tristate::Yes && from.auth.required != Tristate::Yes)
        .then_some("it needs authentication now");
    compare("auth_required", json!(from.auth.required), json!(to.auth.required), locked);
    let left: HashSet<_> = to.auth.schemes.iter().collect();
    let schemes = (!from.auth.schemes.is_empty()
        && !left.is_empty()
        && !from.auth.schemes.iter().any(|scheme| left.contains(scheme)))
    .then_some("none of the ways to authenticate is left");
    compare("auth", json!(from.auth.schemes), json!(to.auth.schemes), schemes);
    let scopes = has_more(&from.auth.scopes, &to.auth.scopes).then_some("it needs another scope");
    compare("scopes", json!(from.auth.scopes), json!(to.auth.scopes), scopes);
    compare("deprecated", json!(from.deprecated), json!(to.deprecated), None);
    parameters(from.parameters.as_ref(), to.parameters.as_ref(), budget, &mut changes);
    response(from.response.as_ref(), to.response.as_ref(), budget, &mut changes);
    changes
}

/// Whether `list` has a value that `known` does not have.
fn has_more<T: Eq + Hash>(known: &[T], list: &[T]) -> bool {
    let known: HashSet<&T> = known.iter().collect();
    list.iter().any(|value| !known.contains(value))
}

/// The vocabulary is ordered by danger, except for the unknown class.
fn more_dangerous(from: &Capability, to: &Capability) -> Option<&'static str> {
    let (was, is) = (from.safety.class, to.safety.class);
    let is_known = was != SafetyClass::Unknown && is != SafetyClass::Unknown;
    (is_known && is > was).then_some("its declared effect is more severe")
}

fn properties(schema: Option<&Value>) -> BTreeMap<&str, &Value> {
    let members = schema.and_then(|schema| schema.get("properties")?.as_object());
    members.map(|map| map.iter().map(|(name, value)| (name.as_str(), value)).collect()).unwrap_or_default()
}

fn required(schema: Option<&Value>) -> BTreeSet<&str> {
    schema.into_iter().flat_map(required_properties).collect()
}

fn parameters(
    from: Option<&Value>,
    to: Option<&Value>,
    budget: &mut ChangeBudget,
    changes: &mut Vec<FieldChange>,
) {
    let (was, is) = (properties(from), properties(to));
    let (was_required, is_required) = (required(from), required(to));
    let names: BTreeSet<&str> = was.keys().chain(is.keys()).copied().collect();
    for name in names {
        let field = format!("parameters.{name}");
        let breaks = match (was.get(name), is.get(name)) {
            (None, Some(_)) if is_required.contains(name) => {
                Some(format!("{} has to be given now", quoted(name)))
            }
            (Some(_), None) => Some(format!("{} is not taken any more", quoted(name))),
            (Some(before), Some(after)) => narrowed(name, before, after),
            _ => None,
        };
        if was.get(name) != is.get(name) {
            budget.add(changes, &field, [was.get(name), is.get(name)].map(or_null), breaks);
        }
        let demanded = was.contains_key(name) && is.contains_key(name);
        let (before, after) = (was_required.contains(name), is_required.contains(name));
        if demanded && before != after {
            let breaks = after.then(|| format!("{} has to be given now", quoted(name)));
            let values = [&Value::Bool(before), &Value::Bool(after)];
            budget.add(changes, &format!("parameters.{name}.required"), values, breaks);
        }
    }
}

fn or_null<'a>(value: Option<&&'a Value>) -> &'a Value {
    value.copied().unwrap_or(&Value::Null)
}

/// Why a value that was valid before may be invalid now.
fn narrowed(name: &str, before: &Value, after: &Value) -> Option<String> {
    let kinds = |schema: &Value| -> BTreeSet<String> {
        match schema.get("type") {
            Some(Value::String(one)) => BTreeSet::from([one.clone()]),
            Some(Value::Array(several)) => {
                several.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
            }
            _ => BTreeSet::new(),
        }
    };
    let (was, is) = (kinds(before), kinds(after));
    let widened = |kind: &String| is.contains(kind) || (kind == "integer" && is.contains("number"));
    if !is.is_empty() && (was.is_empty() || !was.iter().all(widened)) {
        return Some(format!("{} takes another type", quoted(name)));
    }
    if before.get("x-in") != after.get("x-in") {
        return Some(format!("{} is sent in another part of the request", quoted(name)));
    }
    let is_fewer = match (values(before), values(after)) {
        (None, Some(_)) => true,
        (Some(before), Some(after)) => has_more(after, before),
        _ => false,
    };
    if is_fewer {
        return Some(format!("{} takes fewer values", quoted(name)));
    }
    let is_tighter = |key: &str, tightens: fn(f64, f64) -> bool| {
        let bound = |schema: &Value| schema.get(key).and_then(Value::as_f64);
        match (bound(before), bound(after)) {
            (None, Some(_)) => true,
            (Some(before), Some(after)) => tightens(before, after),
            _ => false,
        }
    };
    let lower = ["minimum", "exclusiveMinimum", "minLength", "minItems"];
    let upper = ["maximum", "exclusiveMaximum", "maxLength", "maxItems"];
    let tighter = lower.iter().any(|key| is_tighter(key, |was, is| is > was))
        || upper.iter().any(|key| is_tighter(key, |was, is| is < was));
    tighter.then(|| format!("the bounds of {} are tighter", quoted(name)))
}

fn values(schema: &Value) -> Option<&[Value]> {
    schema.get("enum").and_then(Value::as_array).map(Vec::as_slice)
}

fn response(
    from: Option<&Value>,
    to: Option<&Value>,
    budget: &mut ChangeBudget,
    changes: &mut Vec<FieldChange>,
) {
    let (was, is) = (properties(from), properties(to));
    for name in was.keys().chain(is.keys()).copied().collect::<BTreeSet<&str>>() {
        let (before, after) = (was.get(name), is.get(name));
        if before == after {
            continue;
        }
        let kind = |of: Option<&&Value>| of.and_then(|schema| schema.get("type").cloned());
        let breaks = match after {
            None => Some(format!("{} is not answered any more", quoted(name))),
            Some(_) if before.is_some() && kind(before) != kind(after) => {
                Some(format!("{} is answered as another type", quoted(name)))
            }
            Some(_) => None,
        };
        budget.add(changes, &format!("response.{name}"), [before, after].map(or_null), breaks);
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
