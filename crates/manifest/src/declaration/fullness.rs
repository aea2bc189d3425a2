//! Ranks declarations by how much they state.

use serde_json::Value;

use crate::model::{Capability, Confirmation, ExecutionModel, Manifest, SourceKind, Tristate, TypeSource};

/// Maximum number of parameters that count; further ones do not raise the rank.
const PARAMETERS_MAX: usize = 16;
/// Rank of a callable declaration: more than the facts of any declaration add.
const CALLABLE: usize = 2_000;
const NATIVE: usize = 1_000;

/// A number that is larger for a fuller declaration.
///
/// A declaration that can be called comes before one that cannot, one that the publisher wrote before one that was derived or copied, then
/// one with more facts, then one at a well-known path.
pub fn fullness(manifest: &Manifest, capability: &Capability) -> u32 {
    let weight = |holds: bool, weight: usize| if holds { weight } else { 0 };
    let rank = weight(capability.is_invocable(), CALLABLE)
        + weight(manifest.source.kind == SourceKind::Native, NATIVE)
        + 2 * facts(capability)
        + weight(manifest.url.path().starts_with("/.well-known/"), 1);
    u32::try_from(rank).unwrap_or(u32::MAX)
}

/// Facts that the publisher stated; inferred ones do not count.
fn facts(capability: &Capability) -> usize {
    let Capability { auth, safety, idempotency, execution, .. } = capability;
    let properties = capability.parameters.as_ref().and_then(|schema| schema.get("properties"));
    let parameters = properties.and_then(Value::as_object).map_or(0, serde_json::Map::len);
    let stated = [
        capability.title.is_some(),
        capability.description.is_some(),
        capability.parameters.is_some(),
        capability.response.is_some(),
        capability.rate_limit.is_some(),
        capability.price.is_some(),
        capability.version.is_some(),
        !capability.tags.is_empty(),
        !capability.examples.is_empty(),
        !capability.depends_on.is_empty(),
        capability.semantic_types.iter().any(|kind| kind.source == TypeSource::Declared),
        auth.required != Tristate::Unknown,
        !auth.schemes.is_empty(),
        !auth.scopes.is_empty(),
        auth.session_url.is_some(),
        auth.agent_identity.is_some(),
        safety.source == TypeSource::Declared,
        safety.confirmation != Confirmation::None,
        safety.reversible.is_some(),
        safety.message.is_some(),
        idempotency.supported.is_some(),
        idempotency.key_field.is_some(),
        execution.model != ExecutionModel::Unknown,
    ];
    stated.iter().filter(|fact| **fact).count() + parameters.min(PARAMETERS_MAX)
}
