//! `keys add`, `keys list` and `keys revoke`: API keys of clients.

use std::num::NonZeroU32;

use ::settings::command_line::with_flags;
use clap::Subcommand;
use policy::key::{IssuedKey, KEY_BYTES, KeyKind};
use store::{READER_KEYS_MAX, ReaderKey, ReaderKeyOutcome, Store};

use super::program_name::program;
use crate::output::{self, OutputFormat};
use crate::{UsageError, clock};

/// Maximum bytes of the name of a key.
const NAME_BYTES_MAX: usize = 64;

#[derive(Debug, Clone, Subcommand)]
pub enum KeysCommand {
    /// Make an API key with limits of its own, and print it once
    Add {
        /// Your name for the holder of the key: letters, digits, `.`, `_` and `-`
        name: String,
        /// Requests a second, sustained; a burst may have four times as many
        #[arg(long, value_name = "N", default_value = "500")]
        reads_per_second: NonZeroU32,
    },
    /// List the API keys
    List,
    /// Revoke an API key; the API refuses it within ten seconds
    Revoke {
        /// The name, as `keys list` prints it
        name: String,
    },
}

/// `location` are the flags of the data, which suggested commands repeat.
pub(super) async fn run(
    store: &Store,
    command: &KeysCommand,
    format: OutputFormat,
    location: &str,
) -> anyhow::Result<()> {
    match command {
        KeysCommand::Add { name, reads_per_second } => add(store, name, *reads_per_second, format).await,
        KeysCommand::List => list(store, format, location).await,
        KeysCommand::Revoke { name } => {
            if store.reader_key_revoke(name).await? {
                return Ok(output::line(&format!("the key of {name} is revoked"))?);
            }
            Err(UsageError(format!("no key is called {name}: `{} keys list` prints the names", program()))
                .into())
        }
    }
}

async fn add(
    store: &Store,
    name: &str,
    reads_per_second: NonZeroU32,
    format: OutputFormat,
) -> anyhow::Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_plain) {
        return Err(UsageError(format!(
            "\"{name}\" is not a name for a key: write up to {NAME_BYTES_MAX} letters, digits, '.', '_' and '-'"
        ))
        .into());
    }
    let IssuedKey { key, hash } = IssuedKey::new(KeyKind::Reader, &rand::random::<[u8; KEY_BYTES]>());
    let reader = ReaderKey { name: name.to_owned(), hash, reads_per_second, created_at: clock::now() };
    match store.reader_key_add(&reader).await? {
        ReaderKeyOutcome::Added if format == OutputFormat::Json => {
            let value = serde_json::json!({
                "name": name, "key": key, "reads_per_second": reads_per_second, "created_at": reader.created_at,
            });
            Ok(output::json(&value)?)
        }
        ReaderKeyOutcome::Added => Ok(output::text(&format!(
            "{key}\n\nThis is the key of {name}. It is not shown again: only its hash is stored.\n\
             Clients send it as Authorization: Bearer {key}\n"
        ))?),
        ReaderKeyOutcome::NameTaken => Err(UsageError(format!(
            "{name} has a key: revoke it with `{} keys revoke {name}`, or choose another name",
            program()
        ))
        .into()),
        ReaderKeyOutcome::Full => Err(UsageError(format!(
            "there are {READER_KEYS_MAX} keys, which is the maximum: revoke one with `{} keys revoke NAME`",
            program()
        ))
        .into()),
    }
}

async fn list(store: &Store, format: OutputFormat, location: &str) -> anyhow::Result<()> {
    let keys = store.reader_keys().await?;
    if format == OutputFormat::Json {
        let listed: Vec<_> = keys
            .iter()
            .map(|key| {
                serde_json::json!({
                    "name": key.name, "reads_per_second": key.reads_per_second, "created_at": key.created_at,
                })
            })
            .collect();
        return Ok(output::json(&serde_json::Value::from(listed))?);
    }
    if keys.is_empty() {
        let none = format!("there are no API keys: `{} keys add NAME` makes one", program());
        return Ok(output::line(&with_flags(&none, location))?);
    }
    for key in keys {
        output::line(&format!(
            "{}  {} requests a second, since {}",
            key.name,
            key.reads_per_second,
            key.created_at.format("%Y-%m-%d")
        ))?;
    }
    Ok(())
}
