//! Directories of HTTP message signature keys: who a bot operator is. There is nothing to call in them.
//!
//! Follows draft-meunier-http-message-signatures-directory, RFC 7517 (JWK).

use crate::draft::Draft;
use crate::model::Severity;
use crate::object::Object;
use crate::rule::{Dialect, Kind, Rule, Shape, may, must, should};

pub(crate) const DIALECT: Dialect =
    Dialect { title: "Web Bot Auth directory", shapes: &[&ROOT, &KEY], rules: &[&PRIVATE] };

const ROOT: Shape = Shape {
    code: "web_bot_auth",
    spec: "HTTP Message Signatures Directory §3",
    fields: &[must("keys", Kind::List, "List the keys as JSON Web Keys.")],
};
const KEY: Shape = Shape {
    code: "web_bot_auth.key",
    spec: "RFC 7517 §4",
    fields: &[
        must("kty", Kind::Text, "State the key type."),
        should("kid", Kind::Text, "Publish the key's thumbprint as its id."),
        may("use", Kind::OneOf(&["sig", "enc"]), "State sig."),
        may("nbf", Kind::Integer, "Publish seconds since 1970 as a number."),
        may("exp", Kind::Integer, "Publish seconds since 1970 as a number."),
    ],
};
const PRIVATE: Rule = Rule {
    code: "web_bot_auth.key.private",
    severity: Severity::Must,
    spec: "RFC 7517 §9.2",
    wrong: "a key carries its private part in public",
    fix: "Withdraw the key at once and publish only public parts.",
};

/// Reads a directory: the first key's id identifies the operator.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.judge("HTTP Message Signatures Directory", |code| code.starts_with("web_bot_auth."));
    draft.check(root, &ROOT);
    for key in root.objects("keys") {
        draft.check(&key, &KEY);
        if key.has("d") || key.has("k") {
            draft.report_plainly(&PRIVATE, key.pointer.clone());
        }
        if let Some(id) = key.text("kid") {
            draft.manifest.provider.identity.get_or_insert_with(|| id.to_owned());
        }
    }
}
