//! The keys that there are, read from the documented file: the programs know their own, and this list tells where a key
//! belongs that stands somewhere else. A test of `agentdex` holds the file against what the programs know.

/// Every key with its default and why.
pub const DOCUMENTED: &str = include_str!("../../../deploy/agentdex.toml");

/// One line of the documented file.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    /// Empty for what all programs share.
    pub table: &'static str,
    pub name: &'static str,
    /// As TOML; nothing where the key has no default.
    pub default: Option<&'static str>,
}

impl Key {
    /// The environment variable that overrides it.
    pub fn variable(&self) -> String {
        let table = if self.table.is_empty() { String::new() } else { format!("{}_", self.table) };
        format!("AGENTDEX_{}{}", table.replace('.', "_"), self.name).to_ascii_uppercase()
    }

    /// Where it stands in a file, in words.
    pub(crate) fn place(&self) -> String {
        if self.table.is_empty() { "above the tables".to_owned() } else { format!("in `[{}]`", self.table) }
    }
}

/// The keys of the documented file, in its order: `key = default`, or `# key = example` where there is no default.
pub fn keys() -> Vec<Key> {
    let mut table = "";
    let mut keys = Vec::new();
    for line in DOCUMENTED.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            table = name;
            continue;
        }
        let Some((name, value)) = line.split_once(" = ") else { continue };
        let (name, is_example) = name.strip_prefix("# ").map_or((name, false), |name| (name, true));
        if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
            keys.push(Key { table, name, default: (!is_example).then_some(value) });
        }
    }
    keys
}
