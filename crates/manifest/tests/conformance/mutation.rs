//! Mutations of an example: each changes one member, and the findings of both documents are compared.

use std::collections::BTreeSet;

use manifest::Manifest;
use manifest::model::{Finding, Severity};
use serde_json::{Value, json};

use crate::register::{Clause, Expected, resolve};
use crate::support::Case;

pub(crate) struct Mutation {
    what: String,
    member: String,
    document: Value,
    expected: Expected,
}

/// The mutations of a clause, at the first member that each of its patterns covers.
pub(crate) fn of(clause: &Clause, example: &Case) -> Vec<Mutation> {
    let original: Value = serde_json::from_slice(&example.bytes).unwrap();
    clause.members().flat_map(|(pattern, _)| of_member(clause, pattern, &original, &example.format)).collect()
}

/// Formats whose specifications use JSON types, so that null has another type than any member. In the JSON of protocol buffers, null means
/// an absent member.
const TYPED: &[&str] = &["awp", "atp", "woa", "agents_json", "arws"];

fn of_member(clause: &Clause, pattern: &str, original: &Value, format: &str) -> Vec<Mutation> {
    let member = first(pattern, original);
    let value = original.pointer(&member).unwrap().clone();
    let changed = |what: &str, replacement: Option<Value>, expected: Expected| Mutation {
        what: what.to_owned(),
        member: member.clone(),
        document: with(original, &member, replacement),
        expected,
    };
    let mut mutations = Vec::new();
    mutations.extend(clause.remove.map(|expected| changed("removed", None, expected)));
    mutations
        .extend(clause.mistype.map(|expected| changed("of another type", Some(mistyped(&value)), expected)));
    let as_null = clause.mistype.filter(|_| TYPED.contains(&format));
    mutations.extend(as_null.map(|expected| changed("null", Some(Value::Null), expected)));
    mutations.extend(clause.empty.map(|expected| changed("empty", Some(emptied(&value)), expected)));
    let contradictions = clause.contradict.iter().filter(|_| clause.member.as_deref() == Some(pattern));
    mutations.extend(contradictions.map(|contradiction| {
        let replacement = serde_json::from_str(&contradiction.value).unwrap();
        changed(&format!("set to {}", contradiction.value), Some(replacement), contradiction.expect)
    }));
    mutations
}

/// The first member of the example that a pattern covers.
fn first(pattern: &str, original: &Value) -> String {
    let found = resolve(pattern, original).into_iter().next().filter(|at| !at.is_empty());
    found.unwrap_or_else(|| panic!("the example has no member {pattern}"))
}

impl Mutation {
    /// Compares the findings of the changed document with those of the example.
    pub(crate) fn check(&self, example: &Case) -> Result<(), String> {
        let key = |finding: &Finding| (finding.code.clone(), finding.pointer.clone());
        let known: BTreeSet<_> = example.read().findings.iter().map(key).collect();
        let changed = example.with_bytes(serde_json::to_vec(&self.document).unwrap()).read();
        let new: Vec<&Finding> = changed
            .findings
            .iter()
            .filter(|finding| !known.contains(&key(finding)) && self.is_place(finding))
            .collect();
        let has = |severity| new.iter().any(|finding| finding.severity == severity);
        let is_right = match self.expected {
            Expected::Must => has(Severity::Must),
            Expected::Should => has(Severity::Should),
            Expected::May => has(Severity::May),
            Expected::Note => has(Severity::Note),
            Expected::Accepted => !has(Severity::Must) && !has(Severity::Should),
        };
        let found: Vec<String> =
            changed.findings.iter().filter(|finding| !known.contains(&key(finding))).map(line).collect();
        if is_right {
            Ok(())
        } else {
            Err(format!("{} {}: {:?} expected, found {found:?}", self.member, self.what, self.expected))
        }
    }

    /// Whether a finding is at the member, below it, or at its parent with the name of the member in its text.
    fn is_place(&self, finding: &Finding) -> bool {
        let (parent, name) = self.member.rsplit_once('/').unwrap();
        finding.pointer == self.member
            || finding.pointer.strip_prefix(&self.member).is_some_and(|rest| rest.starts_with('/'))
            || finding.pointer == parent && (finding.text.contains(name) || finding.code.contains(name))
    }
}

/// Checks that the members determine the values of the normalised manifest that their clause names.
pub(crate) fn is_kept(clause: &Clause, example: &Case) -> Result<(), String> {
    let kept = clause.members().filter_map(|(member, kept)| Some((member, kept?)));
    kept.into_iter().try_for_each(|(pattern, kept)| is_member_kept(pattern, kept, example))
}

fn is_member_kept(pattern: &str, kept: &str, example: &Case) -> Result<(), String> {
    let original: Value = serde_json::from_slice(&example.bytes).unwrap();
    let member = first(pattern, &original);
    let normalised = |bytes: Vec<u8>| serde_json::to_value(example.with_bytes(bytes).read()).unwrap();
    let values = |manifest: &Value| -> Vec<Value> {
        resolve(kept, manifest).iter().map(|at| manifest.pointer(at).unwrap().clone()).collect()
    };
    let before = values(&normalised(example.bytes.clone()));
    if before.iter().all(Value::is_null) {
        return Err(format!("{member}: the manifest has nothing at {kept}"));
    }
    let after = values(&normalised(serde_json::to_vec(&with(&original, &member, None)).unwrap()));
    if before == after { Err(format!("{member} does not decide {kept}")) } else { Ok(()) }
}

/// Findings of level should or must.
pub(crate) fn deviations(manifest: &Manifest) -> impl Iterator<Item = String> {
    let counts = |finding: &&Finding| matches!(finding.severity, Severity::Should | Severity::Must);
    manifest.findings.iter().filter(counts).map(line)
}

fn line(finding: &Finding) -> String {
    format!("{} {:?} at {:?}", finding.code, finding.severity, finding.pointer)
}

fn mistyped(value: &Value) -> Value {
    match value {
        Value::Bool(_) => json!("perhaps"),
        Value::Number(_) => json!({"unit": "none"}),
        _ => json!(7),
    }
}

fn emptied(value: &Value) -> Value {
    match value {
        Value::Array(_) => json!([]),
        Value::Object(_) => json!({}),
        _ => json!(""),
    }
}

/// The document with another value at a pointer, or without it.
fn with(document: &Value, pointer: &str, replacement: Option<Value>) -> Value {
    let mut document = document.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let name = name.replace("~1", "/").replace("~0", "~");
    match (document.pointer_mut(parent).unwrap(), replacement) {
        (Value::Object(object), Some(value)) => {
            object.insert(name, value);
        }
        (Value::Object(object), None) => {
            object.shift_remove(&name);
        }
        (Value::Array(elements), Some(value)) => elements[name.parse::<usize>().unwrap()] = value,
        (Value::Array(elements), None) => {
            elements.remove(name.parse().unwrap());
        }
        _ => panic!("{parent} has no members"),
    }
    document
}
