//! The politeness audit, and what the end-to-end tests share.
