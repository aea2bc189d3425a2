//! JSON objects as text. Unlike a tree of values, an object takes as much memory as it has bytes.

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

    fn members(&self) -> Result<Members<'_>, Problem> {
        serde_json::from_str(self.as_str()).map_err(|error| Problem::internal(&error))
    }

    /// Serialises the members, for an object that has others as well.
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
    }
}
