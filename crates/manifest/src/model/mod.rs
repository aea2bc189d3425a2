//! The one normalised model that every dialect is read into.
//!
//! Absent is `None` or empty; what was inferred rather than declared is marked with the rule that inferred it. Text in
//! here is the publisher's: cleaned of control and direction characters, capped, and never an instruction to us.

mod capability;
mod closed;
mod document;
mod finding;
mod parts;

pub use capability::{
    Capability, CapabilityAuth, Execution, Idempotency, Invocation, Safety, SemanticType,
};
pub use closed::{
    AuthScheme, CapabilityKind, Confirmation, ConformanceLevel, Discovery, ExecutionModel, Format, PolicyChoice,
    Protocol, SafetyClass, Severity, Source, SourceKind, Strength, Tristate, TypeSource, UnknownValue,
};
pub use document::{Detection, Manifest, Served};
pub use finding::{Conformance, Finding};
pub use parts::{
    AgentIdentity, AppliesTo, Audit, Auth, Contact, ErrorRecovery, Features, Follow, Integrity, Interface,
    Link, Payment, Policies, Provider, RateLimit, Sessions, Status, Workflow, WorkflowStep,
};
