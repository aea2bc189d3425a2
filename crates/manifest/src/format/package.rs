//! Packages that callers install, in documents that contain the address of the package page instead of a server.

use crate::draft;
use crate::model::{Interface, Protocol};

/// Registries: the domain (name and top-level domain), the folder of its package pages, and the name of the registry.
const REGISTRIES: &[(&str, &str, &str, &str)] = &[
    ("npmjs", "com", "package", "npm"),
    ("pypi", "org", "project", "pypi"),
    ("crates", "io", "crates", "cargo"),
    ("nuget", "org", "packages", "nuget"),
    ("hub.docker", "com", "r", "oci"),
];

/// The package whose page is at an address: `npm:@shop/mcp` for `https://www.npmjs.com/package/@shop/mcp`.
pub(crate) fn of_page(address: &str) -> Option<String> {
    let (_, rest) = address.split_once("://")?;
    let (host, path) = rest.split_once('/')?;
    let (name, domain) = host.strip_prefix("www.").unwrap_or(host).rsplit_once('.')?;
    let is_host = |(known, top, ..): &&(&str, &str, &str, &str)| {
        name.eq_ignore_ascii_case(known) && domain.eq_ignore_ascii_case(top)
    };
    let (.., folder, registry) = REGISTRIES.iter().find(is_host)?;
    let name = path.strip_prefix(folder)?.strip_prefix('/')?.split(['?', '#']).next()?.trim_end_matches('/');
    (!name.is_empty()).then(|| [registry, ":", name].concat())
}

/// The server in a package, which its caller starts.
pub(crate) fn server(package: &str) -> Interface {
    let declared = draft::name(Some(package));
    Interface { declared, transport: Some("stdio".to_owned()), ..Interface::new(Protocol::Mcp, None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_package_from_the_address_of_its_page() {
        for (address, package) in [
            ("https://www.npmjs.com/package/@shop/mcp", Some("npm:@shop/mcp")),
            ("https://www.nuget.org/packages/shop-mcp/", Some("nuget:shop-mcp")),
            ("https://www.npmjs.com/", None),
            ("https://docs.npmjs.com/package/mcp", None),
            ("https://shop.example/package/x", None),
        ] {
            assert_eq!(of_page(address).as_deref(), package, "{address}");
        }
    }
}
