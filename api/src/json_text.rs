//! JSON objects as text, which take far less memory than a tree of values.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::problem::Problem;

/// The text of a JSON object.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(crate) struct ObjectText(Box<RawValue>);

impl ObjectText {
    /// The text of a value that serialises as an object.
    pub(crate) fn of<T: Serialize>(value: &T) -> Result<Self, Problem> {
        to_raw_value(value).map(Self).map_err(|error| Problem::internal(&error))
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Bytes of the text.
    pub(crate) fn len(&self) -> usize {
        self.as_str().len()
    }

    /// Keeps only the members with these names, or all if no name is given.
    pub(crate) fn only(self, names: &[String]) -> Result<Self, Problem> {
        if names.is_empty() {
            return Ok(self);
        }
        let mut members = self.members()?;
        members.0.retain(|(name, _)| names.contains(name));
        Self::of(&members)
    }

    /// The members of both objects.
    pub(crate) fn with(&self, more: &Self) -> Result<Self, Problem> {
        let mut members = self.members()?;
        members.0.extend(more.members()?.0);
        Self::of(&members)
    }

    /// The text of a member, if it has one.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Problem> {
        let members = self.members()?;
        let member = members.0.into_iter().find(|(known, _)| known == name);
        Ok(member.and_then(|(_, value)| serde_json::from_str(value.get()).ok()))
    }

    /// Adds a text to an object among the members. An object without it stays as it is.
    pub(crate) fn with_text_in(&self, object: &str, name: &str, text: &str) -> Result<Self, Problem> {
        let internal = |error: serde_json::Error| Problem::internal(&error);
        let mut members = self.members()?;
        let Some((_, value)) = members.0.iter_mut().find(|(known, _)| known == object) else {
            return Ok(self.clone());
        };
        let text = to_raw_value(text).map_err(internal)?;
        let mut inner: Members<'_> = serde_json::from_str(value.get()).map_err(internal)?;
        inner.0.push((name.to_owned(), &text));
        let inner = to_raw_value(&inner).map_err(internal)?;
        *value = &inner;
        Self::of(&members)
    }

    fn members(&self) -> Result<Members<'_>, Problem> {
        serde_json::from_str(self.as_str()).map_err(|error| Problem::internal(&error))
    }

    /// Serialises the members into an object that has further members.
    pub(crate) fn flattened<S: Serializer>(object: &Self, serializer: S) -> Result<S::Ok, S::Error> {
        let members: Members<'_> = serde_json::from_str(object.as_str()).map_err(S::Error::custom)?;
        members.serialize(serializer)
    }
}

/// The members of an object in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfObject;

        impl<'de> Visitor<'de> for OfObject {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(OfObject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_are_joined_and_reduced_as_text() {
        let object = |value| ObjectText::of(&value).unwrap();
        let one = || object(json!({"a": {"b": [1, "}"]}, "\"c\\": null}));
        let both = one().with(&object(json!({"d": 1.50}))).unwrap();
        assert_eq!(both.as_str(), r#"{"a":{"b":[1,"}"]},"\"c\\":null,"d":1.5}"#);
        assert_eq!(one().with(&object(json!({}))).unwrap().as_str(), one().as_str());
        assert_eq!(object(json!({})).with(&one()).unwrap().as_str(), one().as_str());
        let only = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            one().only(&names).unwrap().as_str().to_owned()
        };
        assert_eq!(only(&[]), one().as_str());
        assert_eq!(only(&["a", "x"]), r#"{"a":{"b":[1,"}"]}}"#);
        assert_eq!(only(&["\"c\\"]), r#"{"\"c\\":null}"#);
        assert_eq!(only(&["x"]), "{}");
        assert_eq!(object(json!({"a": "b", "c": 1})).text("a").unwrap().as_deref(), Some("b"));
        assert_eq!(object(json!({"a": "b", "c": 1})).text("c").unwrap(), None);
        let more = one().with_text_in("a", "x", "\"y").unwrap();
        assert_eq!(more.as_str(), r#"{"a":{"b":[1,"}"],"x":"\"y"},"\"c\\":null}"#);
        assert_eq!(one().with_text_in("z", "x", "y").unwrap().as_str(), one().as_str());
    }
}
