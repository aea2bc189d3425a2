//! All keys, read from the documented file. Each program checks its own keys. This list is for environment variables, and for messages
//! about misplaced keys. A test of `agentdex` compares the file with the keys of the programs.

/// The documented file, which contains every key with its default and its purpose.
const DOCUMENTED: &str = include_str!("../../../deploy/agentdex.toml");

/// A key in the documented file.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    /// Empty for keys that all programs share.
    pub table: &'static str,
    pub name: &'static str,
    /// Default value as TOML; `None` if the key has no default.
    pub default: Option<&'static str>,
}

impl Key {
    /// The environment variable that overrides the key.
    pub fn variable(&self) -> String {
        let table = if self.table.is_empty() { String::new() } else { format!("{}_", self.table) };
        format!("AGENTDEX_{}{}", table.replace('.', "_"), self.name).to_ascii_uppercase()
    }

    /// The location of the key in a file, for messages.
    pub(crate) fn location(&self) -> String {
        if self.table.is_empty() { "above the tables".to_owned() } else { format!("in `[{}]`", self.table) }
    }
}

/// The keys of the documented file, in its order: `key = default`, or `# key = example` if there is no default.
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
