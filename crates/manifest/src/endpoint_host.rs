//! The host that the endpoint of a capability names.

use crate::Manifest;
use crate::model::Capability;
use crate::name::{Host, ManifestUrl};

impl Manifest {
    /// The host of a capability's endpoint that clients reach by TLS on port 443. `None` for other endpoints, IP addresses, hosts with
    /// placeholders, and addresses that agents must not be sent to.
    pub fn endpoint_host(&self, capability: &Capability) -> Option<Host> {
        let address = self.address_for_agents(capability.invocation.endpoint()?)?;
        let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("wss://"))?;
        let url = ManifestUrl::parse(&format!("https://{rest}")).ok()?;
        let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        (url.port() == 443 && !authority.contains(['{', '}'])).then(|| url.host())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CapabilityKind;
    use crate::{Discovery, Document, read};

    #[test]
    fn names_the_host_of_endpoints_on_port_443() {
        let url = ManifestUrl::parse("https://shop.example/agent.json").unwrap();
        let manifest = read(&Document {
            bytes: b"{}",
            url: &url,
            final_url: None,
            discovery: Discovery::WellKnown,
            served: None,
            linked: &[],
            force: None,
        });
        let host = |endpoint: &str| {
            let mut capability = Capability::new(
                &url,
                manifest.detection.format,
                "x",
                "x",
                CapabilityKind::Action,
                String::new(),
            );
            capability.invocation.url = Some(endpoint.to_owned());
            manifest.endpoint_host(&capability).map(|host| host.to_string())
        };
        for endpoint in
            ["https://API.Shop.example/{id}", "wss://api.shop.example:443/x", "https://api.shop.example"]
        {
            assert_eq!(host(endpoint).as_deref(), Some("api.shop.example"), "{endpoint}");
        }
        for endpoint in [
            "http://api.shop.example/x",
            "https://api.shop.example:8443/x",
            "https://{tenant}.shop.example/x",
            "https://93.184.216.34/x",
            "https://10.0.0.1/x",
            "https://localhost/x",
            "https://user:secret@api.shop.example/x",
            "npx -y server",
            "/relative",
        ] {
            assert_eq!(host(endpoint), None, "{endpoint}");
        }
    }
}
