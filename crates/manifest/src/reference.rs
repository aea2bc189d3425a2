//! Resolves references within a document, and converts its schemas to self-contained JSON Schema 2020-12.
//!
//! Decides how a `$ref` into the same document is replaced by its target, in every dialect, and how the older
//! keywords (`nullable`, boolean `exclusiveMinimum`, `example`, `type: file`, array-valued `items`) are written in
//! 2020-12. A schema that contains itself keeps a `$ref` into its own `$defs`. References to other documents are never
//! fetched: they become an unconstrained schema that names the reference, and a problem that the reader reports.
//!
//! Follows OpenAPI 3.1 §4.8.24, 3.0.4 §4.7.24, 2.0 "Schema Object", ATP 0.1 §3.7, JSON Schema 2020-12.

mod keywords;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::budget;
use keywords::{Shape, modernise, shape_of};

/// Maximum nesting of schemas. Published documents stay below 12; a reference counts as one level.
const DEPTH_MAX: usize = 24;
/// Maximum number of schema objects written for one capability. The largest real operation seen has about 900.
const NODES_PER_CAPABILITY_MAX: usize = 2_000;
/// Maximum number of schema objects written for one document: a few megabytes of output.
const NODES_PER_DOCUMENT_MAX: usize = 60_000;
/// Memory for the schemas of one call of [`Resolver::schema`]: twice what the largest real operation takes.
const COPIED_BYTES_PER_SCHEMA_MAX: usize = 1_024 * 1_024;
/// Memory for the schemas of one document, including copies that repeated references make: a minimum for any document, plus
/// sixteen times its length, up to a maximum.
const COPIED_BYTES_MIN: usize = 4 * 1_024 * 1_024;
const COPIED_BYTES_PER_BYTE: usize = 16;
const COPIED_BYTES_MAX: usize = 24 * 1_024 * 1_024;
/// Memory for a value that is copied together with a schema: a description, examples.
const COPIED_BYTES_PER_VALUE_MAX: usize = 64 * 1_024;
/// Bytes of referenced values, counted each time they are followed, for each byte of the document. This bounds the time for shared parts,
/// not the memory.
const FOLLOWED_BYTES_PER_BYTE: usize = 64;
/// Maximum length in bytes of a reference that is followed; the longest seen has 140.
const REFERENCE_BYTES_MAX: usize = 2_048;
/// Maximum number of recorded problems; a report shows a few of each kind.
const PROBLEMS_MAX: usize = 2_000;
/// Memory of an object before its members.
const OBJECT_BYTES: usize = 72;
/// Memory of a member before its name and value, including the free capacity of maps.
const MEMBER_BYTES: usize = 150;
/// Bytes of copied text that are charged as one node.
const TEXT_BYTES_PER_NODE: usize = 512;

/// Why a part of a document could not be read as declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProblemKind {
    /// A `$ref` to another document.
    Remote,
    /// A `$ref` without a target in this document.
    Unresolved,
    /// The expansion of references reached a limit.
    TooLarge,
}

/// One problem and the JSON pointer to its location.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    pub(crate) kind: ProblemKind,
    pub(crate) pointer: String,
    pub(crate) detail: String,
}

/// Follows references within one document, under caps.
pub(crate) struct Resolver<'a> {
    document: &'a Map<String, Value>,
    nodes_left: usize,
    copied_bytes_left: usize,
    followed_bytes_left: usize,
    problems: BTreeSet<Problem>,
}

/// The state of converting one capability's schemas.
struct Expansion {
    nodes_left: usize,
    copied_bytes_left: usize,
    /// References that are being expanded, outermost first.
    stack: Vec<String>,
    /// Recursive references.
    recursive: BTreeSet<String>,
}

impl<'a> Resolver<'a> {
    /// `length` is the length of the document in bytes.
    pub(crate) fn new(document: &'a Map<String, Value>, length: usize) -> Self {
        let copied_bytes = COPIED_BYTES_MIN.saturating_add(length.saturating_mul(COPIED_BYTES_PER_BYTE));
        Self {
            document,
            nodes_left: NODES_PER_DOCUMENT_MAX,
            copied_bytes_left: copied_bytes.min(COPIED_BYTES_MAX),
            followed_bytes_left: COPIED_BYTES_MIN
                .saturating_add(length.saturating_mul(FOLLOWED_BYTES_PER_BYTE)),
            problems: BTreeSet::new(),
        }
    }

    /// Returns and clears the problems.
    pub(crate) fn take_problems(&mut self) -> BTreeSet<Problem> {
        std::mem::take(&mut self.problems)
    }

    /// Replaces a reference object by its target (parameters, bodies, responses, path items). `None` if the reference has no target that
    /// can be read here.
    pub(crate) fn object(&mut self, value: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
        let mut current = value.as_object()?;
        for _ in 0..DEPTH_MAX {
            let Some(reference) = current.get("$ref").and_then(Value::as_str) else { return Some(current) };
            let target = self.target(reference, pointer)?;
            if !self.follow(target) {
                self.problem(ProblemKind::TooLarge, pointer, "references repeat large parts too often");
                return None;
            }
            current = target.as_object()?;
        }
        self.problem(ProblemKind::TooLarge, pointer, "a circular chain of references");
        None
    }

    /// Charges for following a reference.
    fn follow(&mut self, target: &Value) -> bool {
        let bytes = budget::bytes_of(target, self.followed_bytes_left);
        let affordable = bytes <= self.followed_bytes_left;
        self.followed_bytes_left = self.followed_bytes_left.saturating_sub(bytes);
        affordable
    }

    /// A copy of a value that belongs to a schema; `None` if it is too large to be copied for every use.
    pub(crate) fn copy(&mut self, value: &Value) -> Option<Value> {
        let bytes = budget::bytes_of(value, COPIED_BYTES_PER_VALUE_MAX);
        if bytes > COPIED_BYTES_PER_VALUE_MAX {
            return None;
        }
        self.copied_bytes_left = self.copied_bytes_left.checked_sub(bytes)?;
        Some(value.clone())
    }

    /// A self-contained schema, with references replaced.
    pub(crate) fn schema(&mut self, value: &Value, pointer: &str) -> Value {
        self.expanded(pointer, |resolver, expansion| resolver.convert(value, pointer, expansion, 0))
    }

    /// A schema from the members of an object that `includes` accepts.
    pub(crate) fn schema_of_members(
        &mut self,
        object: &Map<String, Value>,
        includes: fn(&str) -> bool,
        pointer: &str,
    ) -> Value {
        self.expanded(pointer, |resolver, expansion| {
            Value::Object(resolver.keywords(object, includes, pointer, expansion, 0))
        })
    }

    fn expanded(&mut self, pointer: &str, convert: impl FnOnce(&mut Self, &mut Expansion) -> Value) -> Value {
        let mut expansion = Expansion {
            nodes_left: NODES_PER_CAPABILITY_MAX,
            copied_bytes_left: COPIED_BYTES_PER_SCHEMA_MAX,
            stack: Vec::new(),
            recursive: BTreeSet::new(),
        };
        let mut schema = convert(self, &mut expansion);
        let definitions = self.definitions(pointer, &mut expansion);
        if let (Value::Object(object), false) = (&mut schema, definitions.is_empty()) {
            object.insert("$defs".to_owned(), Value::Object(definitions));
        }
        schema
    }

    /// Definitions of the recursive references, including those found while converting them.
    fn definitions(&mut self, pointer: &str, expansion: &mut Expansion) -> Map<String, Value> {
        let mut definitions = Map::new();
        while let Some(reference) = expansion.recursive.pop_first() {
            let name = definition_name(&reference);
            if definitions.contains_key(&name) {
                continue;
            }
            let converted = match self.target(&reference, pointer) {
                Some(target) => {
                    expansion.stack = vec![reference.clone()];
                    self.convert(target, pointer, expansion, 0)
                }
                None => json!({}),
            };
            definitions.insert(name, converted);
        }
        definitions
    }

    fn target(&mut self, reference: &str, pointer: &str) -> Option<&'a Value> {
        let Some(fragment) = reference.strip_prefix('#') else {
            self.problem(ProblemKind::Remote, pointer, reference);
            return None;
        };
        let is_short = reference.len() <= REFERENCE_BYTES_MAX;
        let target = if is_short { self.at(&percent_decoded(fragment)) } else { None };
        if target.is_none() {
            self.problem(ProblemKind::Unresolved, pointer, reference);
        }
        target
    }

    /// The value at a JSON pointer (RFC 6901) below the root.
    fn at(&self, pointer: &str) -> Option<&'a Value> {
        let path = pointer.strip_prefix('/')?;
        let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let member = self.document.get(&first.replace("~1", "/").replace("~0", "~"))?;
        rest.map_or(Some(member), |rest| member.pointer(&format!("/{rest}")))
    }

    fn problem(&mut self, kind: ProblemKind, pointer: &str, detail: &str) {
        if self.problems.len() >= PROBLEMS_MAX {
            return;
        }
        let detail = detail.chars().take(200).collect();
        self.problems.insert(Problem { kind, pointer: pointer.to_owned(), detail });
    }

    fn spend(&mut self, nodes: usize, expansion: &mut Expansion) -> bool {
        let affordable = expansion.nodes_left.min(self.nodes_left) >= nodes;
        let spent = if affordable { nodes } else { expansion.nodes_left.min(self.nodes_left) };
        expansion.nodes_left -= spent;
        self.nodes_left -= spent;
        affordable
    }

    /// Charges memory. A charge beyond the budget exhausts it, so that no further part is read.
    fn charge(&mut self, bytes: usize, expansion: &mut Expansion) -> bool {
        let left = expansion.copied_bytes_left.min(self.copied_bytes_left);
        let spent = bytes.min(left);
        expansion.copied_bytes_left -= spent;
        self.copied_bytes_left -= spent;
        bytes <= left
    }

    /// Whether the budget is exhausted. If so, reports it.
    fn is_exhausted(&mut self, pointer: &str, expansion: &Expansion) -> bool {
        let nodes = expansion.nodes_left.min(self.nodes_left);
        let exhausted = nodes == 0 || expansion.copied_bytes_left.min(self.copied_bytes_left) == 0;
        if exhausted {
            self.problem(ProblemKind::TooLarge, pointer, "schemas nested or multiplied beyond the cap");
        }
        exhausted
    }

    /// A copy of a value, if the budget allows it.
    fn copied(&mut self, value: &Value, expansion: &mut Expansion) -> Option<Value> {
        let left = expansion.copied_bytes_left.min(self.copied_bytes_left);
        let affordable = self.charge(budget::bytes_of(value, left), expansion);
        (affordable && self.afford(value, expansion)).then(|| value.clone())
    }

    /// Charges for a copied value: enumerations, examples, long texts.
    fn afford(&mut self, value: &Value, expansion: &mut Expansion) -> bool {
        match value {
            Value::String(text) => self.spend(text.len() / TEXT_BYTES_PER_NODE, expansion),
            Value::Array(items) => {
                self.spend(items.len() / 8, expansion)
                    && items.iter().all(|item| self.afford(item, expansion))
            }
            Value::Object(members) => {
                self.spend(1 + members.len(), expansion)
                    && members.values().all(|member| self.afford(member, expansion))
            }
            _ => true,
        }
    }

    fn convert(&mut self, value: &Value, pointer: &str, expansion: &mut Expansion, depth: usize) -> Value {
        let Some(object) = value.as_object() else {
            return if value.is_boolean() { value.clone() } else { json!({}) };
        };
        if depth > DEPTH_MAX || !self.spend(1, expansion) || !self.charge(OBJECT_BYTES, expansion) {
            self.problem(ProblemKind::TooLarge, pointer, "schemas nested or multiplied beyond the cap");
            return json!({"x-truncated": true});
        }
        match object.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.expand(reference, object, pointer, expansion, depth),
            None => Value::Object(self.keywords(object, |_| true, pointer, expansion, depth)),
        }
    }

    /// The schema that a reference names, with the annotations next to the reference.
    fn expand(
        &mut self,
        reference: &str,
        beside: &Map<String, Value>,
        pointer: &str,
        expansion: &mut Expansion,
        depth: usize,
    ) -> Value {
        let is_short = reference.len() <= REFERENCE_BYTES_MAX;
        let mut schema = if is_short && expansion.stack.iter().any(|open| open == reference) {
            expansion.recursive.insert(reference.to_owned());
            json!({"$ref": format!("#/$defs/{}", definition_name(reference))})
        } else if let Some(target) = self.target(reference, pointer) {
            expansion.stack.push(reference.to_owned());
            let converted = self.convert(target, pointer, expansion, depth + 1);
            expansion.stack.pop();
            converted
        } else {
            json!({"x-ref": reference.chars().take(200).collect::<String>()})
        };
        if let Value::Object(object) = &mut schema {
            let annotations = ["title", "description", "default", "deprecated", "readOnly", "writeOnly"];
            for name in annotations {
                let copy = beside.get(name).and_then(|value| self.copied(value, expansion));
                if let Some(value) = copy {
                    object.insert(name.to_owned(), value);
                }
            }
        }
        schema
    }

    fn keywords(
        &mut self,
        object: &Map<String, Value>,
        includes: fn(&str) -> bool,
        pointer: &str,
        expansion: &mut Expansion,
        depth: usize,
    ) -> Map<String, Value> {
        let mut converted = Map::new();
        for (name, value) in object.iter().filter(|(name, _)| includes(name)) {
            if self.is_exhausted(pointer, expansion) {
                converted.insert("x-truncated".to_owned(), Value::Bool(true));
                break;
            }
            let shape = shape_of(name);
            if matches!(shape, Shape::Dropped) || !self.charge(MEMBER_BYTES + name.len(), expansion) {
                continue;
            }
            let value = match (shape, value) {
                (Shape::Map, Value::Object(members)) => {
                    Value::Object(self.each_member(members, pointer, expansion, depth))
                }
                (Shape::List | Shape::One, Value::Array(members)) => {
                    Value::Array(self.each(members, pointer, expansion, depth))
                }
                (Shape::One, _) => self.convert(value, pointer, expansion, depth + 1),
                _ => match self.copied(value, expansion) {
                    Some(value) => value,
                    None => continue,
                },
            };
            let name = if name == "items" && value.is_array() { "prefixItems" } else { name };
            converted.insert(name.to_owned(), value);
        }
        modernise(&mut converted);
        converted
    }

    /// The schemas of a map, within the budget.
    fn each_member(
        &mut self,
        members: &Map<String, Value>,
        pointer: &str,
        expansion: &mut Expansion,
        depth: usize,
    ) -> Map<String, Value> {
        let mut converted = Map::new();
        for (name, member) in members {
            if self.is_exhausted(pointer, expansion) || !self.charge(MEMBER_BYTES + name.len(), expansion) {
                break;
            }
            converted.insert(name.clone(), self.convert(member, pointer, expansion, depth + 1));
        }
        converted
    }

    /// The schemas of a list, within the budget.
    fn each(
        &mut self,
        members: &[Value],
        pointer: &str,
        expansion: &mut Expansion,
        depth: usize,
    ) -> Vec<Value> {
        let mut converted = Vec::new();
        for member in members {
            if self.is_exhausted(pointer, expansion) || !self.charge(MEMBER_BYTES, expansion) {
                break;
            }
            converted.push(self.convert(member, pointer, expansion, depth + 1));
        }
        converted
    }
}

/// A name for `$defs`: the last part of the reference, or the whole reference if the last part is ambiguous.
fn definition_name(reference: &str) -> String {
    let path = reference.trim_start_matches(['#', '/']);
    let short = ["components/schemas/", "definitions/", "$defs/"]
        .iter()
        .find_map(|prefix| path.strip_prefix(prefix))
        .unwrap_or(path);
    short
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' })
        .collect()
}

/// The percent-decoded fragment of a URI reference.
pub(crate) fn percent_decoded(fragment: &str) -> String {
    if !fragment.contains('%') {
        return fragment.to_owned();
    }
    let escaped = fragment.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    url::form_urlencoded::parse(escaped.as_bytes()).map(|(name, _)| name.into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(document: &Value, schema: &Value) -> (Value, Vec<ProblemKind>) {
        let mut resolver = Resolver::new(document.as_object().unwrap(), 10_000);
        let converted = resolver.schema(schema, "/here");
        (converted, resolver.take_problems().into_iter().map(|problem| problem.kind).collect())
    }

    #[test]
    fn expands_references_and_keeps_their_siblings() {
        let document = json!({"components": {"schemas": {
            "Money": {"type": "object", "properties": {"amount": {"type": "number"}}},
            "a/b c": {"type": "string"},
        }}});
        let schema = json!({"properties": {
            "price": {"$ref": "#/components/schemas/Money", "description": "what it costs"},
            "odd": {"$ref": "#/components/schemas/a~1b%20c"},
        }});
        let (converted, problems) = convert(&document, &schema);
        assert_eq!(
            converted,
            json!({"properties": {
                "price": {"type": "object", "properties": {"amount": {"type": "number"}}, "description": "what it costs"},
                "odd": {"type": "string"},
            }})
        );
        assert!(problems.is_empty());
    }

    #[test]
    fn recursive_schemas_keep_a_definition() {
        let document = json!({"definitions": {
            "Node": {"properties": {"next": {"$ref": "#/definitions/Node"}, "leaf": {"$ref": "#/definitions/Leaf"}}},
            "Leaf": {"type": "string"},
        }});
        let (converted, problems) = convert(&document, &json!({"$ref": "#/definitions/Node"}));
        let node = json!({"properties": {"next": {"$ref": "#/$defs/Node"}, "leaf": {"type": "string"}}});
        let mut expected = node.clone();
        expected["$defs"] = json!({"Node": node});
        assert_eq!(converted, expected);
        assert!(problems.is_empty());
    }

    #[test]
    fn reports_remote_and_missing_targets() {
        let schema = json!({"properties": {
            "far": {"$ref": "https://elsewhere.example/schemas.json#/A"},
            "gone": {"$ref": "#/components/schemas/Gone"},
        }});
        let (converted, problems) = convert(&json!({}), &schema);
        assert_eq!(problems, [ProblemKind::Remote, ProblemKind::Unresolved]);
        assert_eq!(converted["properties"]["far"]["x-ref"], "https://elsewhere.example/schemas.json#/A");
    }

    #[test]
    fn stops_exponential_expansion_at_the_cap() {
        let mut schemas = Map::new();
        for level in 0..40 {
            let next = format!("#/components/schemas/L{}", level + 1);
            schemas.insert(
                format!("L{level}"),
                json!({"properties": {"a": {"$ref": next}, "b": {"$ref": next}, "c": {"$ref": next}}}),
            );
        }
        let document = json!({"components": {"schemas": schemas}});
        let (converted, problems) = convert(&document, &json!({"$ref": "#/components/schemas/L0"}));
        assert!(problems.contains(&ProblemKind::TooLarge));
        assert!(converted.to_string().len() < 200_000);
    }

    #[test]
    fn converts_older_keywords_to_2020_12() {
        let older = json!({"type": "integer", "nullable": true, "enum": [1, 2], "minimum": 0, "exclusiveMinimum": true,
            "example": 1, "xml": {"name": "n"}});
        let (converted, _) = convert(&json!({}), &older);
        assert_eq!(
            converted,
            json!({"type": ["integer", "null"], "enum": [1, 2, null], "exclusiveMinimum": 0, "examples": [1]})
        );
        let composed = json!({"nullable": true, "allOf": [{"type": "object"}]});
        let (converted, _) = convert(&json!({}), &composed);
        assert_eq!(converted, json!({"anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}]}));
        let (converted, _) = convert(&json!({}), &json!({"type": "file"}));
        assert_eq!(converted["contentMediaType"], "application/octet-stream");
    }
}
