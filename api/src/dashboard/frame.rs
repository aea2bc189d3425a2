//! What surrounds every page: title, navigation, assets.

use crate::assets::{ICON, SCRIPT, STYLE};

/// The part of the site that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Search,
    Sites,
    Types,
    Stats,
    Nowhere,
}

/// Given to the base template by every page.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) title: String,
    pub(crate) section: Section,
    pub(crate) style_url: String,
    pub(crate) script_url: String,
    pub(crate) icon_url: String,
}

impl Frame {
    pub(crate) fn new(title: impl Into<String>, section: Section) -> Self {
        Self {
            title: title.into(),
            section,
            style_url: STYLE.url(),
            script_url: SCRIPT.url(),
            icon_url: ICON.url(),
        }
    }

    /// Marks the current part of the navigation.
    pub(crate) fn current(&self, name: &str) -> &'static str {
        let is_current = matches!(
            (self.section, name),
            (Section::Search, "search")
                | (Section::Sites, "sites")
                | (Section::Types, "types")
                | (Section::Stats, "stats")
        );
        if is_current { "aria-current=page" } else { "" }
    }
}
