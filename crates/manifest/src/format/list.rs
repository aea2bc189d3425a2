//! An array at the root: every element is one capability.

use serde_json::Value;

use crate::document::Body;
use crate::draft::Draft;
use crate::format::generic;

/// Reads each element as an agent.
pub(crate) fn read(body: &Body<'_>, draft: &mut Draft<'_>) {
    if let Body::Json(value @ Value::Array(_)) = body {
        generic::read_service_list("agents", value, "", draft);
    }
}
