//! The frame of every page: title, description, navigation, assets, and the preview of a shared link on other sites.

use serde_json::Value;

use super::links::{self, Link};
use crate::assets::{COPY, DOCS, DROP, ICON, LIVE, SEARCH, STYLE, TOUCH_ICON, picture};
use crate::page_context::PageContext;
use crate::text;

/// Maximum length of a description in the head of a page, in characters: search engines show about as many.
const DESCRIPTION_CHARS_MAX: usize = 160;

/// The part of the site that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Home,
    Search,
    Types,
    Sites,
    Changes,
    Crawl,
    Stats,
    Validate,
    Docs,
    None,
}

impl Section {
    /// The preview picture for shared links to pages of this section.
    const fn picture(self) -> &'static str {
        match self {
            Self::Search | Self::Types => "search",
            Self::Sites => "site",
            Self::Validate => "validate",
            Self::Docs => "docs",
            Self::Changes | Self::Crawl | Self::Stats => "activity",
            Self::Home | Self::None => "home",
        }
    }
}

/// Values that every page passes to the base template.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) title: String,
    pub(crate) section: Section,
    pub(crate) description: String,
    /// The address of the page, without parameters that do not change its content.
    pub(crate) canonical: Option<String>,
    /// Absolute address of the picture for shared links.
    pub(crate) picture_url: Option<String>,
    /// Structured data (schema.org), as JSON that is safe inside a script element.
    pub(crate) json_ld: Option<String>,
    /// Whether search engines may list the page.
    pub(crate) is_listed: bool,
    /// The text of the search box in the header.
    pub(crate) box_text: String,
    /// Filters and sort order, which a new search keeps.
    pub(crate) kept: Vec<(String, String)>,
    pub(crate) style_url: String,
    pub(crate) script_url: String,
    /// The script for copy buttons and request forms.
    pub(crate) copy_url: String,
    /// The script for dropped files.
    pub(crate) drop_url: String,
    /// The script for live updates.
    pub(crate) live_url: String,
    /// The script of the API reference.
    pub(crate) docs_url: String,
    pub(crate) icon_url: String,
    pub(crate) touch_icon_url: String,
    /// URL of the source code.
    pub(crate) source_url: &'static str,
    /// Link to contact the operator.
    pub(crate) contact: Option<Link>,
}

impl Frame {
    pub(crate) fn new(title: impl Into<String>, section: Section) -> Self {
        Self {
            title: title.into(),
            section,
            description: "What AI agents can do on the web, as sites declare it.".to_owned(),
            canonical: None,
            picture_url: None,
            json_ld: None,
            is_listed: true,
            box_text: String::new(),
            kept: Vec::new(),
            style_url: STYLE.url(),
            script_url: SEARCH.url(),
            copy_url: COPY.url(),
            drop_url: DROP.url(),
            live_url: LIVE.url(),
            docs_url: DOCS.url(),
            icon_url: ICON.url(),
            touch_icon_url: TOUCH_ICON.url(),
            source_url: env!("CARGO_PKG_REPOSITORY"),
            contact: None,
        }
    }

    /// Sets the address of the page, the picture for shared links, and the contact of the operator.
    pub(crate) fn at(mut self, context: &PageContext, path: &str) -> Self {
        self.contact = context.contact.as_deref().map(links::contact);
        self.canonical = Some(format!("{}{path}", context.base));
        self.picture_url = Some(format!("{}{}", context.base, picture(self.section.picture())));
        self
    }

    pub(crate) fn described(mut self, description: &str) -> Self {
        self.description = text::one_line(description, DESCRIPTION_CHARS_MAX);
        self
    }

    pub(crate) fn with_picture(mut self, context: &PageContext, name: &str) -> Self {
        self.picture_url = Some(format!("{}{}", context.base, picture(name)));
        self
    }

    /// Adds structured data. Markup is escaped, so that a publisher's text cannot end the script element.
    pub(crate) fn with_json_ld(mut self, data: &Value) -> Self {
        let json = settings::escape::json(&data.to_string()).replace('<', "\\u003c").replace('>', "\\u003e");
        self.json_ld = Some(json.replace('&', "\\u0026"));
        self
    }

    pub(crate) fn unlisted(mut self) -> Self {
        self.is_listed = false;
        self
    }

    pub(crate) fn is_home(&self) -> bool {
        self.section == Section::Home
    }

    pub(crate) fn is_search(&self) -> bool {
        self.section == Section::Search
    }

    /// Marks the current part of the navigation.
    pub(crate) fn current(&self, name: &str) -> &'static str {
        let is_current = matches!(
            (self.section, name),
            (Section::Types, "types")
                | (Section::Sites, "sites")
                | (Section::Changes, "changes")
                | (Section::Crawl, "crawl")
                | (Section::Stats, "stats")
                | (Section::Changes | Section::Crawl | Section::Stats, "activity")
                | (Section::Validate, "validate")
                | (Section::Docs, "docs")
        );
        if is_current { "aria-current=page" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn structured_data_cannot_end_its_script_element() {
        let frame = Frame::new("x", Section::None)
            .with_json_ld(&json!({"name": "</script><script>alert(1)\u{202e}"}));
        assert_eq!(
            frame.json_ld.unwrap(),
            "{\"name\":\"\\u003c/script\\u003e\\u003cscript\\u003ealert(1)\\u202e\"}"
        );
    }
}
