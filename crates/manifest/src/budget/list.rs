//! Parses a page of a list whose entries have different authors, such as the publishers of a registry.
//!
//! Each entry has a budget of its own, so that one entry cannot make the others or the token of the next page unreadable. Text outside
//! the accepted entries is skipped in linear time, without recursion and without memory for values.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{BodyError, Limits, check};

/// Maximum number of other members of a page, such as the token of the next page. Published pages have one or two.
const OTHERS_MAX: usize = 16;

/// The limits of a page.
#[derive(Debug, Clone, Copy)]
pub struct PageLimits {
    /// Maximum number of entries; the rest is left out.
    pub entries: usize,
    /// The limits of each entry, and of each other member of the page.
    pub each: Limits,
}

/// A page without the entries that are over budget or not valid.
#[derive(Debug)]
pub struct ListPage {
    pub page: Value,
    /// Number of entries that were left out.
    pub left_out: usize,
}

/// Parses an untrusted page, a JSON object with one of these members as the list.
///
/// # Errors
///
/// If the text is no JSON object, or one of these members is no array.
pub fn parse_list_page(bytes: &[u8], lists: &[&str], limits: &PageLimits) -> Result<ListPage, BodyError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let page = PageReader { lists, limits }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(page)
}

/// The value of a JSON text within limits.
fn within(text: &RawValue, limits: &Limits) -> Option<Value> {
    check(text.get().as_bytes(), limits).ok()?;
    serde_json::from_str(text.get()).ok()
}

struct PageReader<'l> {
    lists: &'l [&'l str],
    limits: &'l PageLimits,
}

impl<'de> DeserializeSeed<'de> for PageReader<'_> {
    type Value = ListPage;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ListPage, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PageReader<'_> {
    type Value = ListPage;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<ListPage, A::Error> {
        let (mut page, mut others, mut left_out, mut has_list) = (Map::new(), 0, 0, false);
        while let Some(name) = members.next_key::<String>()? {
            if self.lists.contains(&name.as_str()) {
                // a second list would need memory of its own
                if std::mem::replace(&mut has_list, true) {
                    members.next_value::<IgnoredAny>()?;
                    continue;
                }
                let list = members.next_value_seed(ListReader { limits: self.limits })?;
                left_out += list.left_out;
                page.insert(name, Value::Array(list.entries));
            } else if others < OTHERS_MAX {
                others += 1;
                let value = within(members.next_value::<&RawValue>()?, &self.limits.each);
                page.extend(value.map(|value| (name, value)));
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(ListPage { page: Value::Object(page), left_out })
    }
}

struct ListReader<'l> {
    limits: &'l PageLimits,
}

struct Entries {
    entries: Vec<Value>,
    left_out: usize,
}

impl<'de> DeserializeSeed<'de> for ListReader<'_> {
    type Value = Entries;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Entries, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ListReader<'_> {
    type Value = Entries;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entries, A::Error> {
        let mut found = Entries { entries: Vec::new(), left_out: 0 };
        while let Some(text) = list.next_element::<&RawValue>()? {
            let entry = (found.entries.len() < self.limits.entries).then(|| within(text, &self.limits.each));
            match entry.flatten() {
                Some(entry) => found.entries.push(entry),
                None => found.left_out += 1,
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: PageLimits =
        PageLimits { entries: 3, each: Limits { depth: 8, nodes: 20, scalar_bytes: 100, tree_bytes: 4_096 } };

    fn parse(text: &str) -> Result<ListPage, BodyError> {
        parse_list_page(text.as_bytes(), &["servers"], &LIMITS)
    }

    #[test]
    fn an_entry_that_cannot_be_read_does_not_hide_the_others_or_the_next_page() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let wide = format!("[{}0]", "0,".repeat(1_000));
        let long = format!("\"{}\"", "x".repeat(1_000));
        for bad in [&deep, &wide, &long, "\"\\ud800\"", "1e999"] {
            let text =
                format!(r#"{{"servers":[{{"a":1}},{{"x":{bad}}},{{"b":2}}],"next":"t","more":{bad}}}"#);
            let read = parse(&text).unwrap();
            assert_eq!(read.page, json!({"servers": [{"a": 1}, {"b": 2}], "next": "t"}));
            assert_eq!(read.left_out, 1);
        }
    }

    #[test]
    fn a_page_has_a_limited_number_of_entries_and_other_members() {
        let others = (0..100).map(|at| format!(r#","m{at}":{at}"#)).collect::<Vec<_>>().concat();
        let read = parse(&format!(r#"{{"servers":[1,2,3,4,5],"servers":[6]{others}}}"#)).unwrap();
        assert_eq!((&read.page["servers"], read.left_out), (&json!([1, 2, 3]), 2));
        assert_eq!(read.page.as_object().unwrap().len(), 1 + OTHERS_MAX);
        for unusable in ["[]", "{", r#"{"servers":{}}"#, r#"{"servers":[]} x"#, "<html>"] {
            assert!(parse(unusable).is_err(), "{unusable}");
        }
    }
}
