//! The normalised model of all dialects.
//!
//! Absent values are `None` or empty; inferred ones are marked with their rule. Texts are those of the publisher, capped and without
//! control and direction characters. They are untrusted data.

mod capability;
mod document;
mod enums;
mod finding;
mod parts;
mod signature;

pub use capability::{Capability, CapabilityAuth, Execution, Idempotency, Invocation, Safety, SemanticType};
pub use document::{Detection, Manifest, Served};
pub use enums::{
    AuthScheme, CapabilityKind, Confirmation, ConformanceLevel, Cost, Discovery, ExecutionModel, Format,
    NamedBy, PolicyChoice, Protocol, Publisher, SafetyClass, Severity, Source, SourceKind, Strength,
    Tristate, TypeSource, UnknownValue,
};
pub use finding::{Conformance, Finding};
pub(crate) use parts::SCHEMES_PER_CAPABILITY_MAX;
pub use parts::{
    AgentIdentity, AppliesTo, Audit, Auth, Contact, ErrorRecovery, Features, Follow, Integrity, Interface,
    Link, OAuthFlow, Payment, Policies, Provider, RateLimit, Sessions, Status, UsageTerms, Workflow,
    WorkflowStep,
};
pub use signature::{SignatureCheck, SignatureStatus};
