//! The URLs of an OPML file (`xmlUrl`, `htmlUrl`) or of a sitemap (`loc`). Entities beyond XML's own are not expanded, so
//! there is nothing to blow up.

use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// Attributes of an OPML outline that name a site.
const URL_ATTRIBUTES: [&str; 2] = ["xmlUrl", "htmlUrl"];

/// Hands over each URL, as it stands.
pub(super) fn each_url(source: impl BufRead, mut each: impl FnMut(&str)) -> Result<(), String> {
    let mut reader = Reader::from_reader(source);
    let (mut buffer, mut location, mut depth) = (Vec::new(), None::<String>, 0_usize);
    loop {
        let event =
            reader.read_event_into(&mut buffer).map_err(|error| format!("it is not usable XML: {error}"))?;
        match event {
            Event::Start(element) => {
                depth += 1;
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
            Event::Eof if depth > 0 => return Err("the XML ends in the middle".to_owned()),
            Event::Eof => return Ok(()),
            _ => {}
        }
        buffer.clear();
    }
}

fn append(location: &mut Option<String>, text: &str) {
    if let Some(location) = location {
        location.push_str(text);
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
    for attribute in element.attributes().flatten() {
        let is_url = URL_ATTRIBUTES.iter().any(|name| attribute.key.as_ref() == *name);
        if is_url {
            each(&attribute.value.replace("&amp;", "&"));
        }
    }
}
