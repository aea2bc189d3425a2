//! Reads ARD entries from the JSON-LD of a page (ARD 0.91 §5.1, §5.2).
//!
//! Every `<script type="application/ld+json">` in the fetched part of the page is read: a node, a list of nodes, or a `@graph`. A node is
//! an entry if its identifier is a urn:air name of the page's own site, because a page may quote entries of other sites. The entries become
//! one document with `entries`, as at `/.well-known/ard.json`.

use std::cell::RefCell;
use std::rc::Rc;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use serde::Serializer as _;
use serde_json::{Map, Value};

use super::html::{ATTRIBUTES_MAX, PAGE_BYTES_MAX, Source};
use crate::budget::{self, LimitedWriter};
use crate::entry::{is_identifier, publisher_of};
use crate::name::{Host, SiteName};
use crate::term::TermContext;

/// Maximum number of scripts of one page that are read; pages of shops have about ten.
const SCRIPTS_MAX: usize = 20;
/// Maximum number of entries of one page: it describes a few resources.
const ENTRIES_MAX: usize = 50;
/// Maximum bytes of the document with the entries and their contexts.
const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

/// The entries of a page as a document of at most 1 MiB; `None` if there are none.
pub fn page_entries(page: &[u8], site: &SiteName) -> Option<Vec<u8>> {
    let mut entries = Entries { site, document: OPENING.to_vec(), count: 0, is_full: false };
    for script in scripts(page) {
        // The limits of a response body: a few hundred KiB of JSON at most.
        if let Ok(value) = budget::parse_within_budget::<Value>(script.as_bytes(), &budget::BODY) {
            entries.collect(&value, &Context::default());
        }
    }
    (entries.count > 0).then(|| {
        entries.document.extend_from_slice(b"]}");
        entries.document
    })
}

/// The beginning of the document.
const OPENING: &[u8] = b"{\"entries\":[";

/// The context of a node. The nodes of its graph share it.
#[derive(Default)]
struct Context<'v> {
    stated: Option<&'v Value>,
    terms: TermContext,
}

impl<'v> Context<'v> {
    fn of(stated: &'v Value) -> Self {
        Self { stated: Some(stated), terms: TermContext::of(Some(stated)) }
    }
}

/// Writes the entries of a page one after the other. A context is read once for all nodes of its graph, and written only with the entries,
/// so that the work is linear in the size of the page and of the document.
struct Entries<'s> {
    site: &'s SiteName,
    document: Vec<u8>,
    count: usize,
    /// Whether an entry did not fit, so that nothing more is written.
    is_full: bool,
}

impl Entries<'_> {
    /// Adds the entries of a node, of a list and of a graph. Nodes of a graph have its context.
    fn collect(&mut self, value: &Value, context: &Context<'_>) {
        match value {
            Value::Array(nodes) => {
                nodes.iter().filter(|node| node.is_object()).for_each(|node| self.collect(node, context));
            }
            Value::Object(node) => {
                let own = node.get("@context").map(Context::of);
                let context = own.as_ref().unwrap_or(context);
                if let Some(Value::Array(nodes)) = node.get("@graph") {
                    nodes.iter().filter(|node| node.is_object()).for_each(|node| self.collect(node, context));
                }
                if self.count < ENTRIES_MAX && !self.is_full && is_entry_of(node, &context.terms, self.site) {
                    self.write(node, context);
                }
            }
            _ => {}
        }
    }

    fn write(&mut self, node: &Map<String, Value>, context: &Context<'_>) {
        let before = self.document.len();
        let members = node.iter().filter(|(name, _)| !matches!(name.as_str(), "@context" | "@graph"));
        let context = context.stated.map(|stated| ("@context", stated));
        let members = context.into_iter().chain(members.map(|(name, value)| (name.as_str(), value)));
        let separator: &[u8] = if self.count == 0 { b"" } else { b"," };
        self.document.extend_from_slice(separator);
        let room = DOCUMENT_BYTES_MAX.saturating_sub(self.document.len());
        let mut writer = serde_json::Serializer::new(LimitedWriter::new(&mut self.document, room));
        if writer.collect_map(members).is_ok() {
            self.count += 1;
        } else {
            self.document.truncate(before);
            self.is_full = true;
        }
    }
}

fn is_entry_of(node: &Map<String, Value>, terms: &TermContext, site: &SiteName) -> bool {
    let mut named = node.iter().filter(|(name, _)| terms.core_term(name) == Some("identifier"));
    let identifier = named.find_map(|(_, value)| value.as_str()).filter(|text| is_identifier(text));
    let publisher = identifier.and_then(|identifier| Host::parse(publisher_of(identifier)).ok());
    publisher.is_some_and(|host| host.site() == *site)
}

/// The content of the JSON-LD scripts.
fn scripts(page: &[u8]) -> Vec<String> {
    let page = page.get(..page.len().min(PAGE_BYTES_MAX)).unwrap_or_default();
    let collector = Rc::new(RefCell::new(Collector::default()));
    let source = Source::new(page);
    let (taking, stopped) = (Rc::clone(&collector), source.stopper());
    let mut emitter = CallbackEmitter::new(move |event: CallbackEvent<'_>, _: Span<()>| {
        let mut collector = taking.borrow_mut();
        collector.take(&event);
        if collector.attributes > ATTRIBUTES_MAX || collector.scripts.len() > SCRIPTS_MAX {
            stopped.set(true);
        }
        None::<()>
    });
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(source, emitter) {
        let Ok(()) = token;
    }
    let mut scripts = std::mem::take(&mut collector.borrow_mut().scripts);
    scripts.truncate(SCRIPTS_MAX);
    scripts
}

/// The start tag that is being read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Tag {
    #[default]
    Other,
    Script,
    /// A script element. The next value is its `type`.
    ScriptType,
}

/// Collects scripts from the events of a page.
#[derive(Default)]
struct Collector {
    scripts: Vec<String>,
    tag: Tag,
    is_json_ld: bool,
    /// Whether the text belongs to the last script.
    is_open: bool,
    attributes: usize,
}

impl Collector {
    fn take(&mut self, event: &CallbackEvent<'_>) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag = if *name == b"script" { Tag::Script } else { Tag::Other };
                (self.is_json_ld, self.attributes) = (false, 0);
            }
            CallbackEvent::AttributeName { name } => {
                self.attributes += 1;
                if self.tag != Tag::Other {
                    self.tag = if *name == b"type" { Tag::ScriptType } else { Tag::Script };
                }
            }
            CallbackEvent::AttributeValue { value } if self.tag == Tag::ScriptType => {
                self.is_json_ld |= value.trim_ascii().eq_ignore_ascii_case(b"application/ld+json");
            }
            CallbackEvent::CloseStartTag { .. } if self.tag != Tag::Other && self.is_json_ld => {
                self.scripts.push(String::new());
                self.is_open = true;
            }
            CallbackEvent::String { value } if self.is_open => {
                if let Some(script) = self.scripts.last_mut() {
                    script.push_str(&String::from_utf8_lossy(value));
                }
            }
            CallbackEvent::EndTag { .. } => self.is_open = false,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entries(page: &str) -> Vec<Value> {
        let site = SiteName::parse("shop.example").unwrap();
        let document = page_entries(page.as_bytes(), &site);
        let document: Option<Value> = document.map(|bytes| serde_json::from_slice(&bytes).unwrap());
        document.map(|document| document["entries"].as_array().unwrap().clone()).unwrap_or_default()
    }

    fn script(value: &Value) -> String {
        format!("<script type=\"application/ld+json\">{value}</script>")
    }

    fn entry(name: &str) -> Value {
        json!({"identifier": format!("urn:air:shop.example:agent:{name}"), "displayName": name, "type": "text/plain",
               "url": "https://shop.example/x"})
    }

    #[test]
    fn reads_nodes_lists_and_graphs_anywhere_in_the_page() {
        let context = json!("https://agenticresourcediscovery.org/context/v1");
        let graph =
            json!({"@context": context, "@graph": [entry("three"), {"@type": "Organization", "name": "x"}]});
        let page = format!(
            "<html><head>{}<title>x</title></head><body><p>text{}<SCRIPT async TYPE='Application/LD+JSON '>{}</SCRIPT></body>",
            script(&entry("one")),
            script(&json!([entry("two"), 3])),
            graph
        );
        let found = entries(&page);
        let names: Vec<&Value> = found.iter().map(|entry| &entry["displayName"]).collect();
        assert_eq!(names, ["one", "two", "three"]);
        assert_eq!((found[0].get("@context"), &found[2]["@context"]), (None, &context));
    }

    #[test]
    fn ignores_entries_of_other_publishers_and_other_markup() {
        let other = json!({"identifier": "urn:air:other.example:agent:x", "displayName": "x", "type": "y", "url": "https://other.example/"});
        for page in [
            script(&other),
            script(&json!({"@type": "Product", "identifier": "4711"})),
            "<script type='application/ld+json'>{not json</script>".to_owned(),
            format!("<script>{}</script>", entry("x")),
            format!("<!-- {} -->", script(&entry("x"))),
            format!("<textarea>{}</textarea>", script(&entry("x"))),
            String::new(),
        ] {
            assert_eq!(entries(&page), [Value::Null; 0], "{page}");
        }
    }

    /// A context of 100 KB that a thousand nodes and fifty entries share.
    #[test]
    fn a_shared_context_is_written_within_the_limit_of_the_document() {
        let context: Map<String, Value> =
            (0..40).map(|number| (format!("p{number}"), Value::String("x".repeat(2_500)))).collect();
        let nodes: Vec<Value> = (0..1_000).map(|number| entry(&format!("n{number}"))).collect();
        let page = script(&json!({"@context": context, "@graph": nodes}));
        let site = SiteName::parse("shop.example").unwrap();
        let document = page_entries(page.as_bytes(), &site).unwrap();
        assert!(document.len() <= DOCUMENT_BYTES_MAX + 2, "{} bytes", document.len());
        let entries = entries(&page);
        assert!((5..=10).contains(&entries.len()), "{} entries", entries.len());
        assert!(entries.iter().all(|entry| entry["@context"].as_object() == Some(&context)));
    }

    #[test]
    fn recognises_identifiers_under_every_name() {
        let prefixed = json!({"@context": {"a": "https://agenticresourcediscovery.org/ns#"}, "a:identifier": "urn:air:shop.example:x"});
        assert_eq!(entries(&script(&prefixed)), [prefixed]);
    }

    #[test]
    fn entries_of_one_page_are_bounded() {
        let many = Value::Array((0..100).map(|number| entry(&format!("n{number}"))).collect());
        assert_eq!(entries(&script(&many)).len(), ENTRIES_MAX);
        let scripts: String = (0..100).map(|number| script(&entry(&format!("n{number}")))).collect();
        assert_eq!(entries(&scripts).len(), SCRIPTS_MAX);
        let late = format!("{}{}", " ".repeat(PAGE_BYTES_MAX), script(&entry("late")));
        assert_eq!(entries(&late).len(), 0);
        let attributes = format!("<p {}>{}", "a='1' ".repeat(1_000), script(&entry("x")));
        assert_eq!(entries(&attributes).len(), 0);
    }
}
