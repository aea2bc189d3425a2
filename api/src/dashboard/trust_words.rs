//! One line about a capability: whose address the call goes to, and what to doubt.

use manifest::{Capability, Host, Publisher, is_main_host};
use store::StoredManifest;
use url::Url;

use super::labels;
use crate::answers::caution::{Elsewhere, Money};

/// Whose address the call goes to, whether the owner of the site is verified, and what to doubt, in one line.
pub(super) fn trust_words(
    stored: &StoredManifest,
    capability: &Capability,
    is_owner_verified: bool,
) -> String {
    let manifest = &stored.manifest;
    let (site, address) = (manifest.url.site(), capability.invocation.endpoint());
    let place = match (Elsewhere::of(manifest.format(), &capability.native_id, address, &site), address) {
        (Some(Elsewhere::Calls(other)), _) => format!("the call goes to {other}"),
        (Some(Elsewhere::Lists(other)), _) => format!("an entry about {other}"),
        (None, Some(address)) => place_words(stored, address),
        (None, None) => "no address to call".to_owned(),
    };
    let owner = if is_owner_verified { "owner verified" } else { "owner not verified" };
    let doubts = [
        (!stored.is_of_site(), "named only by others"),
        (capability.addresses_reader, "its text gives orders to AI models"),
        (capability.deprecated, "deprecated"),
        (capability.degraded, "impaired at the moment"),
    ];
    let money =
        Money::of(&capability.name, &capability.semantic_types, capability.safety.class).map(|money| {
            match money {
                Money::Moves => "may move money",
                Money::MayCost => "may cost money",
            }
        });
    let doubts = doubts.into_iter().filter(|(is_so, _)| *is_so).map(|(_, words)| words);
    let doubts: Vec<&str> = doubts.chain(money).collect();
    let parts = [place, owner.to_owned(), doubts.join(", ")];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    labels::capitalised(&parts.join(" · "))
}

/// Whose an address at the site that serves the declaration is: the site's own only if the site itself says so. Another host may belong to
/// a customer.
fn place_words(stored: &StoredManifest, address: &str) -> String {
    let manifest = &stored.manifest;
    let site = manifest.url.site();
    let host = Url::parse(address).ok().and_then(|url| Host::parse(url.host_str()?).ok());
    let host = host.unwrap_or_else(|| manifest.url.host());
    let is_published = stored.is_of_site() && stored.publisher == Publisher::Site;
    if is_published && (manifest.format().describes_one_service() || is_main_host(&site, &host)) {
        return "the address is the site's own".to_owned();
    }
    format!("the address is at {host}")
}
