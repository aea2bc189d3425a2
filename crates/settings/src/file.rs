//! Reads the configuration file, overridden by the environment.

use std::path::Path;

use serde::de::DeserializeOwned;
use toml::Table;

use crate::environment::{misspelt, overlay, table_and_key};
use crate::{SettingsError, Variables};

/// Maximum bytes of the file. The documented file has about 8 KiB.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Loads the settings of the file, overridden by the variables. Without either, every setting has its default.
pub fn load<T: DeserializeOwned + Default>(
    path: Option<&Path>,
    variables: &Variables,
) -> Result<T, SettingsError> {
    let (mut table, mut settings) = match path {
        Some(path) => read(path)?,
        None => (Table::new(), T::default()),
    };
    for (name, text) in variables {
        if let (None, Some(setting)) = (table_and_key(name), misspelt(name)) {
            let reason = format!("no setting has this name: did you mean {setting}?");
            return Err(SettingsError::Variable { name: name.clone(), reason });
        }
        (table, settings) = overlay(&table, name, text)?;
    }
    Ok(settings)
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<(Table, T), SettingsError> {
    let unreadable = |source| SettingsError::Unreadable { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(unreadable)?.len() > FILE_BYTES_MAX {
        let reason = format!("it is larger than {FILE_BYTES_MAX} bytes");
        return Err(SettingsError::Invalid { path: path.to_owned(), line: 1, reason });
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let invalid = |error: toml::de::Error| SettingsError::invalid(path, &text, &error);
    Ok((toml::from_str(&text).map_err(invalid)?, toml::from_str(&text).map_err(invalid)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct File {
        data_dir: Option<String>,
        crawler: Crawler,
        api: Option<Table>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Crawler {
        delay: Option<String>,
        rate: Option<u32>,
        networks: Vec<String>,
    }

    fn loaded(text: &str, variables: &[(&str, &str)]) -> Result<File, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agentdex.toml");
        std::fs::write(&path, text).unwrap();
        let variables =
            variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        load(Some(&path), &variables).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_of_any_type_override_the_file() {
        let file = loaded(
            "data_dir = \"a\"\n[crawler]\ndelay = \"5s\"\nrate = 1\n",
            &[
                ("AGENTDEX_DATA_DIR", "b"),
                ("AGENTDEX_CRAWLER_DELAY", "0"),
                ("AGENTDEX_CRAWLER_NETWORKS", "10.0.0.0/8, 127.0.0.1"),
                ("AGENTDEX_CRAWLER_RATE", "7"),
                ("AGENTDEX_API_ANYTHING", "is the api's to judge"),
            ],
        )
        .unwrap();
        assert_eq!(file.data_dir.as_deref(), Some("b"));
        assert_eq!(file.crawler.delay.as_deref(), Some("0"));
        assert_eq!(file.crawler.rate, Some(7));
        assert_eq!(file.crawler.networks, ["10.0.0.0/8", "127.0.0.1"]);
    }

    #[test]
    fn errors_name_the_line_or_the_variable() {
        let error = loaded("\n[crawler]\ndelai = \"5s\"\n", &[]).unwrap_err();
        assert!(error.contains("line 3") && error.contains("did you mean `delay`?"), "{error}");
        let error = loaded("\n[crawler]\ndelay = 3\n", &[]).unwrap_err();
        assert!(error.contains("line 3: `delay`: invalid type: integer `3`"), "{error}");
        assert!(error.ends_with("expected a string, such as \"3s\""), "{error}");
        let error = loaded("[crawler]\nnetworks = \"10.0.0.0/8\"\n", &[]).unwrap_err();
        assert!(
            error.ends_with("line 2: `networks`: it is a list: write networks = [\"10.0.0.0/8\"]"),
            "{error}"
        );
        let error = loaded("", &[("AGENTDEX_CRAWLER_RATES", "1")]).unwrap_err();
        assert!(error.contains("AGENTDEX_CRAWLER_RATES") && error.contains("`rate`"), "{error}");
        let error = loaded("", &[("AGENTDEX_CRAWLR_RATE", "1")]).unwrap_err();
        assert!(
            error.contains("AGENTDEX_CRAWLR_RATE") && error.contains("mean AGENTDEX_CRAWLER_RATE?"),
            "{error}"
        );
        let error = loaded("", &[("AGENTDEX_CRAWLER_RATE", "many")]).unwrap_err();
        assert!(error.contains("AGENTDEX_CRAWLER_RATE"), "{error}");
        let error = load::<File>(Some(Path::new("/nowhere/agentdex.toml")), &Vec::new()).unwrap_err();
        assert!(error.to_string().contains("/nowhere/agentdex.toml"), "{error}");
    }
}
