//! Variables that override the file: `AGENTDEX_` and the key, `AGENTDEX_CRAWLER_` and a key of the table `[crawler]`.
//!
//! One that is a slip of the finger away from these is refused, since it would change nothing and nobody would know. Others
//! that begin so are none of ours: tests, compose files and orchestrators have their own.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::{SHARED_KEYS, SettingsError, TABLES};

const PREFIX: &str = "AGENTDEX_";

/// Names and values of variables.
pub type Variables = Vec<(String, String)>;

/// Letters that are missing, doubled, wrong or swapped in a name that is still taken for another; names of settings differ
/// from those of orchestrators (`AGENTDEX_SERVICE_HOST`) by more.
const SLIPS_MAX: usize = 2;

/// The variables of this process that are settings, or meant to be.
pub fn variables() -> Variables {
    let mut variables: Variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| place(name).is_some() || meant(name).is_some())
        .collect();
    variables.sort();
    variables
}

/// The table and the key that a variable sets; no table for what all programs share.
pub(crate) fn place(name: &str) -> Option<(Option<&'static str>, String)> {
    let key = name.strip_prefix(PREFIX)?.to_ascii_lowercase();
    if SHARED_KEYS.contains(&key.as_str()) {
        return Some((None, key));
    }
    TABLES.into_iter().find_map(|table| {
        let key = key.strip_prefix(&table.replace('.', "_"))?.strip_prefix('_')?;
        Some((Some(table), key.to_owned()))
    })
}

/// The setting that a variable without a place was meant for.
pub(crate) fn meant(name: &str) -> Option<String> {
    let rest = name.strip_prefix(PREFIX)?;
    let known = crate::keys().into_iter().map(|key| key.variable());
    let slips = |known: String| {
        let slips = strsim::damerau_levenshtein(rest, known.strip_prefix(PREFIX)?);
        (slips <= SLIPS_MAX).then_some((slips, known))
    };
    known.filter_map(slips).min_by_key(|(slips, _)| *slips).map(|(_, known)| known)
}

/// Puts a variable over what the file says. A variable has no type: what fits the key is taken, a text first, then what
/// TOML would read, then a list of texts between commas.
pub(crate) fn overlay<T: DeserializeOwned>(
    file: &Table,
    name: &str,
    text: &str,
) -> Result<(Table, T), SettingsError> {
    let mut first_error = None;
    for value in readings(text) {
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

fn readings(text: &str) -> impl Iterator<Item = Value> {
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
    let Some((table, key)) = place(name) else { return with };
    let mut inner = &mut with;
    for part in table.into_iter().flat_map(|table| table.split('.')) {
        let entry = inner.entry(part).or_insert_with(|| Value::Table(Table::new()));
        match entry {
            Value::Table(table) => inner = table,
            // another error says that this is no table
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
    fn variables_have_their_place() {
        for (name, place_of) in [
            ("AGENTDEX_DATA_DIR", Some((None, "data_dir"))),
            ("AGENTDEX_CRAWLER_CONTACT_EMAIL", Some((Some("crawler"), "contact_email"))),
            ("AGENTDEX_API_LISTEN", Some((Some("api"), "listen"))),
            ("AGENTDEX_API_LIMITS_READS_BURST", Some((Some("api.limits"), "reads_burst"))),
            ("AGENTDEX_TEST_POSTGRES", None),
            ("AGENTDEX_CONTACT_EMAIL", None),
            ("DATABASE_URL", None),
            ("AGENTDEX_SERVICE_HOST", None),
        ] {
            assert_eq!(place(name), place_of.map(|(table, key)| (table, key.to_owned())), "{name}");
        }
    }

    #[test]
    fn a_slip_of_the_finger_is_told_from_the_variables_of_others() {
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
            assert_eq!(meant(name).as_deref(), setting, "{name}");
        }
    }
}
