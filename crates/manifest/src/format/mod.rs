//! One file per dialect, one row per format: adding a dialect is a file, its fixtures and a row in [`read`] and in
//! [`DIALECTS`].

mod generic;
mod list;
pub(crate) mod openapi;
mod pointer;

use serde_json::Value;

use crate::draft::Draft;
use crate::model::Format;
use crate::object::Object;
use crate::rule::Dialect;

/// A document as its syntax gives it.
pub(crate) enum Body<'b> {
    Json(&'b Value),
    Text(&'b str),
}

impl<'b> Body<'b> {
    /// The root object, when the document is one.
    pub(crate) fn root(&self) -> Option<Object<'b>> {
        match self {
            Self::Json(Value::Object(map)) => Some(Object::root(map)),
            _ => None,
        }
    }

    pub(crate) const fn text(&self) -> Option<&'b str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Json(_) => None,
        }
    }
}

/// Reads a body as the format that was detected or forced.
pub(crate) fn read(body: &Body<'_>, draft: &mut Draft<'_>) {
    match (draft.format(), body.root(), body.text()) {
        (Format::Pointer, Some(root), _) => pointer::read(&root, draft),
        (Format::List, ..) => list::read(body, draft),
        (Format::Opaque | Format::Unrelated | Format::Malformed, ..) => {}
        (_, Some(root), _) => generic::read(&root, draft),
        _ => {}
    }
}

/// Every dialect's tables, in the order of the catalogue.
pub(crate) const DIALECTS: &[&Dialect] = &[];
