//! What a directory contains, whether or not it is a model.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use crate::config::{CONFIG, Config, TOKENIZER, WEIGHTS, kind};
use crate::files::Files;

/// Files without which a directory is no model.
const REQUIRED: [&str; 3] = [CONFIG, TOKENIZER, WEIGHTS];
/// Beginnings of the names of licence files, in lower case.
const LICENCE_NAMES: [&str; 3] = ["licen", "copying", "notice"];
/// The description of a published model, which may begin with a block of YAML that names the licence.
const CARD: &str = "README.md";
/// Bytes of the description that are read: its YAML stands at the beginning.
const CARD_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of entries of the directory that are read; a model has about twenty.
const ENTRIES_MAX: usize = 1_000;
/// Maximum number of characters of a stated licence; identifiers are shorter.
const LICENCE_CHARS_MAX: usize = 64;

/// What a directory contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The `model_type` of its `config.json`.
    pub kind: Option<String>,
    /// Length of a vector.
    pub dimension: Option<usize>,
    pub layers: Option<usize>,
    /// Maximum number of tokens of one text that are read.
    pub tokens_max: Option<usize>,
    /// Size of the weights.
    pub weights_bytes: Option<u64>,
    /// Names of licence files.
    pub licence_files: Vec<String>,
    /// The licence that the description of the model states, such as `apache-2.0`.
    pub licence: Option<String>,
    /// Names of required files that do not exist.
    pub missing: Vec<&'static str>,
}

/// Reads the descriptions in a directory, but no weights. What cannot be read is left out.
pub fn inspect(dir: &Path) -> Inspection {
    let missing = REQUIRED.into_iter().filter(|name| !dir.join(name).is_file()).collect();
    let mut files = Files::in_dir(dir);
    let description = files.description(CONFIG).ok();
    let config = Config::read(&mut files).ok();
    Inspection {
        kind: description.as_ref().map(|description| kind(description).to_owned()),
        dimension: config.as_ref().map(|config| config.hidden_size),
        layers: config.as_ref().map(|config| config.num_hidden_layers),
        tokens_max: config.as_ref().map(Config::tokens_max),
        weights_bytes: fs::metadata(dir.join(WEIGHTS)).ok().map(|metadata| metadata.len()),
        licence_files: licence_files(dir),
        licence: stated_licence(dir),
        missing,
    }
}

fn licence_files(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().take(ENTRIES_MAX).flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let is_licence = |name: &String| {
        let name = name.to_lowercase();
        LICENCE_NAMES.iter().any(|begin| name.starts_with(begin))
    };
    let mut names: Vec<String> = names.filter(is_licence).collect();
    names.sort();
    names
}

/// The value of `license:` in the YAML at the beginning of the description.
fn stated_licence(dir: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    fs::File::open(dir.join(CARD)).ok()?.take(CARD_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let value = lines
        .take_while(|line| line.trim_end() != "---")
        .find_map(|line| line.strip_prefix("license:"))?
        .trim()
        .trim_matches(['"', '\'']);
    let kept: String = value.chars().filter(|c| !c.is_control()).take(LICENCE_CHARS_MAX).collect();
    (!kept.is_empty()).then_some(kept)
}
