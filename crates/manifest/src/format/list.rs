//! An array at the root: every element is a declaration of its own kind, kept as one capability.

use serde_json::Value;

use crate::document::Body;
use crate::draft::Draft;
use crate::format::generic;

/// Reads each element as an agent or service of which little is known.
pub(crate) fn read(body: &Body<'_>, draft: &mut Draft<'_>) {
    if let Body::Json(value @ Value::Array(_)) = body {
        generic::offer("agents", value, "", draft);
    }
}
