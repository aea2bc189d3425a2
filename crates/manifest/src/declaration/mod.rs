//! Declarations of one operation within a site: one capability that several documents declare.
//!
//! Documents of a site often declare the same operation: agents.txt and agents.json, one document at two paths, a card and an `OpenAPI`
//! document. [`group()`] decides which declarations belong together, [`name()`] which id they get, and [`merge()`] compares what they
//! state. The leading declaration is the one with the fewest links from what the site itself publishes; among equals, the fullest. If
//! values differ, the most cautious one is used.

mod contradiction;
mod excerpt;
mod fullness;
mod group;
mod name;
mod operation;
mod statement;

pub(crate) use contradiction::FINDINGS;
pub use contradiction::{Contradiction, Fact, Stated, contradictions, findings_of, merge};
pub use excerpt::{Excerpt, payment_schemes};
pub use fullness::fullness;
pub use group::{Declared, Group, Member, SiteManifest, group};
pub use name::{Before, Move, Moves, Named, Regrouped, name};
pub use operation::operation;
pub use statement::Statement;

/// Maximum number of declarations of one operation that are compared and listed, the first in their order.
pub const DECLARATIONS_MAX: usize = 16;
