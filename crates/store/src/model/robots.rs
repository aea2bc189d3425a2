//! The robots.txt verdict of a host.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use manifest::Host;
use policy::RobotsKind;
use serde::{Deserialize, Serialize};

/// The robots.txt of a host: its rules, or why there are none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RobotsRecord {
    pub host: Host,
    pub kind: RobotsKind,
    /// Why there is no file, as text.
    pub cause: Option<String>,
    /// HTTP status of the answer.
    pub status: Option<u16>,
    /// The file, decoded. Not loaded with the site if the file is long or belongs to one of its other hosts; [`crate::Store::robots_body`]
    /// reads it then.
    #[serde(skip_serializing_if = "Option::is_none", default, with = "base64")]
    pub body: Option<Arc<[u8]>>,
    pub fetched_at: DateTime<Utc>,
    /// When it expires and has to be requested again (RFC 9309 §2.4).
    pub expires_at: DateTime<Utc>,
    /// Failed attempts in a row.
    pub failures_in_row: u32,
    /// Value of the response header, byte for byte.
    pub etag: Option<String>,
    /// Value of the response header, byte for byte.
    pub last_modified: Option<String>,
}

/// Bytes as base64 in JSON; a list of numbers would be three times as long.
mod base64 {
    use std::sync::Arc;

    use data_encoding::BASE64;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(super) fn serialize<S: Serializer>(bytes: &Option<Arc<[u8]>>, to: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => to.serialize_str(&BASE64.encode(bytes)),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<[u8]>>, D::Error> {
        let text: Option<String> = Option::deserialize(from)?;
        let bytes = text.map(|text| BASE64.decode(text.as_bytes()).map_err(serde::de::Error::custom));
        Ok(bytes.transpose()?.map(Into::into))
    }
}
