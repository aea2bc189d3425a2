//! How many entries of a registry are requested with one page.

use url::Url;

/// Entries per page: the maximum of ARD and of the official MCP registry.
const ENTRIES_MAX: u32 = 100;
/// A page with too many bytes is requested again with a tenth of its entries.
const STEP: u32 = 10;

/// The number of entries of the next page. After a page with too many bytes, the entries of that page are requested with smaller pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageSize {
    entries: u32,
    /// Number of pages after which pages are larger again.
    pages_left: u32,
}

impl PageSize {
    pub(crate) const MAX: Self = Self { entries: ENTRIES_MAX, pages_left: STEP };

    /// The size with which an earlier reading ended.
    pub(crate) fn resumed(entries: u32) -> Self {
        Self { entries: entries.clamp(1, ENTRIES_MAX), pages_left: STEP }
    }

    pub(crate) const fn entries(self) -> u32 {
        self.entries
    }

    /// The size after a page with too many bytes; `None` after a page of one entry.
    pub(crate) fn reduced(self) -> Option<Self> {
        let entries = self.entries.checked_div(STEP).filter(|entries| *entries > 0)?;
        Some(Self { entries, pages_left: STEP })
    }

    /// The size after a page that was read.
    pub(crate) const fn after_page(self) -> Self {
        match self.pages_left.checked_sub(1) {
            Some(pages_left) if pages_left > 0 => Self { pages_left, ..self },
            _ if self.entries < ENTRIES_MAX => {
                Self { entries: self.entries.saturating_mul(STEP), pages_left: STEP }
            }
            _ => Self::MAX,
        }
    }

    /// Adds the size to the query of a URL, unless the operator states one.
    pub(crate) fn add_to(self, url: &mut Url, parameter: &str) {
        if url.query_pairs().all(|(key, _)| key != parameter) {
            url.query_pairs_mut().append_pair(parameter, &self.entries.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_size_is_bounded() {
        let sizes = [0, 1, 10, 100, u32::MAX].map(|entries| PageSize::resumed(entries).entries());
        assert_eq!(sizes, [1, 1, 10, 100, 100]);
    }

    /// Nine entries of a page have too many bytes together, and one of them has too many alone.
    #[test]
    fn pages_are_smaller_until_the_entries_of_the_large_page_are_read() {
        let ten = PageSize::MAX.reduced().unwrap();
        let one = ten.reduced().unwrap();
        assert_eq!((PageSize::MAX.entries(), ten.entries(), one.entries()), (100, 10, 1));
        assert_eq!(one.reduced(), None);
        let mut sizes = Vec::new();
        let mut size = one;
        while size != PageSize::MAX {
            sizes.push(size.entries());
            size = size.after_page();
        }
        assert_eq!(sizes, [[1; 10], [10; 10]].concat());
        assert_eq!((0..30).fold(PageSize::MAX, |size, _| size.after_page()).entries(), 100);
    }
}
