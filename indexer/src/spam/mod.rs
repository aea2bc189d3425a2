//! Index spam: texts that are written to mislead the search. Pure functions over the texts and names of sites.
//!
//! `texts` judges the capabilities of one document, `facts` extracts facts of a document about its site, and `label` compares names of
//! sites. `search::spam_sites` compares sites with each other. Nothing is removed: spam has a lower score.

mod facts;
mod label;
mod texts;

pub(crate) use facts::{Listing, MANIFESTS_MAX, PublisherFacts};
pub(crate) use label::Label;
pub(crate) use texts::judge;

/// Factor for the score of spam, regardless of the number of reasons. Spam ranks below other results with a tenth of its text score.
pub(crate) const SPAM_FACTOR: f32 = 0.1;

manifest::string_enum! {
    /// Why a result or a site counts as spam.
    SpamReason, "reason of spam" {
        /// Its texts repeat their words.
        RepeatedWords = "repeated_words",
        /// The capability is one of many in its document that differ only in a few words.
        NearCopies = "near_copies",
        /// The document mostly lists names of other publishers.
        BrandNames = "brand_names",
        /// The domain looks like that of another publisher, whose name it uses.
        LookAlike = "look_alike",
        /// The site is one of several that link to each other and have the same texts.
        SiblingSites = "sibling_sites",
    }
}

impl SpamReason {
    /// The bit of a reason in the column `spam`.
    pub(crate) const fn bit(self) -> u64 {
        1 << self as u64
    }

    /// The reasons whose bits are set.
    pub(crate) fn of_bits(bits: u64) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |reason| bits & reason.bit() != 0)
    }
}
