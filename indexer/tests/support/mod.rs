//! Manifests for tests, as the store returns them.

use chrono::{DateTime, Utc};
use manifest::model::{Capability, CapabilityKind, Format, Manifest};
use manifest::{ContentHash, ManifestId, ManifestUrl};
use policy::Status;
use serde_json::json;
use store::StoredManifest;

/// A manifest of a site without capabilities.
pub(crate) fn manifest(site: &str, name: &str) -> StoredManifest {
    let url = ManifestUrl::parse(&format!("https://{site}/agent.json")).unwrap();
    let manifest: Manifest = serde_json::from_value(json!({
        "id": ManifestId::of(&url).as_str(), "content_hash": ContentHash::of(b"").as_str(), "url": url.as_str(),
        "origin": url.origin(), "discovery": "root", "name": name,
        "detection": {"format": "awp", "strength": "strong", "evidence": []},
    }))
    .unwrap();
    let seen: DateTime<Utc> = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
    StoredManifest {
        manifest,
        training: manifest::model::PolicyChoice::Unset,
        named_by: manifest::NamedBy::Site,
        publisher: manifest::Publisher::Site,
        status: Status::Fresh,
        first_seen_at: seen,
        last_seen_at: seen,
        changed_at: seen,
        versions: 1,
        body_kept: true,
    }
}

/// Adds a capability and returns it for further changes.
pub(crate) fn add<'a>(
    stored: &'a mut StoredManifest,
    native_id: &str,
    description: &str,
) -> &'a mut Capability {
    let manifest = &mut stored.manifest;
    let pointer = format!("/actions/{}", manifest.capabilities.len());
    let mut capability =
        Capability::new(&manifest.url, Format::Awp, native_id, native_id, CapabilityKind::Action, pointer);
    capability.description = Some(description.to_owned());
    manifest.capabilities.push(capability);
    manifest.capabilities.last_mut().unwrap()
}
