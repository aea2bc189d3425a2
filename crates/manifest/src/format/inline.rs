//! A document inside another one: an agent card in a list, an OpenAPI description in a catalog.
//!
//! Decides by its markers what it is, and adds its capabilities to the manifest that holds it. Its name, its provider and
//! its findings about itself as a whole are not those of the manifest and are passed over.

use serde_json::{Map, Value};

use crate::draft::Draft;
use crate::format::{a2a, detect, mcp, openapi};
use crate::model::{Detection, Format, Strength};
use crate::object::Object;

/// Adds the capabilities that an inline document declares; the format it was read as, if it is one that can be.
pub(crate) fn read(inner: &Object<'_>, draft: &mut Draft<'_>) -> Option<Format> {
    let Detection { format, strength, .. } = detect::object(inner.map, draft.base().path());
    if strength == Strength::Weak {
        return None;
    }
    match format {
        Format::A2a => a2a::merge(inner, draft),
        Format::McpCard | Format::McpFreeform => mcp::merge(inner, draft),
        Format::OpenApi => description(inner, draft),
        _ => return None,
    }
    Some(format)
}

fn description(inner: &Object<'_>, draft: &mut Draft<'_>) {
    let (map, at): (&Map<String, Value>, _) = (inner.map, draft.base());
    draft.within(&inner.pointer, |draft| openapi::merge(map, at, draft));
}
