//! Declarations outside the lists of a document: a single call, a single skill, kinds of requests.

use serde_json::Value;

use super::element::{Call, Context};
use super::lists::ListKind;
use super::reader::Reader;
use crate::draft;
use crate::model::CapabilityKind;
use crate::object::Object;
use crate::text;

impl Reader<'_, '_> {
    /// Reads a document that describes one call: `{"endpoint": "/register", "method": "POST"}`.
    pub(super) fn read_only_call(&mut self, root: &Object<'_>, context: &Context) {
        let call = Call::of(root, None);
        for method in call.methods() {
            let kind = ListKind::of_operations();
            let capability = call.capability(kind, None, context, method, self.draft);
            self.push(capability);
        }
    }

    /// Reads the only skill of a service, which is installed: `"skill": {"name": …, "install": …}`.
    pub(super) fn read_only_skill(&mut self, root: &Object<'_>, context: &Context) {
        let Some(skill) = root.object("skill").filter(|skill| skill.has("name") && skill.has("install"))
        else {
            return;
        };
        if let Some(kind) = ListKind::of("skills") {
            let mut capability = Call::of(&skill, None).capability(kind, None, context, None, self.draft);
            let install = skill.text("install").map(|text| text::capped(text, draft::DESCRIPTION_CHARS_MAX));
            capability.published.extend(install.map(|text| ("install".to_owned(), Value::from(text))));
            self.push(capability);
        }
    }

    /// Reads the kinds of requests that a block accepts by other means than calls, such as issues of a repository: `"write_api": {"type":
    /// "issues", "protocols": ["[register]"]}`.
    pub(super) fn read_requests(&mut self, root: &Object<'_>) {
        let Some(block) = root.object_of(&["write_api", "writeApi"]) else { return };
        for key in ["protocols", "operations", "actions", "commands", "intents"] {
            for (index, name) in block.list(key).into_iter().flatten().enumerate() {
                let name = name.as_str().unwrap_or_default().trim_matches(['[', ']', ' ']);
                if self.is_done() || name.is_empty() || self.seen.contains(name) {
                    continue;
                }
                let pointer = format!("{}/{index}", block.at(key));
                let capability = self.draft.capability(CapabilityKind::Operation, name, name, pointer);
                self.push(capability);
            }
        }
    }
}
