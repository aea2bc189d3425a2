//! The registers: their format, their example, and the members of an example.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::support::Case;

/// Registers in the order of docs/CONFORMANCE.md.
const REGISTERS: [&str; 9] =
    ["awp", "atp", "woa", "agents_json", "arws", "a2a", "ard", "mcp_cards", "mcp_registry"];

/// The clauses of one specification.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Register {
    /// Name and version: `AWP 0.1`.
    pub name: String,
    /// Folder below `crates/manifest/fixtures` with a complete example.
    pub example: String,
    #[serde(rename = "clause")]
    pub clauses: Vec<Clause>,
}

/// One MUST, SHOULD, MAY, field, enum value or requirement for consumers, paraphrased.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Clause {
    /// Section of the specification: `§3.2`.
    pub section: String,
    pub level: Level,
    pub says: String,
    pub agentdex: Support,
    /// Details of how agentdex supports the clause, or the reason why it does not.
    #[serde(default)]
    pub how: String,
    /// JSON pointer of the member in the example. `*` is any name or position.
    pub member: Option<String>,
    /// Further members of the clause, each with the value of the normalised manifest that it determines, which may be empty. The
    /// expectations of the clause apply to them, except for `contradict`.
    #[serde(default)]
    pub members: BTreeMap<String, String>,
    /// Members below this one are free-form and have no clauses.
    #[serde(default)]
    pub open: bool,
    /// Expected finding when the member is removed, has another type, or is empty.
    pub remove: Option<Expected>,
    pub mistype: Option<Expected>,
    pub empty: Option<Expected>,
    #[serde(default)]
    pub contradict: Vec<Contradiction>,
    /// JSON pointer of the value in the normalised manifest that the member determines.
    pub kept: Option<String>,
    /// `file::test`, the file relative to the repository.
    #[serde(default)]
    pub tests: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contradiction {
    /// The value, as JSON.
    pub value: String,
    pub expect: Expected,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Must,
    Should,
    May,
    Field,
    Consumer,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Support {
    Reads,
    Reports,
    Obeys,
    Follows,
    Serves,
    DoesNot,
}

/// The level of the finding, or `accepted`: no finding of level should or must at the member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Expected {
    Must,
    Should,
    May,
    Note,
    Accepted,
}

impl Register {
    /// The registers of all specifications.
    pub(crate) fn all() -> Vec<Self> {
        let path = |name: &&str| repository().join(format!("tests/conformance/{name}.toml"));
        let read = |path: PathBuf| {
            let text =
                fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        REGISTERS.iter().map(path).map(read).collect()
    }

    /// The complete example.
    pub(crate) fn example(&self) -> Case {
        let named = |case: &Case| case.folder.ends_with(&self.example);
        Case::all().into_iter().find(named).unwrap_or_else(|| panic!("no fixture {}", self.example))
    }
}

impl Clause {
    /// The members of the clause, and the values of the normalised manifest that they determine.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let first = self.member.as_deref().map(|member| (member, self.kept.as_deref()));
        let further = self.members.iter().map(|(member, kept)| (member.as_str(), kept.as_str()));
        first
            .into_iter()
            .chain(further.map(|(member, kept)| (member, Some(kept).filter(|kept| !kept.is_empty()))))
    }

    /// Whether this clause is about a member, or about a free-form member above it.
    pub(crate) fn covers(&self, member: &str) -> bool {
        let steps = |pointer: &str| pointer.split('/').map(str::to_owned).collect::<Vec<_>>();
        let member = steps(member);
        self.members().any(|(pattern, _)| {
            let pattern = steps(pattern);
            (pattern.len() == member.len() || self.open && pattern.len() < member.len())
                && pattern.iter().zip(&member).all(|(wanted, name)| wanted == "*" || wanted == name)
        })
    }
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether `file::test` names a function of a file. A folder of fixtures is a test too: see `fixtures.rs`.
pub(crate) fn test_exists(test: &str) -> bool {
    let Some((file, name)) = test.split_once("::") else {
        return test.starts_with("crates/manifest/fixtures/") && repository().join(test).is_dir();
    };
    fs::read_to_string(repository().join(file)).is_ok_and(|text| text.contains(&format!("fn {name}(")))
}

/// The pointers of all members of a value; positions are `*`.
pub(crate) fn members(value: &Value, pointer: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, member) in object {
                let pointer = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                found.insert(pointer.clone());
                members(member, &pointer, found);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                members(element, &format!("{pointer}/*"), found);
            }
        }
        _ => {}
    }
}

/// The pointers in a document that a pattern covers, in the order of the document.
pub(crate) fn resolve(pattern: &str, value: &Value) -> Vec<String> {
    let mut pointers = vec![String::new()];
    for step in pattern.split('/').skip(1) {
        pointers = pointers
            .iter()
            .flat_map(|pointer| {
                let names: Vec<String> = match value.pointer(pointer) {
                    Some(Value::Object(object)) if step == "*" => {
                        object.keys().map(|name| name.replace('~', "~0").replace('/', "~1")).collect()
                    }
                    Some(Value::Array(elements)) if step == "*" => {
                        (0..elements.len()).map(|position| position.to_string()).collect()
                    }
                    Some(_) => vec![step.to_owned()],
                    None => Vec::new(),
                };
                names.into_iter().map(move |name| format!("{pointer}/{name}"))
            })
            .collect();
    }
    pointers.into_iter().filter(|pointer| value.pointer(pointer).is_some()).collect()
}
