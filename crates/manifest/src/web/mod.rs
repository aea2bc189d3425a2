//! What pages, headers and lists of sites lead to: the head of an HTML page, Link headers, the URLs of OPML and sitemaps.
//!
//! Pure and bounded: each takes what a stranger sent, keeps one piece of it at a time, and returns addresses as they were
//! written. Whether an address is followed is decided elsewhere.

mod html;
mod link_header;
mod xml;

pub use html::{HtmlHead, HtmlLink, read_head};
pub use link_header::{HeaderLink, link_header};
pub use xml::each_url;
