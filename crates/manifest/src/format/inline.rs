//! A document inside another one: an agent card in a list, an OpenAPI description in a catalog.
//!
//! Detects its format by the markers and adds its capabilities to the enclosing manifest. Its name, provider and findings
//! about the whole document are ignored.

use serde_json::{Map, Value};

use crate::draft::Draft;
use crate::format::{a2a, detect, mcp, openapi};
use crate::model::{Detection, Format, Strength};
use crate::object::Object;

/// Adds the capabilities of an inline document. Returns its format, or `None` if it is not supported.
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
