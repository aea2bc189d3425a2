//! Reads the URLs of an OPML file (`xmlUrl`, `htmlUrl`) or of a sitemap (`loc`), event by event.
//!
//! Only predefined XML entities are expanded. The parser keeps one event and the names of open elements. Both have caps, so
//! memory does not depend on the length of the file.

use std::io::{self, BufRead, Read};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Attributes of an OPML outline that name a site.
const URL_ATTRIBUTES: [&str; 2] = ["xmlUrl", "htmlUrl"];

/// Longest event: an element with its attributes, a text, a comment. An outline of a feed has a few hundred bytes.
const EVENT_BYTES_MAX: usize = 64 * 1_024;
/// Deepest nesting of elements; OPML nests folders.
const DEPTH_MAX: usize = 256;
/// Maximum number of attributes of one element that are read.
const ATTRIBUTES_MAX: usize = 64;
/// Longest URL in bytes.
const URL_BYTES_MAX: usize = 8 * 1_024;

/// A source that fails if one event is longer than the cap.
struct Metered<R> {
    source: R,
    left: usize,
}

impl<R: BufRead> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let length = available.len().min(buffer.len());
        let (from, to) = (available.get(..length), buffer.get_mut(..length));
        if let (Some(from), Some(to)) = (from, to) {
            to.copy_from_slice(from);
        }
        self.consume(length);
        Ok(length)
    }
}

impl<R: BufRead> BufRead for Metered<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let available = self.source.fill_buf()?;
        if self.left == 0 && !available.is_empty() {
            let reason = format!("an element or a text is longer than {EVENT_BYTES_MAX} bytes");
            return Err(io::Error::other(reason));
        }
        Ok(available.get(..available.len().min(self.left)).unwrap_or_default())
    }

    fn consume(&mut self, length: usize) {
        self.left = self.left.saturating_sub(length);
        self.source.consume(length);
    }
}

/// Calls `each` with every URL as written.
pub fn each_url(source: impl BufRead, mut each: impl FnMut(&str)) -> Result<(), String> {
    let mut reader = Reader::from_reader(Metered { source, left: EVENT_BYTES_MAX });
    let (mut buffer, mut location, mut depth) = (Vec::new(), None::<String>, 0_usize);
    loop {
        reader.get_mut().left = EVENT_BYTES_MAX;
        let event = reader.read_event_into(&mut buffer).map_err(|error| format!("invalid XML: {error}"))?;
        match event {
            Event::Start(element) => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return Err(format!("elements are nested deeper than {DEPTH_MAX} levels"));
                }
                each_attribute(&element, &mut each);
                if element.local_name().as_ref() == "loc" {
                    location = Some(String::new());
                }
            }
            Event::Empty(element) => each_attribute(&element, &mut each),
            Event::Text(text) => append(&mut location, &text),
            Event::CData(text) => append(&mut location, &text),
            Event::GeneralRef(entity) => append(&mut location, character(&entity)),
            Event::End(element) => {
                depth = depth.saturating_sub(1);
                if element.local_name().as_ref() == "loc"
                    && let Some(text) = location.take()
                {
                    each(text.trim());
                }
            }
            Event::Eof if depth > 0 => return Err("the XML ends unexpectedly".to_owned()),
            Event::Eof => return Ok(()),
            _ => {}
        }
        buffer.clear();
    }
}

fn append(location: &mut Option<String>, text: &str) {
    if let Some(location) = location {
        let room = URL_BYTES_MAX.saturating_sub(location.len());
        location.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or(text));
    }
}

fn character(entity: &str) -> &'static str {
    match entity {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        _ => "",
    }
}

fn each_attribute(element: &BytesStart<'_>, each: &mut impl FnMut(&str)) {
    if element.local_name().as_ref() != "outline" {
        return;
    }
    // Without checks, because the check for duplicates compares every attribute with all previous ones.
    for attribute in element.attributes().with_checks(false).flatten().take(ATTRIBUTES_MAX) {
        let is_url = URL_ATTRIBUTES.iter().any(|name| attribute.key.as_ref() == *name);
        if is_url && attribute.value.len() <= URL_BYTES_MAX {
            each(&attribute.value.replace("&amp;", "&"));
        }
    }
}
