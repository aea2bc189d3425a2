//! Opaque cursors of the listings: a position, bound to the listing and its filters.
//!
//! A cursor means "after this name" and stays valid when data changes. A cursor of another listing or of other filters is rejected.

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest, Sha256};

use crate::problem::Problem;

/// Maximum length of a cursor in bytes: more than the base64 of a binding and the longest position, which contains a search and a version.
const CURSOR_BYTES_MAX: usize = 4_096;
/// Bytes of the hash that binds a cursor to its listing: enough to detect mistakes; it is not a security feature.
const BINDING_BYTES: usize = 6;

fn binding(listing: &str) -> Vec<u8> {
    Sha256::digest(listing.as_bytes()).iter().copied().take(BINDING_BYTES).collect()
}

/// A cursor after `position` in a listing; `listing` names the route with its filters.
pub(crate) fn encode(listing: &str, position: &str) -> String {
    let mut bytes = binding(listing);
    bytes.extend_from_slice(position.as_bytes());
    BASE64URL_NOPAD.encode(&bytes)
}

/// The position in a cursor of this listing.
pub(crate) fn decode(listing: &str, cursor: &str) -> Result<String, Problem> {
    if cursor.len() > CURSOR_BYTES_MAX {
        return Err(invalid());
    }
    let bytes = BASE64URL_NOPAD.decode(cursor.as_bytes()).map_err(|_| invalid())?;
    let (bound, position) = bytes.split_at_checked(BINDING_BYTES).ok_or_else(invalid)?;
    if bound != binding(listing) {
        return Err(of_other_query());
    }
    String::from_utf8(position.to_vec()).map_err(|_| invalid())
}

/// The problem of a cursor with other filters.
pub(crate) fn of_other_query() -> Problem {
    let detail =
        "\"cursor\" belongs to another query: send the same filters as in the request that returned it";
    Problem::bad_request(detail).with_parameter("cursor")
}

/// The problem of a cursor that this server did not issue.
pub(crate) fn invalid() -> Problem {
    let detail = "\"cursor\" was not issued by this server: pass next_cursor on unchanged";
    Problem::bad_request(detail).with_parameter("cursor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_is_valid_only_for_its_listing() {
        let cursor = encode("sites?status=fresh", "skyhop.example");
        assert_eq!(decode("sites?status=fresh", &cursor).unwrap(), "skyhop.example");
        for (listing, text) in [("sites", cursor.as_str()), ("sites", "%%%"), ("sites", ""), ("sites", "AA")]
        {
            assert!(decode(listing, text).is_err(), "{text}");
        }
        assert!(decode("sites", &"A".repeat(4_097)).is_err());
    }
}
