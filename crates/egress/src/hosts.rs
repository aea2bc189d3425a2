//! Parses the file of `--hosts`: addresses that the operator sets for names, as in hosts(5), with an optional port.
//!
//! A line is an address and then names: `127.1.0.5:8443 skyhop.example www.skyhop.example`. This does not affect URLs, certificates or Host
//! headers, which still contain the name. The port of URLs is still 443. The addresses are checked like any others.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use manifest::Host;

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct HostsError {
    pub line: usize,
    pub reason: String,
}

/// Names with their addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostsFile(HashMap<Host, Vec<SocketAddr>>);

impl HostsFile {
    /// Parses the text of a hosts file.
    pub fn parse(text: &str) -> Result<Self, HostsError> {
        let mut names: HashMap<Host, Vec<SocketAddr>> = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let wrong = |reason: String| HostsError { line: number + 1, reason };
            let content = line.split('#').next().unwrap_or_default();
            let mut words = content.split_whitespace();
            let Some(address) = words.next() else { continue };
            let address = parse_address(address).ok_or_else(|| {
                wrong(format!("\"{address}\" is neither an address nor an address with a port"))
            })?;
            for word in words {
                let host = Host::parse(word).map_err(|error| wrong(error.to_string()))?;
                names.entry(host).or_default().push(address);
            }
        }
        Ok(Self(names))
    }

    /// The addresses of a name. Port 0 means the port of the URL.
    pub fn find(&self, host: &Host) -> Option<&[SocketAddr]> {
        self.0.get(host).map(Vec::as_slice)
    }
}

fn parse_address(text: &str) -> Option<SocketAddr> {
    let with_port = text.parse::<SocketAddr>().ok();
    with_port.or_else(|| text.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses_with_and_without_ports() {
        let file = HostsFile::parse(
            "# a comment\r\n127.1.0.5:8443 skyhop.example www.skyhop.example # two\n\n::1 a.test\n",
        )
        .unwrap();
        let find = |name: &str| file.find(&Host::parse(name).unwrap()).map(<[SocketAddr]>::to_vec);
        assert_eq!(find("www.skyhop.example"), Some(vec!["127.1.0.5:8443".parse().unwrap()]));
        assert_eq!(find("a.test"), Some(vec!["[::1]:0".parse().unwrap()]));
        assert_eq!(find("b.test"), None);
    }

    #[test]
    fn names_bad_lines() {
        assert_eq!(HostsFile::parse("127.0.0.1 a.test\nnonsense b.test").unwrap_err().line, 2);
        assert!(
            HostsFile::parse("127.0.0.1 local").unwrap_err().to_string().starts_with("line 1: \"local\"")
        );
    }
}
