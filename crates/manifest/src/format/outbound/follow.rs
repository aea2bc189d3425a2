//! Which links to declarations are followed.

use serde_json::{Map, Value};

use super::is_plain;
use super::target::Target;
use crate::draft::{self, Draft};
use crate::object::member;

/// Whether the address of a declaration may be fetched.
pub(super) fn may_be_followed(url: &str, draft: &Draft<'_>) -> bool {
    let is_template = url.contains('{') || url.contains("%7B");
    url.starts_with("https://") && !is_template && draft.not_public(url).is_none()
}

/// Joins the titles of two elements of one list with the same address, from `first` on: "Front desk; Cleaning".
pub(super) fn join_titles(
    names: &[&str],
    url: &str,
    owner: Option<&Map<String, Value>>,
    first: usize,
    draft: &mut Draft<'_>,
) {
    let list = names.iter().rev().find(|name| !is_plain(name)).copied().unwrap_or_default();
    let title = ["name", "title", "label"].iter().find_map(|key| member(owner?, key)?.as_str());
    let Some(title) = draft::name(title) else { return };
    let mut added = draft.manifest.links.iter_mut().skip(first);
    let Some(link) = added.find(|link| link.url == url && link.rel == list) else { return };
    if let Some(known) = link.title.as_ref().filter(|known| !known.contains(&title)) {
        link.title = draft::title(Some(&format!("{known}; {title}")));
    }
}

/// Follows a link from `first` on that another member made of the same address, if this member says that a declaration is there.
pub(super) fn follow_known(url: &str, target: Option<Target>, first: usize, draft: &mut Draft<'_>) {
    let Some(Target::Document(class)) = target.filter(|target| target.is_followed()) else { return };
    if !may_be_followed(url, draft) {
        return;
    }
    let mut added = draft.manifest.links.iter_mut().skip(first);
    if let Some(link) = added.find(|link| link.url == url && link.rel == "related") {
        class.rel.clone_into(&mut link.rel);
        link.follow = class.follow;
    }
}
