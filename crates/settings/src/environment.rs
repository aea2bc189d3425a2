//! Environment variables that override the file: `AGENTDEX_` followed by the key, or `AGENTDEX_CRAWLER_` followed by a key of the table
//! `[crawler]`.
//!
//! A variable with a name that is similar to that of a setting is an error, because it would silently have no effect. Other variables with
//! this prefix are ignored, because they belong to tests, compose files and orchestrators.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::{SettingsError, keys};

const PREFIX: &str = "AGENTDEX_";

/// Names and values of variables.
pub type Variables = Vec<(String, String)>;

/// Edit distance up to which a name counts as a misspelt setting. Variables of orchestrators (`AGENTDEX_SERVICE_HOST`) have larger
/// distances.
pub(crate) const DISTANCE_MAX: usize = 2;

/// A variable of this process; `None` if it is absent or not UTF-8.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var_os(name)?.into_string().ok()
}

/// The variables of this process that are settings or misspelt settings.
pub fn variables() -> Variables {
    let mut variables: Variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| table_and_key(name).is_some() || misspelt(name).is_some())
        .collect();
    variables.sort();
    variables
}

/// The table and the key that a variable sets. The table is `None` for keys that all programs share.
pub(crate) fn table_and_key(name: &str) -> Option<(Option<&'static str>, String)> {
    let key = name.strip_prefix(PREFIX)?.to_ascii_lowercase();
    let known = keys();
    if known.iter().any(|known| known.table.is_empty() && known.name == key) {
        return Some((None, key));
    }
    let in_table = known.iter().filter(|known| !known.table.is_empty()).filter_map(|known| {
        let key = key.strip_prefix(&known.table.replace('.', "_"))?.strip_prefix('_')?;
        Some((Some(known.table), key.to_owned()))
    });
    // the shortest key: `api.limits` takes precedence over `api`
    in_table.min_by_key(|(_, key)| key.len())
}

/// The variable of a setting that the name probably misspells.
pub(crate) fn misspelt(name: &str) -> Option<String> {
    let rest = name.strip_prefix(PREFIX)?;
    let known = keys().into_iter().map(|key| key.variable());
    let near = |known: String| {
        let distance = strsim::damerau_levenshtein(rest, known.strip_prefix(PREFIX)?);
        (distance <= DISTANCE_MAX).then_some((distance, known))
    };
    known.filter_map(near).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// Whether a word may be a misspelling of another one.
pub(crate) fn is_misspelling(word: &str, known: &str) -> bool {
    strsim::damerau_levenshtein(word, known) <= DISTANCE_MAX
}

/// The known word that a word probably misspells: the first of the most similar ones, at most `edits_max` letters away.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>, edits_max: usize) -> Option<&'a str> {
    let distances = known.map(|known| (strsim::damerau_levenshtein(word, known), known));
    let nearest =
        distances.filter(|(distance, _)| *distance <= edits_max).min_by_key(|(distance, _)| *distance);
    nearest.map(|(_, known)| known)
}

/// Sets the value of a variable in the file's table. A variable has no type, so its text is tried as a string, then as a TOML value, then
/// as a comma-separated list of strings.
pub(crate) fn overlay<T: DeserializeOwned>(
    file: &Table,
    name: &str,
    text: &str,
) -> Result<(Table, T), SettingsError> {
    let mut first_error = None;
    for value in values(text) {
        let with = set(file, name, value);
        match T::deserialize(with.clone()) {
            Ok(settings) => return Ok((with, settings)),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    match first_error {
        Some(error) => Err(SettingsError::variable(name, &error)),
        None => Err(SettingsError::Variable { name: name.to_owned(), reason: "it has no value".to_owned() }),
    }
}

fn values(text: &str) -> impl Iterator<Item = Value> {
    let literal = toml::from_str::<Table>(&format!("value = {text}")).ok();
    let list = text.split(',').map(|part| Value::String(part.trim().to_owned())).collect();
    [
        Some(Value::String(text.to_owned())),
        literal.and_then(|mut table| table.remove("value")),
        Some(Value::Array(list)),
    ]
    .into_iter()
    .flatten()
}

fn set(file: &Table, name: &str, value: Value) -> Table {
    let mut with = file.clone();
    let Some((table, key)) = table_and_key(name) else { return with };
    let mut inner = &mut with;
    for part in table.into_iter().flat_map(|table| table.split('.')) {
        let entry = inner.entry(part).or_insert_with(|| Value::Table(Table::new()));
        match entry {
            Value::Table(table) => inner = table,
            // deserialising reports that this is not a table
            _ => return with,
        }
    }
    inner.insert(key, value);
    with
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_variables_to_tables_and_keys() {
        for (name, expected) in [
            ("AGENTDEX_DATA_DIR", Some((None, "data_dir"))),
            ("AGENTDEX_CRAWLER_CONTACT_EMAIL", Some((Some("crawler"), "contact_email"))),
            ("AGENTDEX_API_LISTEN", Some((Some("api"), "listen"))),
            ("AGENTDEX_API_LIMITS_READS_BURST", Some((Some("api.limits"), "reads_burst"))),
            ("AGENTDEX_TEST_POSTGRES", None),
            ("AGENTDEX_CONTACT_EMAIL", None),
            ("DATABASE_URL", None),
            ("AGENTDEX_SERVICE_HOST", None),
        ] {
            assert_eq!(table_and_key(name), expected.map(|(table, key)| (table, key.to_owned())), "{name}");
        }
    }

    #[test]
    fn recognises_misspelt_settings_among_other_variables() {
        for (name, setting) in [
            ("AGENTDEX_DATADIR", Some("AGENTDEX_DATA_DIR")),
            ("AGENTDEX_DATABASE_ULR", Some("AGENTDEX_DATABASE_URL")),
            ("AGENTDEX_CRAWLR_DELAY", Some("AGENTDEX_CRAWLER_DELAY")),
            ("AGENTDEX_LOG_LEVELL", Some("AGENTDEX_LOG_LEVEL")),
            ("AGENTDEX_CONFIG", None),
            ("AGENTDEX_SEEDS", None),
            ("AGENTDEX_CONTACT_EMAIL", None),
            ("AGENTDEX_TEST_POSTGRES", None),
            ("AGENTDEX_PORT", None),
            ("AGENTDEX_SERVICE_PORT", None),
            ("AGENTDEX_PORT_8080_TCP_ADDR", None),
        ] {
            assert_eq!(misspelt(name).as_deref(), setting, "{name}");
        }
    }
}
