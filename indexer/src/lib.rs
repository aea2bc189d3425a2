//! Follows the change feed into a tantivy index, and searches it.
