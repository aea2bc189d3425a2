//! Finds the host of a name among hosts that were added and hosts that a template creates at their first request.

use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddrV4},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{Host, host::SocketRule};

/// The port of an obsolete service (tcpmux), on which connections are refused on practically every machine.
const REFUSING_PORT: u16 = 1;

/// The first address, if each host has its own.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([127, 1, 0, 1]);

/// The addresses of hosts without a chosen address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// All on this loopback address.
    Shared(Ipv4Addr),
    /// The i-th host on 127.1.0.1 + i.
    OneEach,
}

/// Creates the host of an index.
pub(crate) type MakeHost = Box<dyn Fn(usize) -> Host + Send + Sync>;

/// `count` hosts whose names are a pattern with the index in place of `{}`.
pub(crate) struct Template {
    count: usize,
    before: String,
    after: String,
    make: MakeHost,
    first_position: usize,
}

/// All hosts of a web.
pub(crate) struct Names {
    addresses: Addresses,
    listed: RwLock<Vec<(usize, Arc<str>)>>,
    made: RwLock<HashMap<Arc<str>, Arc<Host>>>,
    templates: Vec<Template>,
    next_position: AtomicUsize,
}

impl Names {
    pub(crate) fn new(addresses: Addresses) -> Self {
        Self {
            addresses,
            listed: RwLock::default(),
            made: RwLock::default(),
            templates: Vec::new(),
            next_position: AtomicUsize::new(0),
        }
    }

    pub(crate) fn addresses(&self) -> Addresses {
        self.addresses
    }

    pub(crate) fn use_addresses(&mut self, addresses: Addresses) {
        self.addresses = addresses;
    }

    /// Adds a host, or replaces the host of this name, which keeps its address.
    pub(crate) fn add(&self, host: Host) {
        let known = self.host(&host.name).is_some();
        if !known {
            let position = self.next_position.fetch_add(1, Ordering::Relaxed);
            let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
            listed.push((position, Arc::clone(&host.name)));
        }
        self.put(host);
    }

    pub(crate) fn add_template(&mut self, count: usize, pattern: &str, make: MakeHost) {
        let (before, after) = pattern.split_once("{}").expect("a name pattern must contain {} for the index");
        let (before, after) = (before.to_owned(), after.to_owned());
        let first_position = self.next_position.fetch_add(count, Ordering::Relaxed);
        self.templates.push(Template { count, before, after, make, first_position });
    }

    /// The host of a name.
    pub(crate) fn host(&self, name: &str) -> Option<Arc<Host>> {
        if let Some(host) = self.made.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Some(Arc::clone(host));
        }
        let host = self.templates.iter().find_map(|template| template.host(name))?;
        Some(self.put(host))
    }

    /// Changes the host of this name; creates one that answers 404 if there is none.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Host)) {
        let mut host = self.host(name).map_or_else(|| Host::new(name), |host| Host::clone(&host));
        change(&mut host);
        self.add(host);
    }

    /// Removes an added host.
    pub(crate) fn remove(&self, name: &str) {
        self.listed.write().unwrap_or_else(PoisonError::into_inner).retain(|(_, listed)| &**listed != name);
        self.made.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Every name with its socket, in the order in which they were added.
    pub(crate) fn sockets(&self, port: u16) -> Vec<(String, SocketAddrV4)> {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        let made = self.made.read().unwrap_or_else(PoisonError::into_inner);
        let rule_of = |name: &str| made.get(name).map(|host| host.socket);
        let by_list = listed.iter().map(|(position, name)| {
            (*position, name.to_string(), rule_of(name).unwrap_or(SocketRule::ByRule))
        });
        let by_template = self.templates.iter().flat_map(Template::sockets).map(|(position, name, rule)| {
            let rule = rule_of(&name).unwrap_or(rule);
            (position, name, rule)
        });
        let mut sockets: Vec<_> = by_list.chain(by_template).collect();
        sockets.sort_by_key(|(position, ..)| *position);
        sockets
            .into_iter()
            .map(|(position, name, rule)| (name, self.socket_of(position, rule, port)))
            .collect()
    }

    /// The loopback addresses of hosts that chose one.
    pub(crate) fn chosen_addresses(&self) -> Vec<Ipv4Addr> {
        let made = self.made.read().unwrap_or_else(PoisonError::into_inner);
        let chosen = |host: &Arc<Host>| match host.socket {
            SocketRule::At(address) => Some(address),
            SocketRule::ByRule | SocketRule::Refusing => None,
        };
        made.values().filter_map(chosen).collect()
    }

    fn socket_of(&self, position: usize, rule: SocketRule, port: u16) -> SocketAddrV4 {
        let by_rule = match self.addresses {
            Addresses::Shared(address) => address,
            Addresses::OneEach => nth_address(position),
        };
        match rule {
            SocketRule::ByRule => SocketAddrV4::new(by_rule, port),
            SocketRule::At(address) => SocketAddrV4::new(address, port),
            SocketRule::Refusing => SocketAddrV4::new(by_rule, REFUSING_PORT),
        }
    }

    fn put(&self, host: Host) -> Arc<Host> {
        let host = Arc::new(host);
        let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
        made.insert(Arc::clone(&host.name), Arc::clone(&host));
        host
    }
}

impl Template {
    fn host(&self, name: &str) -> Option<Host> {
        let digits = name.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        let index: usize = digits.parse().ok()?;
        let canonical = index.to_string() == digits;
        (canonical && index < self.count).then(|| Host { name: name.into(), ..(self.make)(index) })
    }

    fn sockets(&self) -> impl Iterator<Item = (usize, String, SocketRule)> + '_ {
        (0..self.count).map(|index| {
            let name = format!("{}{index}{}", self.before, self.after);
            (self.first_position + index, name, (self.make)(index).socket)
        })
    }
}

fn nth_address(position: usize) -> Ipv4Addr {
    let offset = u32::try_from(position).expect("fewer hosts than 127.0.0.0/8 has addresses");
    let address = Ipv4Addr::from(FIRST_ADDRESS + offset);
    assert!(address.is_loopback(), "127.0.0.0/8 has no address left for host {position}");
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assigns_addresses_to_hosts_and_templates_in_order() {
        let mut names = Names::new(Addresses::OneEach);
        names.add(Host::new("first.example"));
        names.add_template(300, "site{}.test", Box::new(|_| Host::new("template")));
        names.add(Host::new("last.example"));
        names.add(Host::new("dead.example").refusing_connections());
        let sockets = names.sockets(8443);
        assert_eq!(sockets.len(), 303);
        assert_eq!(
            sockets[0],
            ("first.example".to_owned(), SocketAddrV4::new(Ipv4Addr::new(127, 1, 0, 1), 8443))
        );
        assert_eq!(
            sockets[1],
            ("site0.test".to_owned(), SocketAddrV4::new(Ipv4Addr::new(127, 1, 0, 2), 8443))
        );
        assert_eq!(
            sockets[301],
            ("last.example".to_owned(), SocketAddrV4::new(Ipv4Addr::new(127, 1, 1, 46), 8443))
        );
        assert_eq!(sockets[302].1.port(), REFUSING_PORT);
    }

    #[test]
    fn a_template_makes_only_hosts_within_its_count() {
        let mut names = Names::new(Addresses::Shared(Ipv4Addr::LOCALHOST));
        names.add_template(2, "site{}.test", Box::new(|_| Host::new("template")));
        assert_eq!(names.host("site1.test").unwrap().name(), "site1.test");
        for unknown in ["site2.test", "site01.test", "site.test", "site+1.test", "other.test"] {
            assert!(names.host(unknown).is_none(), "{unknown}");
        }
    }
}
