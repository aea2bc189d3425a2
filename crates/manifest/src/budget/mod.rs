//! Cost limits of one document: depth, values, bytes of scalars, bytes of the tree.
//!
//! The budget is counted in one linear pass over JSON text, or event by event in a streaming parser (YAML), always before the value is
//! built. Counting allocates one small entry for each open container. A document over budget is refused with an error that states the limit
//! and the measured value.

mod json;
mod list;
mod memory;
mod writer;

use std::fmt;
use std::mem::size_of;

use serde_json::{Map, Value};

pub(crate) use json::check_json;
pub use json::{BodyError, check, parse_within_budget};
pub use list::{ListPage, PageLimits, parse_list_page};
pub use memory::manifest_bytes;
pub(crate) use memory::memory_of;
pub use writer::LimitedWriter;

/// The limits of one kind of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Nesting of containers.
    pub depth: usize,
    /// Values: every scalar, array and object; names of members do not count.
    pub nodes: usize,
    /// Bytes of strings, numbers and names as written.
    pub scalar_bytes: usize,
    /// Bytes that the tree of values will take in memory, estimated from above.
    pub tree_bytes: usize,
}

/// Documents that sites publish.
///
/// - depth: values below 64 levels are dropped and reported one by one; beyond 8,192 levels even that is too expensive.
/// - nodes: the largest published OpenAPI documents (12 MB) contain about 350,000 values.
/// - scalar bytes: no more than the largest document that is read.
/// - tree bytes: reading one document may take 128 MiB; this leaves 48 MiB for capabilities, findings and the parser itself.
pub(crate) const DOCUMENT: Limits = Limits {
    depth: 8_192,
    nodes: 600_000,
    scalar_bytes: crate::document::DOCUMENT_BYTES_MAX,
    tree_bytes: 80 * 1_024 * 1_024,
};

/// Documents in YAML. The YAML parser recurses, so it has the same depth limit as JSON values.
pub(crate) const YAML: Limits = Limits { depth: crate::json::DEPTH_MAX, nodes: 400_000, ..DOCUMENT };

/// Maximum number of values of a manifest other than OpenAPI: the largest published one has 1,700, and this allows twelve for each of the
/// 5,000 capabilities that are read.
///
/// A small value can become a large entry of the model, so this bounds the model too: 2 KiB a value.
pub(crate) const MANIFEST_NODES_MAX: usize = 60_000;

/// Response bodies of registries and agents.
///
/// - depth: the default recursion limit of `serde_json`.
/// - nodes and scalar bytes: ten times a registry page with a thousand entries.
/// - tree bytes: at most 32 MiB for a response.
pub const BODY: Limits =
    Limits { depth: 128, nodes: 200_000, scalar_bytes: 4 * 1_024 * 1_024, tree_bytes: 32 * 1_024 * 1_024 };

/// Request bodies: searches, tool calls.
///
/// - tree bytes: the text of the largest document, and 1 MiB for other values.
pub const REQUEST: Limits = Limits { tree_bytes: 5 * 1_024 * 1_024, ..BODY };

/// The limit that a document exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    Depth,
    Nodes,
    ScalarBytes,
    TreeBytes,
    /// Bytes of a document in YAML.
    YamlBytes,
    /// Values repeated by YAML aliases.
    Repeated,
    /// Characters that the YAML parser reads before it returns the next event.
    Lookahead,
}

impl Measure {
    const fn description(self) -> &'static str {
        match self {
            Self::Depth => "levels of nesting",
            Self::Nodes => "values",
            Self::ScalarBytes => "bytes of text and numbers",
            Self::TreeBytes => "bytes of memory for its values",
            Self::YamlBytes => "bytes of YAML",
            Self::Repeated => "values that aliases repeat",
            Self::Lookahead => "characters of YAML before the next value is known",
        }
    }
}

/// A document is over budget. `measured` is the count when counting stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverBudget {
    pub measure: Measure,
    pub limit: usize,
    pub measured: usize,
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { measure, limit, measured } = self;
        write!(f, "the document has at least {measured} {}; the limit is {limit}", measure.description())
    }
}

impl std::error::Error for OverBudget {}

/// Bytes of one value in an array.
const VALUE_BYTES: usize = size_of::<Value>();
/// Bytes of one member of an object: hash, name and value.
const MEMBER_BYTES: usize = size_of::<String>() + VALUE_BYTES + size_of::<usize>();
/// Bytes of one bucket of the hash table: an index and a control byte.
const BUCKET_BYTES: usize = size_of::<usize>() + 1;
/// Bytes of the control group at the end of a hash table.
const TABLE_BYTES: usize = 16;
/// Smallest block that allocators return.
const BLOCK_BYTES: usize = 16;

/// One open container and its cost so far.
#[derive(Debug, Clone, Copy)]
struct Open {
    is_object: bool,
    children: usize,
    /// Number of children that fit before the container grows.
    capacity: usize,
}

impl Open {
    /// Counts one child and returns the bytes by which the container grows for it.
    const fn add(&mut self) -> usize {
        self.children += 1;
        if self.children <= self.capacity {
            return 0;
        }
        let before = self.bytes();
        self.capacity = if self.is_object {
            // Hash tables have 4, 8, 16… buckets and are at most seven eighths full.
            match self.capacity {
                0 => 3,
                3 => 7,
                other => other * 2,
            }
        } else if self.capacity == 0 {
            4
        } else {
            self.capacity * 2
        };
        self.bytes() - before
    }

    const fn bytes(&self) -> usize {
        if self.capacity == 0 {
            0
        } else if self.is_object {
            let buckets = match self.capacity {
                3 => 4,
                7 => 8,
                other => other / 7 * 8,
            };
            self.capacity * MEMBER_BYTES + buckets * BUCKET_BYTES + TABLE_BYTES
        } else {
            self.capacity * VALUE_BYTES
        }
    }
}

/// Counts the cost of a document while it is read, and fails at the first exceeded limit.
#[derive(Debug)]
pub(crate) struct Meter {
    limits: Limits,
    open: Vec<Open>,
    spent: Cost,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) nodes: usize,
    pub(crate) scalar_bytes: usize,
    pub(crate) tree_bytes: usize,
}

impl Cost {
    /// The cost since an earlier state.
    pub(crate) const fn since(self, before: Self) -> Self {
        Self {
            nodes: self.nodes - before.nodes,
            scalar_bytes: self.scalar_bytes - before.scalar_bytes,
            tree_bytes: self.tree_bytes - before.tree_bytes,
        }
    }
}

impl Meter {
    pub(crate) const fn new(limits: Limits) -> Self {
        let spent = Cost { nodes: 0, scalar_bytes: 0, tree_bytes: VALUE_BYTES };
        Self { limits, open: Vec::new(), spent }
    }

    pub(crate) const fn spent(&self) -> Cost {
        self.spent
    }

    /// Begins an array.
    pub(crate) fn open_list(&mut self) -> Result<(), OverBudget> {
        self.enter(false)
    }

    /// Begins an object.
    pub(crate) fn open_object(&mut self) -> Result<(), OverBudget> {
        self.enter(true)
    }

    /// Checks the depth of a value with `height` levels at the current position.
    pub(crate) const fn check_depth(&self, height: usize) -> Result<(), OverBudget> {
        let (limit, measured) = (self.limits.depth, self.open.len() + height);
        if measured > limit {
            return Err(OverBudget { measure: Measure::Depth, limit, measured });
        }
        Ok(())
    }

    /// Ends the innermost container and returns the number of its children.
    pub(crate) fn close(&mut self) -> usize {
        self.open.pop().map_or(0, |open| open.children)
    }

    /// Counts a string, number or constant.
    pub(crate) fn scalar(&mut self, bytes: usize, is_text: bool) -> Result<(), OverBudget> {
        let kept = if is_text { block_bytes(bytes) } else { 0 };
        let in_list = self.open.last_mut().filter(|open| !open.is_object).map_or(0, Open::add);
        self.charge(Cost { nodes: 1, scalar_bytes: bytes, tree_bytes: kept + in_list })
    }

    /// Counts the name of a member of the innermost object.
    pub(crate) fn name(&mut self, bytes: usize) -> Result<(), OverBudget> {
        let grown = self.open.last_mut().map_or(0, Open::add);
        self.charge(Cost { nodes: 0, scalar_bytes: bytes, tree_bytes: block_bytes(bytes) + grown })
    }

    /// Adds a cost and checks the limits.
    pub(crate) fn charge(&mut self, cost: Cost) -> Result<(), OverBudget> {
        let spent = &mut self.spent;
        spent.nodes = spent.nodes.saturating_add(cost.nodes);
        spent.scalar_bytes = spent.scalar_bytes.saturating_add(cost.scalar_bytes);
        spent.tree_bytes = spent.tree_bytes.saturating_add(cost.tree_bytes);
        let (spent, limits) = (&self.spent, &self.limits);
        let is_within = spent.nodes <= limits.nodes
            && spent.scalar_bytes <= limits.scalar_bytes
            && spent.tree_bytes <= limits.tree_bytes;
        if is_within { Ok(()) } else { self.check() }
    }

    /// The first limit that is exceeded.
    fn check(&self) -> Result<(), OverBudget> {
        let exceeded = [
            (Measure::Nodes, self.limits.nodes, self.spent.nodes),
            (Measure::ScalarBytes, self.limits.scalar_bytes, self.spent.scalar_bytes),
            (Measure::TreeBytes, self.limits.tree_bytes, self.spent.tree_bytes),
        ];
        let exceeded = exceeded.into_iter().find(|(_, limit, measured)| measured > limit);
        exceeded.map_or(Ok(()), |(measure, limit, measured)| Err(OverBudget { measure, limit, measured }))
    }

    fn enter(&mut self, is_object: bool) -> Result<(), OverBudget> {
        let in_list = self.open.last_mut().filter(|open| !open.is_object).map_or(0, Open::add);
        self.charge(Cost { nodes: 1, scalar_bytes: 0, tree_bytes: in_list })?;
        self.open.push(Open { is_object, children: 0, capacity: 0 });
        let (limit, measured) = (self.limits.depth, self.open.len());
        if measured > limit {
            return Err(OverBudget { measure: Measure::Depth, limit, measured });
        }
        Ok(())
    }
}

/// Bytes of the block for a text of `bytes` bytes.
const fn block_bytes(bytes: usize) -> usize {
    bytes.next_multiple_of(BLOCK_BYTES)
}

/// Bytes of a copy of a value. Counting stops soon after `limit`, which bounds the work.
pub(crate) fn bytes_of(value: &Value, limit: usize) -> usize {
    let inner = match value {
        Value::String(text) => block_bytes(text.len()),
        Value::Array(items) => bytes_of_items(items, limit),
        Value::Object(members) => return VALUE_BYTES + bytes_of_members(members, limit),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    VALUE_BYTES + inner
}

/// Bytes of a copy of the members of an object, as [`bytes_of`].
pub(crate) fn bytes_of_members(members: &Map<String, Value>, limit: usize) -> usize {
    let mut bytes = 0;
    for (name, value) in members {
        if bytes > limit {
            break;
        }
        let own = MEMBER_BYTES - VALUE_BYTES + BUCKET_BYTES + block_bytes(name.len());
        bytes += own + bytes_of(value, limit - bytes.min(limit));
    }
    bytes
}

fn bytes_of_items(items: &[Value], limit: usize) -> usize {
    let mut bytes = 0;
    for value in items {
        if bytes > limit {
            break;
        }
        bytes += bytes_of(value, limit - bytes);
    }
    bytes
}

#[cfg(test)]
mod tests;
