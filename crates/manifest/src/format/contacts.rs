//! Contacts of a service for a specific purpose, such as security reports.

use serde_json::Value;

use crate::check::is_email;
use crate::draft::{self, Draft};
use crate::object::Object;
use crate::text;

/// Maximum number of such contacts of one document that are kept.
const CONTACTS_MAX: usize = 20;

/// Keeps contact addresses for a specific purpose, in addition to the general contact: `security_contact`.
pub(crate) fn keep_others(root: &Object<'_>, draft: &mut Draft<'_>) {
    let others = root.map.iter().filter(|(name, _)| name.len() > "contact".len() && name.contains("ontact"));
    for (name, value) in others.take(CONTACTS_MAX) {
        let Some(text) = value.as_str().filter(|text| text.len() <= draft::NAME_CHARS_MAX) else { continue };
        let address = text.strip_prefix("mailto:").unwrap_or(text);
        let contact = &draft.manifest.contact;
        let known = [&contact.email, &contact.url, &contact.other];
        let is_new = !known.iter().any(|known| known.as_deref() == Some(address));
        if is_email(address) && is_new && text::words(name).iter().any(|word| word == "contact") {
            draft.manifest.features.other.insert(name.clone(), Value::String(address.to_owned()));
        }
    }
}
