//! The agent endpoints that a document of a site declares: MCP servers and A2A agents.

use std::collections::BTreeSet;

use manifest::model::{Capability, Manifest, Protocol};

/// Protocols of endpoints that agents connect to as a whole, not call by call.
pub(crate) const AGENT_PROTOCOLS: [Protocol; 2] = [Protocol::Mcp, Protocol::A2a];

/// The protocols of the public endpoints that a manifest declares, and of those of one of its capabilities. A document of a format that does
/// not describe one service (`Format::describes_one_service`) declares none, because it may list the endpoints of customers and users.
pub(crate) fn declared_endpoints(manifest: &Manifest, capability: &Capability) -> BTreeSet<Protocol> {
    if !manifest.format().describes_one_service() {
        return BTreeSet::new();
    }
    let is_public = |url: &str| manifest.address_for_agents(url).is_some();
    let interfaces = manifest.interfaces.iter();
    let interfaces = interfaces.filter(|interface| interface.url.as_deref().is_some_and(is_public));
    let own = capability.invocation.protocol.filter(|_| capability.is_invocable());
    let all = interfaces.map(|interface| interface.protocol).chain(own);
    all.filter(|protocol| AGENT_PROTOCOLS.contains(protocol)).collect()
}
