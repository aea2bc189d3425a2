//! Hash maps and sets of texts of a document. Their hash is faster than that of the standard library; its keys are random too, so that a
//! document cannot choose texts with the same hash.

use foldhash::fast::RandomState;

pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;
pub(crate) type HashSet<T> = std::collections::HashSet<T, RandomState>;
