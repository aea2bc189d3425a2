//! Which links to declarations are followed.

use super::target::Target;
use crate::draft::Draft;

/// Whether the address of a declaration may be fetched.
pub(super) fn may_be_followed(url: &str, draft: &Draft<'_>) -> bool {
    let is_template = url.contains('{') || url.contains("%7B");
    url.starts_with("https://") && !is_template && draft.not_public(url).is_none()
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
