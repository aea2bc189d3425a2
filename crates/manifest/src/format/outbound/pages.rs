//! Relative paths of pages, and members with the files of a repository.

use serde_json::{Map, Value};

use crate::format::addresses;
use crate::text;

/// Words in the names of members with pages.
const PAGE_WORDS: &[&str] = &[
    "doc",
    "docs",
    "documentation",
    "guide",
    "guides",
    "manual",
    "readme",
    "quickstart",
    "tutorial",
    "tutorials",
    "reference",
    "changelog",
    "faq",
    "spec",
    "specification",
    "terms",
    "policy",
    "license",
];

/// Whether a member lists files of a repository: `docs_paths`.
fn names_files(name: &str) -> bool {
    let mut found = false;
    text::each_word(name, |word| found = matches!(word, "path" | "paths" | "file" | "files"));
    found
}

/// The path of a page without its leading slash, in a member for pages: `"docs": "docs/keys.md"`. In a document that names a repository, a
/// list of files is about the repository and not about the site. The core formats define members for their pages.
pub(super) fn relative_pages(
    root: &Map<String, Value>,
    is_core: bool,
) -> impl Fn(&[&str], &str) -> Option<String> {
    let has_repository = root.keys().any(|name| name.starts_with("repo"));
    move |names, published| {
        if is_core || !addresses::is_relative_document(published) {
            return None;
        }
        let mut holds_pages = false;
        text::each_word(names.last()?, |word| holds_pages |= PAGE_WORDS.contains(&word));
        let is_file = holds_pages && has_repository && names.last().is_some_and(|name| names_files(name));
        (holds_pages && !is_file).then(|| ["/", published.strip_prefix("./").unwrap_or(published)].concat())
    }
}
