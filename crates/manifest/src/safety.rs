//! Infers the effect of a call from its method if no effect is declared. Declared classes are never lowered.

use crate::model::{Capability, CapabilityKind, Protocol, Safety, SafetyClass, TypeSource};
use crate::text;

/// The rule id that marks a class inferred from the HTTP method.
const BY_METHOD: &str = "safety.http-method";

/// The class of an HTTP method (RFC 9110 section 9.2.1: safe methods read).
pub(crate) fn of_method(method: &str) -> SafetyClass {
    match method {
        "GET" | "HEAD" | "OPTIONS" => SafetyClass::Read,
        "POST" | "PUT" | "PATCH" => SafetyClass::Write,
        "DELETE" => SafetyClass::Destructive,
        _ => SafetyClass::Unknown,
    }
}

/// Infers the class of a capability without a declared one.
pub(crate) fn infer(capability: &mut Capability) {
    if capability.safety.source == TypeSource::Declared || capability.safety.class != SafetyClass::Unknown {
        return;
    }
    // The method that sends a message to an agent does not determine what the agent will do.
    let is_message = capability.invocation.envelope.is_some()
        || matches!(capability.kind, CapabilityKind::Agent | CapabilityKind::AgentOperation)
        || matches!(capability.invocation.protocol, Some(Protocol::A2a | Protocol::Woa | Protocol::Mcp));
    let method = capability.invocation.method.as_deref().filter(|_| !is_message);
    let class = method.map_or(SafetyClass::Unknown, of_method);
    if class != SafetyClass::Unknown {
        capability.safety.class = class;
        capability.inferred.insert("safety".to_owned(), BY_METHOD.to_owned());
    }
}

/// The class of a capability. If it has none, the class of the verb at the beginning of its name.
pub(crate) fn effect(capability: &Capability) -> SafetyClass {
    if capability.safety.class != SafetyClass::Unknown {
        return capability.safety.class;
    }
    let words = text::words(&capability.native_id);
    match words.first().map(String::as_str) {
        Some(verb) if READS.contains(&verb) || BROWSES.contains(&verb) => SafetyClass::Read,
        Some(verb) if WRITES.contains(&verb) || DANGEROUS.contains(&verb) => SafetyClass::Write,
        _ => SafetyClass::Unknown,
    }
}

/// Verbs in the names of calls that read, in addition to [`READS`].
const BROWSES: &[&str] = &["browse", "fetch", "query", "discover", "preview"];
/// Verbs in the names of calls that write.
const WRITES: &[&str] = &[
    "create",
    "update",
    "post",
    "send",
    "submit",
    "add",
    "edit",
    "write",
    "publish",
    "upload",
    "book",
    "buy",
    "reserve",
    "register",
    "join",
    "apply",
    "vote",
    "subscribe",
    "challenge",
];

/// A declared class.
pub(crate) fn declared(class: SafetyClass) -> Safety {
    Safety { class, source: TypeSource::Declared, ..Safety::default() }
}

/// Words that imply that a name with a dangerous word is harmless: "list payments", "get cancel policy".
pub(crate) const READS: &[&str] = &[
    "get", "list", "search", "find", "check", "view", "show", "read", "status", "lookup", "quote", "verify",
    "validate", "explain", "describe",
];

/// Words in a name that imply a destructive or costly effect.
const DANGEROUS: &[&str] = &[
    "delete", "remove", "destroy", "purge", "pay", "payment", "transfer", "purchase", "cancel", "refund",
    "wipe",
];

/// The dangerous word in the name of a capability that is classed as harmless or unknown.
pub(crate) fn understated(name: &str, class: SafetyClass) -> Option<&'static str> {
    if !matches!(class, SafetyClass::Read | SafetyClass::Unknown) {
        return None;
    }
    dangerous_word(name)
}

/// The word in a name that implies a destructive or costly effect, unless another word says that the call reads.
pub(crate) fn dangerous_word(name: &str) -> Option<&'static str> {
    let mut reads = false;
    let mut first = DANGEROUS.len();
    text::each_word(name, |word| {
        reads |= READS.contains(&word);
        first = DANGEROUS.iter().position(|danger| *danger == word).unwrap_or(first).min(first);
    });
    DANGEROUS.get(first).copied().filter(|_| !reads)
}
