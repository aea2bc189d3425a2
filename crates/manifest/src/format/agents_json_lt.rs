//! agents.json as `LeonTing` defines it (April 2026): data and actions under version 1.0.
//!
//! It has no schema, so only the presence of its parts is checked.

use crate::draft::Draft;
use crate::format::detect::candidate::{Marker, at_path};
use crate::format::{generic, header};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};

pub(crate) const MARKERS: &[Marker] = &[at_path(|c| {
    let listed = c.objects("data").is_some() || c.objects("actions").is_some();
    let named = c.is_file(&["/agents.json"]) && c.text("version") == Some("1.0");
    (named && listed).then(|| "`version` 1.0 beside `data` or `actions` in agents.json".to_owned())
})];

findings! {
    shape ROOT("agents_json_lt", "agents.json 1.0 (LeonTing)") {
        must("version", Kind::Text, "State the version."),
        may("data", Kind::List, "List data as objects."),
        may("actions", Kind::List, "List actions as objects."),
    }
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("version"), None);
    draft.assess("agents.json 1.0 (LeonTing)", |code| code.starts_with("agents_json_lt."));
    draft.check(root, &ROOT);
    header::describe(root, draft);
    for key in ["data", "actions"] {
        if let Some(value) = root.value(key) {
            generic::read_service_list(key, value, &root.at(key), draft);
        }
    }
}
