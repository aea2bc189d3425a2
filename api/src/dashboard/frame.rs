//! The frame of every page: title, navigation, assets.

use crate::assets::{COPY, DROP, ICON, LIVE, SEARCH, STYLE};

/// The part of the site that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Search,
    Sites,
    Types,
    Changes,
    Crawl,
    Stats,
    Validate,
    None,
}

/// Values that every page passes to the base template.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) title: String,
    pub(crate) section: Section,
    pub(crate) style_url: String,
    pub(crate) script_url: String,
    /// The script for copy buttons.
    pub(crate) copy_url: String,
    /// The script for dropped files.
    pub(crate) drop_url: String,
    /// The script for live updates.
    pub(crate) live_url: String,
    pub(crate) icon_url: String,
}

impl Frame {
    pub(crate) fn new(title: impl Into<String>, section: Section) -> Self {
        Self {
            title: title.into(),
            section,
            style_url: STYLE.url(),
            script_url: SEARCH.url(),
            copy_url: COPY.url(),
            drop_url: DROP.url(),
            live_url: LIVE.url(),
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
                | (Section::Changes, "changes")
                | (Section::Crawl, "crawl")
                | (Section::Stats, "stats")
                | (Section::Validate, "validate")
        );
        if is_current { "aria-current=page" } else { "" }
    }
}
