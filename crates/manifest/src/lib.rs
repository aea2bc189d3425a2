//! Reads the documents in which web sites declare capabilities to agents: detects the dialect, reports deviations from its specification,
//! and normalises the document into one model.
//!
//! This crate is pure. It takes bytes and how they were served, and returns values; it reads no clock, opens no socket and never fails: an
//! unreadable document becomes a [`Manifest`] with a finding.

mod address;
mod auth;
pub mod budget;
mod bytes;
mod catalogue;
mod check;
mod cues;
pub mod declaration;
mod document;
mod draft;
mod endpoint_host;
pub mod entry;
mod format;
mod hash;
mod identity;
mod injection;
mod json;
mod listing;
mod meta_schema;
pub mod model;
mod name;
mod name_error;
mod object;
mod pattern;
mod position;
mod public_address;
mod publisher;
mod quantity;
mod read;
mod reference;
mod registry_entry;
mod rule;
mod safety;
mod schema;
mod schema_check;
mod semantic;
mod served;
mod signature;
mod site_scope;
pub mod term;
mod text;
mod unread;
mod visit;
mod walk;
pub mod web;

pub use bytes::is_html;
pub use catalogue::{CatalogueEntry, catalogue};
pub use document::{DOCUMENT_BYTES_MAX, Document, LinkedDocument};
pub use injection::addresses_reader;
pub use listing::ListedEntry;
pub use model::{
    Auth, AuthScheme, Capability, CapabilityKind, Confirmation, Conformance, Detection, Discovery, Finding,
    Format, Manifest, NamedBy, Publisher, Safety, SafetyClass, Severity, Strength,
};
pub use name::{
    CapabilityId, ContentHash, Host, HostOfSite, ManifestId, ManifestUrl, SiteName, is_main_host,
};
pub use name_error::NameError;
pub use position::finding_positions;
pub use public_address::{AddressRefusal, site_of_address};
pub use publisher::{Binding, DeclaredIdentity, Identity, IdentityMark, ServedBy};
pub use read::{READER_VERSION, read};
pub use registry_entry::{EntryPlace, ListingRank, RegistryEntry, registry_publisher};
pub use schema::required_properties;
pub use semantic::{known_types, semantic_namespace};
pub use signature::{CardSigner, CardSignerError};
pub use site_scope::SiteScope;
