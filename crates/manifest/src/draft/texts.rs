//! Removes markup from the texts of a manifest and cuts them to their caps.

use super::{DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX, TAG_CHARS_MAX, TAGS_MAX, TITLE_CHARS_MAX};
use crate::text;

/// A description without markup, cut to its cap.
pub(crate) fn description(text: Option<&str>) -> Option<String> {
    text::plain(text?, DESCRIPTION_CHARS_MAX)
}

/// A name without markup, cut to its cap.
pub(crate) fn name(text: Option<&str>) -> Option<String> {
    text::plain(text?, NAME_CHARS_MAX)
}

/// The title of a link without markup. A longer one is cut after a word, and ends with an ellipsis.
pub(crate) fn title(text: Option<&str>) -> Option<String> {
    let mut title = text::plain(text?, TITLE_CHARS_MAX + 1)?;
    if text::capped(&title, TITLE_CHARS_MAX).len() < title.len() {
        let cut = text::capped(&title, TITLE_CHARS_MAX - 1);
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
