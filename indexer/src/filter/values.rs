//! The values by which one request filters.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use manifest::CapabilityId;
use manifest::model::UnknownValue;

use super::FacetKey;

/// The parsed values of each filter; see [`Filters::add`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FilterValues(BTreeMap<FacetKey, BTreeSet<String>>);

/// The filters of one request. Empty means that anything matches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filters {
    pub values: FilterValues,
    /// Sites whose capabilities are left out.
    pub without_sites: Vec<String>,
    /// Whole names, native ids or identifiers; case-insensitive.
    pub names: Vec<String>,
    /// Only these capabilities. Like `without_sites`, it does not end a query whose cursors were issued with others.
    pub among: Option<BTreeSet<CapabilityId>>,
    pub invocable: Option<bool>,
    pub updated_since: Option<DateTime<Utc>>,
    pub first_seen_since: Option<DateTime<Utc>>,
}

impl Filters {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Also accepts documents with this value.
    pub fn add(&mut self, key: FacetKey, value: &str) -> Result<(), UnknownValue> {
        let value = (key.filter().parse)(value)?;
        self.values.0.entry(key).or_default().insert(value);
        Ok(())
    }

    /// [`Self::add`] for several values.
    pub fn with<T: AsRef<str>>(
        mut self,
        key: FacetKey,
        values: impl IntoIterator<Item = T>,
    ) -> Result<Self, UnknownValue> {
        for value in values {
            self.add(key, value.as_ref())?;
        }
        Ok(self)
    }

    /// The filters without the values of one, and whether it had any.
    pub fn without(&self, key: FacetKey) -> (Self, bool) {
        let mut others = self.clone();
        let was_set = others.values.0.remove(&key).is_some();
        (others, was_set)
    }

    /// The filters that have values, with the values in the spelling of the index.
    pub fn iter(&self) -> impl Iterator<Item = (FacetKey, &BTreeSet<String>)> {
        self.values.0.iter().map(|(key, values)| (*key, values))
    }

    /// The values of one filter.
    pub fn values(&self, key: FacetKey) -> impl Iterator<Item = &str> {
        self.values.0.get(&key).into_iter().flatten().map(String::as_str)
    }
}
