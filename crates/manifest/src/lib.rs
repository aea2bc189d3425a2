//! Reads what web sites declare to agents: detects the dialect of a document, reports where it deviates from its
//! specification, and normalises it into one model.
//!
//! This crate is pure. It takes bytes and what is known of how they were served, and returns values; it reads no clock,
//! opens no socket and never fails: a document that nothing can be made of is a [`Reading`] that says so.

mod format;
pub mod model;
mod name;

pub use model::{
    Auth, AuthScheme, Capability, CapabilityKind, Confirmation, Conformance, Detection, Discovery, Finding,
    Format, Manifest, Safety, SafetyClass, Severity, Strength,
};
pub use name::{CapabilityId, ContentHash, Host, ManifestId, ManifestUrl, NameError, SiteName};
