//! The texts of a document that may contain addresses.

use std::cell::OnceCell;

use serde_json::{Map, Value};

use crate::cues::{Cue, Cues};

use super::{NESTING_MAX, is_about_calls, is_address, is_identifier, is_schema_name};

/// The texts of a document that may contain addresses. They are collected once, because several parsers search them.
pub(crate) struct Texts<'v> {
    root: &'v Map<String, Value>,
    collected: OnceCell<Vec<(&'v str, Cues)>>,
}

impl<'v> Texts<'v> {
    pub(crate) const fn of(root: &'v Map<String, Value>) -> Self {
        Self { root, collected: OnceCell::new() }
    }

    /// The texts with a cue.
    pub(crate) fn with(&self, cue: Cue) -> impl Iterator<Item = &'v str> {
        let collect = || {
            let mut texts = Vec::new();
            each_text(self.root, &mut |text| texts.push((text, Cues::of(text))));
            texts
        };
        let texts = self.collected.get_or_init(collect).iter();
        texts.filter(move |(_, cues)| cues.has(cue)).map(|(text, _)| *text)
    }
}

/// Calls `show` with each text of a document.
pub(crate) fn each_text<'v>(root: &'v Map<String, Value>, show: &mut dyn FnMut(&'v str)) {
    each(root, &mut |_, text, _| show(text));
}

/// Receives each text: the names of the members that contain it, the text, and the object below the root that contains it.
type Show<'s, 'v> = dyn FnMut(&[&'v str], &'v str, Option<&'v Map<String, Value>>) + 's;

/// Calls `show` with each text of a document that may contain addresses.
pub(super) fn each<'v>(root: &'v Map<String, Value>, show: &mut Show<'_, 'v>) {
    let mut names = Vec::new();
    each_of_map(root, &mut names, show);
}

fn each_of_map<'v>(map: &'v Map<String, Value>, names: &mut Vec<&'v str>, show: &mut Show<'_, 'v>) {
    // The name and the version of the root describe the service.
    let owner = Some(map).filter(|_| !names.is_empty());
    for (name, value) in map {
        // At the root, `schema` identifies the document type, like `$schema`.
        let is_type = || name == "schema" && owner.is_none();
        let is_address_of_schema = || is_schema_name(name) && value.is_string() && !is_type();
        // A list with this name contains goods or sites, and is not a part of a schema.
        let is_list = || name == "properties" && value.is_array();
        let is_map_of_addresses = || name == "schemas" && holds_addresses(value);
        if (!is_about_calls(name) || is_address_of_schema() || is_list() || is_map_of_addresses())
            && !is_identifier(name, value)
        {
            names.push(name);
            each_of_value(value, names, owner, 0, show);
            names.pop();
        }
    }
}

/// Whether a map has an address for each name.
fn holds_addresses(value: &Value) -> bool {
    let is_text_address = |value: &Value| value.as_str().is_some_and(is_address);
    value.as_object().is_some_and(|map| !map.is_empty() && map.values().all(is_text_address))
}

fn each_of_value<'v>(
    value: &'v Value,
    names: &mut Vec<&'v str>,
    owner: Option<&'v Map<String, Value>>,
    lists: usize,
    show: &mut Show<'_, 'v>,
) {
    match value {
        Value::String(text) => show(names, text, owner),
        Value::Object(map) if names.len() < NESTING_MAX => each_of_map(map, names, show),
        Value::Array(list) if lists < NESTING_MAX => {
            for item in list {
                each_of_value(item, names, owner, lists + 1, show);
            }
        }
        _ => {}
    }
}
