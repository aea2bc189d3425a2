//! The key of a site's owner, as a bearer token.
//!
//! A key is 32 random bytes, so one round of SHA-256 protects it as well as a slow hash would. Logs contain the site, never the
//! key.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use manifest::SiteName;
use policy::claim::Owner;
use policy::key::{KeyHash, KeyKind};
use store::Store;
use subtle::ConstantTimeEq;

use crate::admin::bearer;
use crate::clock;
use crate::problem::Problem;

/// The value of `Authorization`, before it is checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnerCredentials(Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for OwnerCredentials {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let value = parts.headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap_or_default());
        Ok(Self(value.map(ToOwned::to_owned)))
    }
}

impl OwnerCredentials {
    /// Whether the request has credentials of an owner, which must then be correct. A reader key does not count, even if a browser sends it
    /// as a password.
    pub(crate) fn are_given(&self) -> bool {
        self.0.as_deref().is_some_and(|value| {
            let (scheme, key) = value.split_once(' ').unwrap_or((value, ""));
            let is_of_reader = key.trim_start().starts_with(KeyKind::Reader.prefix());
            !is_of_reader && !scheme.eq_ignore_ascii_case("basic")
        })
    }

    /// Whether the headers contain a value in the format of an owner's key.
    pub(crate) fn are_in(headers: &HeaderMap) -> bool {
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        value.and_then(bearer).is_some_and(|key| key.starts_with(KeyKind::Owner.prefix()))
    }

    /// The owner of the site, if the request has the owner's key.
    pub(crate) async fn admit(&self, store: &Store, site: &SiteName) -> Result<Owner, Problem> {
        let refused = || {
            Problem::unauthenticated(format!(
                "send the key of the owner of {site} as Authorization: Bearer KEY; POST /sites/{site}/claim issues a key"
            ))
        };
        let key = self
            .0
            .as_deref()
            .and_then(bearer)
            .and_then(|key| KeyHash::of_key(KeyKind::Owner, key))
            .ok_or_else(refused)?;
        let invalid = || {
            Problem::unauthenticated(format!(
                "this key is not valid for {site}: a key of POST /sites/{site}/claim becomes valid when its line is published and \
                 POST /sites/{site}/claim/check finds it"
            ))
        };
        let claim = store.claim_find(site).await?.unwrap_or_default();
        let owner = claim.owner_at(clock::now()).cloned().ok_or_else(invalid)?;
        let is_owner = bool::from(owner.key_hash.as_str().as_bytes().ct_eq(key.as_str().as_bytes()));
        if is_owner { Ok(owner) } else { Err(invalid()) }
    }
}
