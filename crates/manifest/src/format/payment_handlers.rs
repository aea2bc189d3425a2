//! The payment handlers that a document lists by name, `"payment_handlers": ["stripe"]`.

use crate::object::Object;

/// Maximum number of blocks of one document that are searched.
const BLOCKS_MAX: usize = 50;
const KEYS: &[&str] = &["payment_handlers", "paymentHandlers"];

/// The names at the root or in a commerce profile, which may be a block of any name.
pub(crate) fn named<'v>(root: &Object<'v>) -> impl Iterator<Item = &'v str> {
    let blocks = root.members().map(|(_, block)| block).take(BLOCKS_MAX);
    std::iter::once(root.clone())
        .chain(blocks)
        .flat_map(|block| KEYS.iter().flat_map(|key| block.texts(key)).collect::<Vec<_>>())
}
