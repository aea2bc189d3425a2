//! Assigns the credentials of a document to the calls that need them.

use std::collections::BTreeMap;

use crate::model::{AppliesTo, Auth, AuthScheme, Capability, Manifest, Tristate};

/// Maximum number of credentials of one document that are assigned to calls.
const CREDENTIALS_MAX: usize = 16;
/// Maximum number of calls whose ids are listed for each of the credentials.
const CALLS_MAX: usize = 1_000;

/// Restricts credentials that were stated for the whole document to the calls that need them. A call that states nothing may need any of
/// them.
pub(super) fn restrict(manifest: &mut Manifest) {
    let (auth, calls) = (&manifest.auth, &manifest.capabilities);
    let is_stated = |call: &Capability| match call.auth.required {
        Tristate::No => true,
        Tristate::Yes => !call.auth.schemes.is_empty(),
        Tristate::Unknown => false,
    };
    let mut schemes: Vec<AuthScheme> = auth.iter().map(|auth| auth.scheme).collect();
    schemes.sort_unstable();
    schemes.dedup();
    let is_needed = |auth: &Auth| matches!(auth.applies_to, AppliesTo::All | AppliesTo::Ids { .. });
    let is_sure = schemes.len() == auth.len() && auth.iter().all(is_needed);
    if is_sure && calls.iter().all(is_stated) {
        restrict_to_needing(manifest);
    }
}

/// Restricts credentials that were stated for the whole document to the calls that need their scheme, unless those are all
/// calls or none.
pub(crate) fn restrict_to_needing(manifest: &mut Manifest) {
    let (auth, calls) = (&mut manifest.auth, &manifest.capabilities);
    if auth.len() > CREDENTIALS_MAX || calls.len() > CALLS_MAX {
        return;
    }
    for auth in auth.iter_mut().filter(|auth| auth.applies_to == AppliesTo::All) {
        let needs = |call: &&Capability| match auth.scheme {
            AuthScheme::None => call.auth.required == Tristate::No,
            scheme => call.auth.schemes.contains(&scheme),
        };
        let ids: Vec<String> = calls.iter().filter(needs).map(|call| call.native_id.clone()).collect();
        if !ids.is_empty() && ids.len() < calls.len() {
            auth.applies_to = AppliesTo::Ids { ids };
        }
    }
}

/// Adds an entry for each scheme that only calls name, so that every scheme of a call has one. It is optional if no call
/// needs its scheme.
pub(super) fn complete(manifest: &mut Manifest) {
    let (auth, calls) = (&mut manifest.auth, &manifest.capabilities);
    let mut missing: BTreeMap<AuthScheme, (Vec<String>, bool)> = BTreeMap::new();
    for call in calls {
        for scheme in &call.auth.schemes {
            // Sessions and unnamed schemes have no entry.
            let has_entry = matches!(scheme, AuthScheme::Session | AuthScheme::Other | AuthScheme::Unknown)
                || auth.iter().any(|known| known.scheme == *scheme);
            if !has_entry {
                let (ids, is_needed) = missing.entry(*scheme).or_default();
                ids.push(call.native_id.clone());
                *is_needed |= call.auth.required != Tristate::No
                    || matches!(scheme, AuthScheme::None | AuthScheme::Payment);
            }
        }
    }
    for (scheme, (ids, is_needed)) in missing {
        let applies_to = if ids.len() > CALLS_MAX || (is_needed && ids.len() == calls.len()) {
            AppliesTo::All
        } else if is_needed {
            AppliesTo::Ids { ids }
        } else {
            AppliesTo::OptionalIds { ids }
        };
        auth.push(Auth { applies_to, ..Auth::new(scheme) });
    }
}
