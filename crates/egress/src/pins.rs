//! The addresses of one visit. Each name is resolved once and each address is checked. The connector can use no other addresses.
//!
//! So a name cannot resolve differently later in the visit (DNS rebinding). An address that is not global is also refused here, when
//! connecting, regardless of earlier decisions.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use manifest::Host;
use policy::{AddressVerdict, OwnNetworks};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::failure::{Cause, Failure};
use crate::settings::Reach;

/// Maximum number of addresses used for a name. All of them are expected to serve the same content.
const ADDRESSES_KNOWN_MAX: usize = 16;

/// The resolver of one visit.
#[derive(Clone)]
pub(crate) struct Pins {
    own: Arc<OwnNetworks>,
    reach: Reach,
    names: Arc<Mutex<HashMap<String, Vec<SocketAddr>>>>,
}

impl Pins {
    pub(crate) fn new(own: Arc<OwnNetworks>, reach: Reach) -> Self {
        Self { own, reach, names: Arc::default() }
    }

    /// The addresses of a name that was pinned before.
    pub(crate) fn find(&self, host: &Host) -> Option<Vec<SocketAddr>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).get(host.as_str()).cloned()
    }

    /// Checks addresses and pins them, IPv4 first, because not every machine has IPv6. If one address is refused, the name is refused,
    /// because a name that resolves to both public and private addresses is an attack or a mistake.
    pub(crate) fn pin(&self, host: &Host, addresses: &[SocketAddr]) -> Result<Vec<SocketAddr>, Failure> {
        for address in addresses {
            self.judge(*address)?;
        }
        let mut pinned: Vec<SocketAddr> = addresses.iter().copied().take(ADDRESSES_KNOWN_MAX).collect();
        pinned.sort_by_key(SocketAddr::is_ipv6);
        if pinned.is_empty() {
            return Err(Failure::new(Cause::NameUnknown, "the name has no addresses"));
        }
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(host.as_str().to_owned(), pinned.clone());
        Ok(pinned)
    }

    /// Keeps only these addresses of a name, in this order.
    pub(crate) fn narrow(&self, host: &Host, chosen: &[IpAddr]) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pinned) = names.get_mut(host.as_str()) {
            let of = |ip: &IpAddr| pinned.iter().find(|address| address.ip() == *ip).copied();
            *pinned = chosen.iter().filter_map(of).collect();
        }
    }

    /// The only address to which a connection is opened: the first one, for which the request has its permit.
    pub(crate) fn address(&self, name: &str) -> Result<SocketAddr, Failure> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let address = names
            .get(name)
            .and_then(|pinned| pinned.first().copied())
            .ok_or_else(|| Failure::new(Cause::Address, format!("{name} was not resolved for this visit")))?;
        self.judge(address)?;
        Ok(address)
    }

    fn judge(&self, address: SocketAddr) -> Result<(), Failure> {
        match (self.own.judge(address.ip()), self.reach) {
            (AddressVerdict::Own(_), _) | (AddressVerdict::Global, Reach::Everywhere) => Ok(()),
            (AddressVerdict::Refused(refusal), _) => Err(Failure::address(refusal, address.ip())),
            (AddressVerdict::Global, Reach::OwnNetworks) => {
                let reason = format!(
                    "{} is outside --allow-addresses, and a crawl that keeps running does not visit it without a contact",
                    address.ip()
                );
                Err(Failure::new(Cause::Address, reason))
            }
        }
    }
}

impl Resolve for Pins {
    fn resolve(&self, name: Name) -> Resolving {
        let address = self.address(name.as_str());
        Box::pin(async move {
            let addresses: Addrs = Box::new(std::iter::once(address.map_err(Box::new)?));
            Ok(addresses)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn rejects_names_with_a_private_address() {
        let pins = Pins::new(Arc::default(), Reach::Everywhere);
        let host = Host::parse("a.test").unwrap();
        let mixed = [address("93.184.216.34:0"), address("10.0.0.1:0")];
        assert_eq!(pins.pin(&host, &mixed).unwrap_err().cause, Cause::Address);
        assert!(pins.address("a.test").is_err());
        assert_eq!(pins.pin(&host, &mixed[..1]).unwrap().len(), 1);
        assert_eq!(pins.address("a.test").unwrap(), mixed[0]);
    }

    #[test]
    fn connects_only_to_the_first_chosen_address() {
        let pins = Pins::new(Arc::default(), Reach::Everywhere);
        let host = Host::parse("a.test").unwrap();
        let all = ["9.9.9.9:1", "8.8.8.8:2", "1.1.1.1:3"].map(address);
        assert_eq!(pins.pin(&host, &all).unwrap(), all);
        assert_eq!(pins.address("a.test").unwrap(), all[0]);
        pins.narrow(&host, &[all[2].ip(), all[1].ip()]);
        assert_eq!(pins.address("a.test").unwrap(), all[2]);
        let both = ["[2a00:1::1]:443", "9.9.9.9:443"].map(address);
        assert_eq!(pins.pin(&host, &both).unwrap(), [both[1], both[0]], "IPv4 first");
    }

    #[test]
    fn connects_only_to_pinned_names() {
        assert_eq!(
            Pins::new(Arc::default(), Reach::Everywhere).address("b.test").unwrap_err().cause,
            Cause::Address
        );
    }

    #[test]
    fn allows_only_own_networks() {
        let own = Arc::new(OwnNetworks::new(["127.0.0.0/8".parse().unwrap()]));
        let pins = Pins::new(Arc::clone(&own), Reach::Everywhere);
        let host = Host::parse("a.test").unwrap();
        assert!(pins.pin(&host, &[address("127.1.0.5:8443")]).is_ok());
        assert!(pins.pin(&host, &[address("192.168.0.1:0")]).is_err());
        assert!(pins.pin(&host, &[address("9.9.9.9:443")]).is_ok());
        let pins = Pins::new(own, Reach::OwnNetworks);
        assert!(pins.pin(&host, &[address("127.1.0.5:8443")]).is_ok());
        let refused = pins.pin(&host, &[address("9.9.9.9:443")]).unwrap_err();
        assert!(refused.reason.contains("without a contact"), "{}", refused.reason);
    }
}
