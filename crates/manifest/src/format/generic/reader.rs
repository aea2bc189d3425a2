//! The state of the parser that uses member names: the draft, and the elements that were read.

use std::collections::HashSet;

use serde_json::Value;

use super::lists;
use crate::draft::{self, Draft};
use crate::format::outbound;
use crate::model::Capability;
use crate::object::Object;

/// Deepest nesting of objects in which lists are searched.
pub(super) const NESTING_MAX: usize = 4;
/// Maximum number of elements of one document that are read. Elements that repeat a known call add no capability, but take as long to read.
const TRIES_MAX: usize = 2 * draft::CAPABILITIES_MAX;

/// Method and address of a call over HTTP.
pub(super) fn call_of(capability: &Capability) -> Option<(String, String)> {
    Some((capability.invocation.method.clone()?, capability.invocation.endpoint()?.to_owned()))
}

/// The capabilities that a parser keeps.
pub(super) enum Wanted {
    Everything,
    /// Calls over HTTP with another method and address than these.
    Calls(HashSet<(String, String)>),
}

/// Whether a list contains only texts.
pub(super) fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_string))
}

/// Types of documents about a person or a business (schema.org).
const OWNERS: &[&str] = &["Person", "Organization", "LocalBusiness", "ProfessionalService", "Corporation"];

pub(super) fn is_about_owner(root: &Object<'_>) -> bool {
    root.text_of(&["type", "@type"]).is_some_and(|kind| OWNERS.contains(&kind))
}

pub(super) struct Reader<'r, 'd> {
    pub(super) draft: &'r mut Draft<'d>,
    /// Native ids of the capabilities that have more than a name.
    pub(super) seen: HashSet<String>,
    pub(super) wanted: Wanted,
    /// Whether the document is about a person or a business, whose skills are not called.
    pub(super) is_about_owner: bool,
    /// Elements that were read, including repeats.
    tries: usize,
}

impl<'r, 'd> Reader<'r, 'd> {
    pub(super) fn new(draft: &'r mut Draft<'d>, wanted: Wanted) -> Self {
        Self { draft, seen: HashSet::new(), wanted, is_about_owner: false, tries: 0 }
    }

    /// Whether further elements are dropped.
    pub(super) fn is_done(&self) -> bool {
        self.draft.is_full() || self.tries > TRIES_MAX
    }

    /// Records all capabilities, if names that follow may repeat them.
    pub(super) fn see_all(&mut self, may_repeat: bool) {
        let known = self.draft.manifest.capabilities.iter().filter(|_| may_repeat);
        self.seen.extend(known.map(|known| known.native_id.clone()));
    }

    /// Keeps what a person or a business knows about a subject as tags of the document.
    pub(super) fn keep_subject(&mut self, subject: Option<&str>, known: &[Value]) {
        let manifest = &mut self.draft.manifest;
        let words = subject.into_iter().chain(known.iter().filter_map(Value::as_str));
        manifest.tags = draft::tags(manifest.tags.iter().map(String::as_str).chain(words));
    }

    pub(super) fn push(&mut self, capability: Capability) {
        self.tries += 1;
        if let Wanted::Calls(known) = &mut self.wanted
            && !call_of(&capability).is_some_and(|call| known.insert(call))
        {
            return;
        }
        self.seen.insert(capability.native_id.clone());
        self.draft.push(capability);
    }
}

/// Whether a member is not searched, because it contains parts of a call, other services, or contacts.
pub(super) fn is_left_out(key: &str) -> bool {
    outbound::is_about_calls(key) || outbound::is_contact(key) || lists::is_of_others(key)
}
