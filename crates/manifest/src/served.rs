//! Rules about how a document is served, checked only when that is known.

use crate::draft::Draft;

/// Checks the HTTP-level rules of the document's dialect.
pub(crate) fn examine(draft: &mut Draft<'_>) {
    if draft.document.served.is_none() {
        return;
    }
}
