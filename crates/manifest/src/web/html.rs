//! Reads the `<link>` elements in the head of a page.
//!
//! The tokenizer follows the WHATWG rules: attributes in any order, quoting and case, comments skipped. The content of scripts, styles,
//! titles, `<noscript>` and the like is text, and that of `<template>` is not part of the page. Only the head is read. It ends at
//! `</head>`, at `<body>`, or at the first element that belongs in the body. The tokenizer keeps one token at a time, so memory is a small
//! multiple of the capped length of the page.

use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Reader, Span, Tokenizer};

use super::{HREF_BYTES_MAX, LINKS_MAX, PARAMETER_BYTES_MAX, WebLink, relations};

/// Longest part of a page that is read; a visit fetches at most 64 KiB of a home page.
pub(super) const PAGE_BYTES_MAX: usize = 512 * 1_024;
/// Maximum number of attributes of one element. The tokenizer recurses for every quoted value, so more could overflow the stack; reading
/// stops at an element with more.
pub(super) const ATTRIBUTES_MAX: usize = 64;

/// The links of a head and their base URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HtmlHead {
    pub base: Option<String>,
    pub links: Vec<WebLink>,
}

/// Reads the head of a page, which may be truncated.
pub fn read_head(page: &[u8]) -> HtmlHead {
    let page = page.get(..page.len().min(PAGE_BYTES_MAX)).unwrap_or_default();
    let source = Source::new(page);
    let mut collector = Collector {
        head: HtmlHead::default(),
        element: Element::default(),
        templates: 0,
        in_noframes: false,
        stopped: source.stopper(),
    };
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| {
        collector.take(&event);
        None::<()>
    });
    // Sets the tokenizer states for scripts and text elements, which a tree builder would set.
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(source, emitter) {
        let Ok(()) = token;
    }
    collector.head
}

/// The bytes of a page, until the collector stops.
pub(super) struct Source<'p> {
    rest: &'p [u8],
    stopped: Rc<Cell<bool>>,
}

impl<'p> Source<'p> {
    pub(super) fn new(page: &'p [u8]) -> Self {
        Self { rest: page, stopped: Rc::new(Cell::new(false)) }
    }

    /// A flag that makes the tokenizer stop as if the page ended.
    pub(super) fn stopper(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.stopped)
    }
}

impl Source<'_> {
    fn left(&self) -> &[u8] {
        if self.stopped.get() { &[] } else { self.rest }
    }

    fn skip(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
    }
}

impl Reader for Source<'_> {
    type Error = Infallible;

    fn read_byte(&mut self) -> Result<Option<u8>, Infallible> {
        let byte = self.left().first().copied();
        self.skip(1);
        Ok(byte)
    }

    fn try_read_string(&mut self, wanted: &[u8], case_sensitive: bool) -> Result<bool, Infallible> {
        let found = self
            .left()
            .get(..wanted.len())
            .is_some_and(|found| found == wanted || (!case_sensitive && found.eq_ignore_ascii_case(wanted)));
        if found {
            self.skip(wanted.len());
        }
        Ok(found)
    }
}

/// The element whose attributes are being read.
#[derive(Default)]
struct Element {
    kind: ElementKind,
    attributes: usize,
    /// The attribute to which the next value belongs.
    next: Option<Attribute>,
    rel: Option<String>,
    href: Option<String>,
    media_type: Option<String>,
}

#[derive(Default, Clone, Copy)]
enum ElementKind {
    Link,
    Base,
    Template,
    #[default]
    Other,
}

/// Elements of a head, and those around it (HTML §13.2.6.4.4). Every other element begins the body.
const HEAD_ELEMENTS: &[&[u8]] = &[
    b"html",
    b"head",
    b"base",
    b"basefont",
    b"bgsound",
    b"link",
    b"meta",
    b"noframes",
    b"noscript",
    b"script",
    b"style",
    b"template",
    b"title",
];

#[derive(Clone, Copy)]
enum Attribute {
    Rel,
    Href,
    Type,
}

/// Collects the links from the events of a page.
struct Collector {
    head: HtmlHead,
    element: Element,
    /// Number of open templates. Their content is not part of the page.
    templates: usize,
    /// Whether a `<noframes>` is open. Its content is text, but the tokenizer reads it as markup.
    in_noframes: bool,
    stopped: Rc<Cell<bool>>,
}

impl Collector {
    fn take(&mut self, event: &CallbackEvent<'_>) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                let kind = match *name {
                    b"link" => ElementKind::Link,
                    b"base" => ElementKind::Base,
                    b"template" => ElementKind::Template,
                    _ => ElementKind::Other,
                };
                self.element = Element { kind, ..Element::default() };
                if self.is_page() && !HEAD_ELEMENTS.contains(name) {
                    self.stopped.set(true);
                }
                self.in_noframes |= *name == b"noframes";
            }
            CallbackEvent::AttributeName { name } => {
                self.element.attributes += 1;
                self.element.next = match *name {
                    b"rel" => Some(Attribute::Rel),
                    b"href" => Some(Attribute::Href),
                    b"type" => Some(Attribute::Type),
                    _ => None,
                };
                if self.element.attributes > ATTRIBUTES_MAX {
                    self.stopped.set(true);
                }
            }
            CallbackEvent::AttributeValue { value } => self.element.set(value),
            CallbackEvent::CloseStartTag { .. } => self.close(),
            CallbackEvent::EndTag { name } => {
                self.element = Element::default();
                match *name {
                    b"noframes" => self.in_noframes = false,
                    b"template" if !self.in_noframes => self.templates = self.templates.saturating_sub(1),
                    b"head" if self.is_page() => self.stopped.set(true),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Whether the markup is part of the page.
    const fn is_page(&self) -> bool {
        self.templates == 0 && !self.in_noframes
    }

    /// Keeps the link or base of a complete element before the end of the head.
    fn close(&mut self) {
        let element = std::mem::take(&mut self.element);
        if self.stopped.get() || self.in_noframes {
            return;
        }
        match element.kind {
            ElementKind::Template => self.templates += 1,
            _ if self.templates > 0 => {}
            ElementKind::Base if self.head.base.is_none() => {
                self.head.base = element.href.filter(|href| href.len() <= HREF_BYTES_MAX);
            }
            ElementKind::Link if self.head.links.len() < LINKS_MAX => self.head.links.extend(link(element)),
            _ => {}
        }
    }
}

impl Element {
    /// Sets the value of the last attribute; the first of two equal names counts.
    fn set(&mut self, value: &[u8]) {
        let slot = match self.next.take() {
            Some(Attribute::Rel) => &mut self.rel,
            Some(Attribute::Href) => &mut self.href,
            Some(Attribute::Type) => &mut self.media_type,
            None => return,
        };
        if slot.is_none() {
            *slot = std::str::from_utf8(value).ok().map(|text| text.trim().to_owned());
        }
    }
}

fn link(element: Element) -> Option<WebLink> {
    let rels = relations(&element.rel.filter(|rel| rel.len() <= PARAMETER_BYTES_MAX)?);
    let href = element.href.filter(|href| !href.is_empty() && href.len() <= HREF_BYTES_MAX)?;
    let media_type = element.media_type.filter(|media_type| media_type.len() <= PARAMETER_BYTES_MAX);
    Some(WebLink { rels, href, media_type })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_links_in_any_syntax_from_the_head_only() {
        let page = br#"<!doctype html><HTML><head><!-- <link rel=agent-manifest href=/commented> -->
            <base href="/app/"><LINK HREF='/a.json' REL="Agent-Manifest alternate" type=application/json>
            <link rel=service-desc href=openapi.json><link rel=stylesheet><title>&lt;link></title></head>
            <body><link rel=agent-manifest href=/late></body>"#;
        let head = read_head(page);
        assert_eq!(head.base.as_deref(), Some("/app/"));
        assert_eq!(head.links.len(), 2);
        assert_eq!(head.links[0].rels, ["agent-manifest", "alternate"]);
        assert_eq!(head.links[0].media_type.as_deref(), Some("application/json"));
        assert_eq!(head.links[1].href, "openapi.json");
    }

    #[test]
    fn reads_no_links_from_the_text_of_other_elements() {
        let link = "<link rel=agent-manifest href=/hidden.json>";
        let elements = [
            "script", "style", "title", "noscript", "template", "noframes", "textarea", "iframe", "xmp",
            "noembed",
        ];
        for element in elements {
            let page = format!("<head><{element}>{link}</{element}><link rel=ard href=/ard.json></head>");
            let head = read_head(page.as_bytes());
            assert!(head.links.iter().all(|link| link.href != "/hidden.json"), "{element}");
        }
        for page in [
            "<script>document.write('<link rel=ard href=/hidden>')</script>",
            "<script type=application/json>{\"a\": \"<link rel=ard href=/hidden></head><body>\"}</script>",
            "<script><!-- <script> </script> <link rel=ard href=/hidden> --></script>",
            "<SCRIPT src=a.js>\"<link rel=ard href=/hidden>\"</SCRIPT >",
            "<script/><link rel=ard href=/hidden></script>",
            "<title><link rel=ard href=/hidden></title>",
            "<template><template></template><link rel=ard href=/hidden></template>",
            "<template><div></div></head><link rel=ard href=/hidden></template>",
            "<style>/* <link rel=ard href=/hidden> */</style>",
        ] {
            let head = read_head(format!("<!doctype html>{page}<link rel=ard href=/seen>").as_bytes());
            let hrefs: Vec<&str> = head.links.iter().map(|link| link.href.as_str()).collect();
            assert_eq!(hrefs, ["/seen"], "{page}");
        }
        assert!(read_head(b"<script>let a = 1; <link rel=ard href=/hidden>").links.is_empty());
    }

    #[test]
    fn the_head_ends_where_an_element_of_the_body_begins() {
        for element in ["<body>", "<div>", "<p>", "<svg>", "<img src=a>"] {
            let page = format!("<title>t</title><link rel=ard href=/a>{element}<link rel=ard href=/b>");
            assert_eq!(read_head(page.as_bytes()).links.len(), 1, "{element}");
        }
    }

    #[test]
    fn reads_a_truncated_page_up_to_the_cut() {
        let head = read_head(b"<link rel=ard href=/ard.json><link rel=ard href='/cut");
        assert_eq!(head.links.len(), 1);
    }

    #[test]
    fn stops_at_an_element_with_too_many_attributes() {
        for quote in ["", "'", "\""] {
            let attributes: String =
                (0..65).map(|at| format!("a{at}={quote}b{quote} ")).collect::<Vec<_>>().concat();
            let page = format!("<link rel=ard href=/a><link {attributes}><link rel=ard href=/b>");
            assert_eq!(read_head(page.as_bytes()).links.len(), 1, "{quote}");
        }
        let attributes: String = (0..60).map(|at| format!("a{at}='b' ")).collect::<Vec<_>>().concat();
        let page = format!("<html {attributes}><link rel=ard href=/a>");
        assert_eq!(read_head(page.as_bytes()).links.len(), 1);
    }
}
