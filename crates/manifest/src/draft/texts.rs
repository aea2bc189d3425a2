//! Removes markup from the texts of a manifest and truncates them to their caps.

use super::{DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX};
use crate::model::Capability;
use crate::text;

/// Maximum number of characters of the title of a link, with its note.
const TITLE_CHARS_MAX: usize = 400;
/// Maximum number of characters of the joined titles of the items that have one address: four titles.
const JOINED_CHARS_MAX: usize = 1_600;
/// Maximum length of a name that is made from a description, in characters.
const MADE_NAME_CHARS_MAX: usize = 60;
/// Maximum length in bytes of a part of a text that can be a name, a label or a value. A longer one is prose.
pub(crate) const NAME_BYTES_MAX: usize = 200;
/// Maximum length in bytes of a line or a paragraph that is searched as a whole.
pub(crate) const LINE_BYTES_MAX: usize = 2_000;

/// A description without markup, truncated to its cap.
pub(crate) fn description(text: Option<&str>) -> Option<String> {
    text::plain(text?, DESCRIPTION_CHARS_MAX)
}

/// A name without markup, truncated to its cap.
pub(crate) fn name(text: Option<&str>) -> Option<String> {
    text::plain(text?, NAME_CHARS_MAX)
}

/// The title of a link without markup. A longer one is cut after a word, and ends with an ellipsis.
pub(crate) fn title(text: Option<&str>) -> Option<String> {
    title_of(text?, TITLE_CHARS_MAX)
}

/// The joined titles of several items with the same address.
pub(crate) fn joined_title(text: &str) -> Option<String> {
    title_of(text, JOINED_CHARS_MAX)
}

fn title_of(text: &str, chars_max: usize) -> Option<String> {
    let mut title = text::plain(text, chars_max + 1)?;
    if text::capped(&title, chars_max).len() < title.len() {
        let cut = text::capped(&title, chars_max - 1);
        let end = cut.rfind(' ').unwrap_or(cut.len());
        title.truncate(end);
        title.push('\u{2026}');
    }
    Some(title)
}

/// Tags without markup and duplicates.
pub(crate) fn tags<'t>(published: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for tag in published.into_iter().take(TAGS_MAX) {
        match text::plain(tag, TAG_CHARS_MAX) {
            Some(tag) if !tags.contains(&tag) => tags.push(tag),
            _ => {}
        }
    }
    tags
}

/// A name for a capability that has only a number: the first sentence of its description, or else `GET /path`. `None` if the capability has
/// a name, or nothing to make one from.
pub(crate) fn name_of_unnamed(capability: &Capability) -> Option<String> {
    if capability.title.is_some() || !capability.name.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let description = capability.description.as_deref().and_then(|text| text.split(". ").next());
    let sentence = description.map(|sentence| sentence.trim_end_matches('.'));
    if let Some(sentence) = sentence.filter(|sentence| !sentence.is_empty()) {
        let cut = text::capped(sentence, MADE_NAME_CHARS_MAX);
        let is_whole = cut.len() == sentence.len();
        return Some(
            if is_whole { cut } else { cut.rsplit_once(' ').map_or(cut, |(words, _)| words) }.to_owned(),
        );
    }
    let address = capability.invocation.endpoint()?;
    let after_scheme = address.split_once("://").map(|(_, rest)| rest);
    let path = after_scheme.and_then(|rest| rest.get(rest.find('/')?..)).unwrap_or(address);
    let method = capability.invocation.method.as_deref().unwrap_or_default();
    name(Some(&format!("{method} {path}")))
}

#[cfg(test)]
mod tests {
    use crate::{Discovery, Document, ManifestUrl};

    fn names(actions: &str) -> Vec<String> {
        let bytes = format!(r#"{{"awp_version": "0.1", "domain": "a.example", "actions": {actions}}}"#);
        let url = ManifestUrl::parse("https://a.example/agent.json").unwrap();
        let document = Document {
            bytes: bytes.as_bytes(),
            url: &url,
            final_url: None,
            discovery: Discovery::Submitted,
            served: None,
            linked: &[],
            force: None,
        };
        crate::read(&document).capabilities.into_iter().map(|capability| capability.name).collect()
    }

    #[test]
    fn capabilities_without_a_name_are_named_by_what_they_do_or_where() {
        let long = "Cancel an order that was placed by telephone in the last seven days and not baked yet";
        assert_eq!(
            names(&format!(
                r#"[{{"description": "Cancel an order. Needs its number.", "endpoint": "/orders", "method": "DELETE"}},
                    {{"endpoint": "/api/hours", "method": "GET"}},
                    {{"description": "{long}", "endpoint": "/api/orders", "method": "DELETE"}},
                    {{"id": "order_24", "description": "Orders.", "endpoint": "/api/orders", "method": "POST"}}]"#
            )),
            [
                "Cancel an order",
                "GET /api/hours",
                "Cancel an order that was placed by telephone in the last",
                "Order 24"
            ]
        );
    }
}
