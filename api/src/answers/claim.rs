//! Claims to sites: the token to publish, whether it was found, and who owns the site.

use chrono::{DateTime, Utc};
use data_encoding::HEXLOWER;
use manifest::SiteName;
use policy::claim::{self, Claim, ClaimAuthority, Owner, Proof};
use policy::key::KEY_BYTES;
use serde::Serialize;
use store::Store;
use utoipa::ToSchema;

use super::site::unknown;
use crate::clock;
use crate::problem::Problem;

/// Random bytes of the secret of this instance's tokens.
const SECRET_BYTES: usize = 32;

/// A new key, and how to prove control of the domain.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClaimIssued {
    #[schema(value_type = String)]
    pub(crate) site: SiteName,
    /// Keep it secret: no other response shows it. It is valid as soon as a visit has found the token.
    pub(crate) key: String,
    /// To be published in one of the two places.
    token: String,
    pub(crate) dns: DnsProof,
    pub(crate) file: FileProof,
    /// Where a check is requested once the token is published.
    check_url: String,
    message: &'static str,
}

/// The record that proves the claim.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DnsProof {
    pub(crate) name: String,
    r#type: &'static str,
    value: String,
}

/// The file that proves the claim.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileProof {
    pub(crate) url: String,
    pub(crate) line: String,
}

/// What is known about the ownership of a site.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClaimAnswer {
    #[schema(value_type = String)]
    pub(crate) site: SiteName,
    #[schema(value_type = Option<crate::openapi::site_records::SiteOwner>)]
    pub(crate) owner: Option<OwnerMark>,
    /// When a check was last requested.
    pub(crate) asked_at: Option<DateTime<Utc>>,
    /// When visits stop looking for the token.
    pub(crate) looked_for_until: Option<DateTime<Utc>>,
    pub(crate) checked_at: Option<DateTime<Utc>>,
    /// What the last check found, in words.
    pub(crate) finding: Option<String>,
}

/// The owner of a site, who proved control of its domain. This is no statement about the content of the site.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct OwnerMark {
    /// Always true: without a proof there is no owner.
    pub(crate) verified: bool,
    /// `dns` for a TXT record, `file` for a file of the site.
    pub(crate) by: Proof,
    /// When the key of this owner became valid.
    pub(crate) since: DateTime<Utc>,
    /// When the proof was last found.
    pub(crate) last_proven_at: DateTime<Utc>,
    /// When a check first did not find the proof; the ownership ends two weeks later.
    pub(crate) missing_since: Option<DateTime<Utc>>,
}

impl From<&Owner> for OwnerMark {
    fn from(owner: &Owner) -> Self {
        Self {
            verified: true,
            by: owner.proof,
            since: owner.since,
            last_proven_at: owner.proven_at,
            missing_since: owner.missing_since,
        }
    }
}

/// The secret that all programs of this instance share.
pub(crate) async fn instance_secret(store: &Store) -> Result<String, Problem> {
    Ok(match store.claim_secret_find().await? {
        Some(secret) => secret,
        None => store.claim_secret_keep(&HEXLOWER.encode(&rand::random::<[u8; SECRET_BYTES]>())).await?,
    })
}

/// Issues a new key with its token. Only the secret of this instance is stored, so claims cannot interfere with each other.
pub(crate) async fn issue(store: &Store, base_url: &str, site: SiteName) -> Result<ClaimIssued, Problem> {
    let secret = instance_secret(store).await?;
    let issued = ClaimAuthority::new(&secret).issue(&site, &rand::random::<[u8; KEY_BYTES]>());
    let line = format!("{}{}", claim::TOKEN_PREFIX, issued.token);
    Ok(ClaimIssued {
        key: issued.key,
        token: issued.token,
        dns: DnsProof { name: format!("{}.{site}", claim::DNS_LABEL), r#type: "TXT", value: line.clone() },
        file: FileProof { url: format!("https://{site}{}", claim::FILE_PATH), line },
        check_url: format!("{base_url}/sites/{site}/claim/check"),
        message: "publish the record or the file, then request a check; keep the key, which is not shown again",
        site,
    })
}

/// The state of a claim to a known site.
pub(crate) async fn state(store: &Store, site: SiteName) -> Result<ClaimAnswer, Problem> {
    let Some(claim) = store.claim_find(&site).await? else {
        return match store.site_summary(&site).await? {
            Some(_) => Ok(answer(site, &Claim::default())),
            None => Err(unknown(&site)),
        };
    };
    Ok(answer(site, &claim))
}

fn answer(site: SiteName, claim: &Claim) -> ClaimAnswer {
    ClaimAnswer {
        site,
        owner: claim.owner_at(clock::now()).map(OwnerMark::from),
        asked_at: claim.asked_at,
        looked_for_until: claim.open_until(),
        checked_at: claim.checked_at,
        finding: claim.finding.clone(),
    }
}
