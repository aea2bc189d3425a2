//! Tools that need a credential although the document calls credentials optional: tools that the free plan excludes (`"gated_tools":
//! ["rate_site"]`), and tools whose description names a plan ("Pro tier or above.") or requires a credential.
//!
//! A description that says that its tool needs none is not contradicted.

use std::collections::HashSet;

use crate::draft::{self, DESCRIPTION_CHARS_MAX, Draft};
use crate::format::clauses::clauses;
use crate::format::{lenient, needed_credentials, plan_limits};
use crate::model::{AppliesTo, Auth, AuthScheme, Capability, Tristate};
use crate::object::Object;
use crate::text::{self, capped};

/// Maximum number of words of a clause about a plan.
const WORDS_MAX: usize = 8;
/// Maximum number of tools that are named as excluded.
const TOOLS_MAX: usize = 1_000;

/// Requires the credentials of the document for these tools. Without any, it is unknown whether they need one.
pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    if manifest.capabilities.iter().all(|call| call.auth.required != Tristate::No) {
        return;
    }
    let excluded: HashSet<&str> = plan_limits::excluded_from_free(root).take(TOOLS_MAX).collect();
    let is_credential = |scheme: &AuthScheme| !matches!(scheme, AuthScheme::None | AuthScheme::Payment);
    let mut credentials: Vec<AuthScheme> =
        manifest.auth.iter().map(|auth| auth.scheme).filter(is_credential).collect();
    credentials.sort_unstable();
    credentials.dedup();
    let mut found = false;
    for call in manifest.capabilities.iter_mut().filter(|call| needs(call, &excluded)) {
        found = true;
        call.auth.required = if credentials.is_empty() { Tristate::Unknown } else { Tristate::Yes };
        call.auth.schemes.clone_from(&credentials);
    }
    if found {
        draft::restrict_to_needing(manifest);
        let open: Vec<String> = manifest
            .capabilities
            .iter()
            .filter(|call| call.auth.required == Tristate::No)
            .map(|call| call.native_id.clone())
            .collect();
        let none = |auth: &&mut Auth| auth.scheme == AuthScheme::None && auth.applies_to == AppliesTo::All;
        for auth in manifest.auth.iter_mut().filter(none) {
            auth.applies_to = AppliesTo::Ids { ids: open.clone() };
        }
    }
}

/// Whether a tool that is marked as open needs a credential.
fn needs(call: &Capability, excluded: &HashSet<&str>) -> bool {
    let name = call.invocation.native.as_deref().unwrap_or(&call.native_id);
    let described = call.description.as_deref().map(|text| capped(text, DESCRIPTION_CHARS_MAX));
    call.auth.required == Tristate::No
        && !described.is_some_and(lenient::says_call_is_open)
        && (excluded.contains(name)
            || described.is_some_and(|text| names_plan(text) || needed_credentials::requires(text)))
}

/// Whether a description restricts its tool to a plan that is not free: "Developer tier or above.", "Pro plan required.", "Requires the Pro
/// plan."
fn names_plan(description: &str) -> bool {
    if !text::has_four(description, *b"tier") && !text::has_four(description, *b"plan") {
        return false;
    }
    clauses(description).any(|clause| {
        let words = text::words(capped(clause, draft::NAME_CHARS_MAX));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Some(at) = words.iter().position(|word| matches!(*word, "tier" | "plan")) else { return false };
        let Some(plan) = at.checked_sub(1).and_then(|before| words.get(before)) else { return false };
        let is_named = PLANS.contains(plan);
        let begins = matches!(words.first(), Some(&("requires" | "needs" | "require"))) && at <= 3;
        let ends = at == 1
            && matches!(
                words.get(2..),
                Some(["or" | "and", "above" | "higher" | "up"] | ["required" | "only" | "needed"])
            );
        words.len() <= WORDS_MAX && is_named && (begins || ends) && !words.contains(&"free")
    })
}

/// Usual names of plans that are not free.
const PLANS: &[&str] = &[
    "pro",
    "plus",
    "paid",
    "premium",
    "business",
    "team",
    "enterprise",
    "developer",
    "starter",
    "basic",
    "standard",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_plan_that_a_tool_needs() {
        for text in [
            "Lists rooms. Developer tier or above.",
            "Pro plan required",
            "Rates rooms (Pro tier only)",
            "Requires the Pro plan.",
            "Business tier and up",
        ] {
            assert!(names_plan(text), "{text}");
        }
        for text in [
            "Free tier or above.",
            "Any plan required",
            "Lists rooms by tier or above",
            "Makes a plan.",
            "Plan required trips",
            "Compares the Pro plan with others",
            "Requires a plan of the site",
            "Requires the floor plan",
            "Requires a travel plan",
        ] {
            assert!(!names_plan(text), "{text}");
        }
    }
}
