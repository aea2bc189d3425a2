//! The header in which callers prove that they have paid: `"x402": {"header": "X-Payment-Proof"}`.

use crate::draft::Draft;
use crate::format::payments;
use crate::model::{AppliesTo, Auth, AuthScheme, Capability};
use crate::object::Object;
use crate::text;

/// Members of terms with the header in which callers prove that they have paid.
const HEADER_KEYS: &[&str] = &["header", "payment_header", "paymentHeader", "proof_header", "proofHeader"];

/// Keeps the header in which callers prove that they have paid, with the calls that are paid for.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let stated = ["payment", "payments"].iter().filter_map(|key| root.object(key));
    let mut blocks = payments::blocks_of_schemes(root).map(|(_, block)| block).chain(stated);
    let is_name = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let Some(name) = blocks.find_map(|block| block.text_of(HEADER_KEYS).filter(is_name)) else { return };
    let manifest = &mut draft.manifest;
    let known = manifest.auth.iter_mut().find(|auth| auth.scheme == AuthScheme::Payment);
    let (location, name) = (Some("header".to_owned()), Some(text::capped(name, 100).to_owned()));
    if let Some(known) = known {
        if known.name.is_none() {
            (known.location, known.name) = (location, name);
        }
        return;
    }
    let is_paid = |call: &&Capability| call.auth.schemes.contains(&AuthScheme::Payment);
    let ids: Vec<String> =
        manifest.capabilities.iter().filter(is_paid).map(|call| call.native_id.clone()).collect();
    let applies_to = if ids.is_empty() { AppliesTo::OptionalIds { ids } } else { AppliesTo::Ids { ids } };
    draft.keep(Auth { location, name, applies_to, ..Auth::new(AuthScheme::Payment) });
}
