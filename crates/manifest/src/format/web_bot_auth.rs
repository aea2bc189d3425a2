//! Directories of HTTP message signature keys, which identify the operator of a bot. They declare nothing that can be called.
//!
//! Follows draft-meunier-http-message-signatures-directory, RFC 7517 (JWK).

use crate::draft::Draft;
use crate::format::detect::candidate::{Marker, strong};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must, should};
use crate::walk::List;

pub(crate) const MARKERS: &[Marker] = &[strong(|c| {
    let key = c.list("keys")?.first()?.as_object()?;
    key.contains_key("kty").then(|| "`keys` holds JSON Web Keys".to_owned())
})];

findings! {
    shape ROOT("web_bot_auth", "HTTP Message Signatures Directory §3") {
        must("keys", Kind::List, "List the keys as JSON Web Keys."),
    }
    shape KEY("web_bot_auth.key", "RFC 7517 §4") {
        must("kty", Kind::Text, "State the key type."),
        should("kid", Kind::Text, "Publish the key's thumbprint as its id."),
        may("use", Kind::OneOf(&["sig", "enc"]), "State sig."),
        may("nbf", Kind::Integer, "Publish seconds since 1970 as a number."),
        may("exp", Kind::Integer, "Publish seconds since 1970 as a number."),
    }
    rule PRIVATE: Must("web_bot_auth.key.private", "RFC 7517 §9.2")
        "a published key contains its private part" => "Withdraw the key at once and publish only public parts.";
}

/// Reads a directory: the first key's id identifies the operator.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.assess("HTTP Message Signatures Directory", |code| code.starts_with("web_bot_auth."));
    draft.check(root, &ROOT);
    draft.each(root, "keys", &List::of(&KEY), |key, draft| {
        if key.has("d") || key.has("k") {
            draft.report_rule(&PRIVATE, key.pointer.clone());
        }
        if let Some(id) = key.text("kid") {
            draft.manifest.provider.identity.get_or_insert_with(|| id.to_owned());
        }
    });
}
