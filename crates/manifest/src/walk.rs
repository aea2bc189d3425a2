//! Helper functions for parsers: check objects, iterate over lists, build capabilities.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::draft::{self, Draft};
use crate::json::{at_index, push_index};
use crate::model::{Capability, CapabilityKind, Follow, Link, Workflow, WorkflowStep};
use crate::object::{Object, type_name};
use crate::rule::{Rule, Shape};
use crate::text::capped;

/// The checks for the objects of a list.
pub(crate) struct List {
    /// The shape of each object; `None` if the parser checks it.
    shape: Option<&'static Shape>,
    /// Reported for elements that are not objects.
    mistyped: Option<&'static Rule>,
    /// Reported for objects that repeat the value of a member.
    unique: Option<(&'static str, &'static Rule)>,
    max: usize,
}

impl List {
    pub(crate) const UNCHECKED: Self = Self { shape: None, mistyped: None, unique: None, max: usize::MAX };

    pub(crate) const fn of(shape: &'static Shape) -> Self {
        Self { shape: Some(shape), ..Self::UNCHECKED }
    }

    pub(crate) const fn mistyped(self, rule: &'static Rule) -> Self {
        Self { mistyped: Some(rule), ..self }
    }

    pub(crate) const fn unique(self, key: &'static str, rule: &'static Rule) -> Self {
        Self { unique: Some((key, rule)), ..self }
    }

    /// Reads at most `max` objects.
    pub(crate) const fn at_most(self, max: usize) -> Self {
        Self { max, ..self }
    }
}

impl Draft<'_> {
    /// A member that is an object, checked against a shape.
    pub(crate) fn checked<'v>(
        &mut self,
        parent: &Object<'v>,
        key: &str,
        shape: &Shape,
    ) -> Option<Object<'v>> {
        let object = parent.object(key)?;
        self.check(&object, shape);
        Some(object)
    }

    /// The value as an object; reports the rule if it has another type.
    pub(crate) fn object<'v>(
        &mut self,
        value: &'v Value,
        pointer: String,
        rule: &Rule,
    ) -> Option<Object<'v>> {
        if let Value::Object(map) = value {
            return Some(Object::new(map, pointer));
        }
        self.report(rule, pointer, format!("{}: it is {}", rule.wrong, type_name(value)));
        None
    }

    /// Checks and reads the objects of a list until the draft is full.
    pub(crate) fn each<'v>(
        &mut self,
        parent: &Object<'v>,
        key: &str,
        list: &List,
        mut read: impl FnMut(&Object<'v>, &mut Self),
    ) {
        let (mut seen, mut left, was_full) = (HashSet::new(), list.max, self.is_full());
        let list_pointer = parent.at(key);
        for (index, value) in parent.list(key).unwrap_or_default().iter().enumerate() {
            let pointer = at_index(&list_pointer, index);
            let object = match (value, list.mistyped) {
                (Value::Object(map), _) => Object::new(map, pointer),
                (_, Some(rule)) => {
                    self.object(value, pointer, rule);
                    continue;
                }
                _ => continue,
            };
            if let Some(shape) = list.shape {
                self.check(&object, shape);
            }
            if let Some((key, rule)) = list.unique
                && object.text(key).is_some_and(|id| !seen.insert(id))
            {
                self.report_rule(rule, object.at(key));
            }
            read(&object, self);
            left -= 1;
            if left == 0 || (self.is_full() && !was_full) {
                return;
            }
        }
    }

    /// Keeps the address of a string field as a link.
    pub(crate) fn link(&mut self, object: &Object<'_>, key: &str, rel: &str, follow: Option<Follow>) {
        let url = self.url(object, key);
        self.keep_all(url.map(|url| Link::new(rel, url, follow)));
    }

    /// Begins a capability from an object: id and name from the first key present, and `description`.
    pub(crate) fn begin(
        &mut self,
        kind: CapabilityKind,
        object: &Object<'_>,
        id_keys: &[&str],
        name_keys: &[&str],
    ) -> Capability {
        let (id, name) = (object.text_of(id_keys), object.text_of(name_keys));
        let pointer = object.pointer.clone();
        let mut capability = self.capability(kind, id.unwrap_or_default(), name.unwrap_or_default(), pointer);
        capability.description = draft::description(object.text("description"));
        capability
    }

    /// Positions of the capabilities read so far, by native id.
    pub(crate) fn capability_positions(&self) -> HashMap<String, usize> {
        let ids = self.manifest.capabilities.iter().map(|capability| capability.native_id.clone());
        ids.zip(0..).collect()
    }

    /// Adds a workflow and marks the capabilities that are its steps. Reports `unknown_step` for other steps.
    ///
    /// `positions` are the [`Self::capability_positions`]; they are computed once for all workflows of a document.
    pub(crate) fn add_workflow(
        &mut self,
        object: &Object<'_>,
        positions: &HashMap<String, usize>,
        unknown_step: &Rule,
        conditions: Option<Value>,
    ) {
        let id = object.text_of(&["id", "name"]).unwrap_or_default();
        let id = capped(id, draft::NAME_CHARS_MAX).to_owned();
        let steps = object.texts("steps");
        for (index, step) in object.list("steps").unwrap_or_default().iter().enumerate() {
            if let Some(step) = step.as_str().filter(|step| !positions.contains_key(step.trim())) {
                let mut pointer = object.at("steps");
                push_index(&mut pointer, index);
                self.report(unknown_step, pointer, format!("\"{step}\" is not a capability"));
            }
        }
        let distinct: HashSet<&str> = steps.iter().copied().collect();
        for position in distinct.into_iter().filter_map(|step| positions.get(step)) {
            if let Some(capability) = self.manifest.capabilities.get_mut(*position) {
                capability.used_in_workflows.push(id.clone());
            }
        }
        self.keep(Workflow {
            id,
            name: draft::name(object.text("name")),
            description: draft::description(object.text("description")),
            steps: steps
                .into_iter()
                .map(|id| WorkflowStep { id: id.to_owned(), ..WorkflowStep::default() })
                .collect(),
            conditions,
        });
    }
}
