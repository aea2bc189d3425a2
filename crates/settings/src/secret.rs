//! Reads secrets from separate files, which orchestrators and service managers provide.

use std::path::Path;

use crate::SettingsError;

/// Maximum bytes of a secret. A database URL with paths of certificates has a few hundred bytes.
const SECRET_BYTES_MAX: usize = 64 * 1024;

/// The content of the file that the setting `key` names, without the line break.
pub fn secret(key: &'static str, path: &Path) -> Result<String, SettingsError> {
    let text = std::fs::read_to_string(path).map_err(|source| SettingsError::Secret {
        key,
        path: path.to_owned(),
        source,
    })?;
    let invalid = |reason| SettingsError::NoSecret { key, path: path.to_owned(), reason };
    let secret = text.trim();
    match secret {
        "" => Err(invalid("is empty")),
        _ if text.len() > SECRET_BYTES_MAX => Err(invalid("is too long for a secret")),
        _ if secret.lines().count() > 1 => Err(invalid("has more than one line")),
        _ => Ok(secret.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_one_line_and_not_in_errors() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("url");
        std::fs::write(&path, "postgres://me:word@host/db\n").unwrap();
        assert_eq!(secret("database_url_file", &path).unwrap(), "postgres://me:word@host/db");
        for wrong in ["", "\n", "word\nword\n"] {
            std::fs::write(&path, wrong).unwrap();
            let error = secret("database_url_file", &path).unwrap_err().to_string();
            assert!(error.contains("database_url_file") && !error.contains("word"), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(secret("database_url_file", &path).unwrap_err().to_string().contains("cannot be read"));
    }
}
