//! How the crawler sends: its identity, addresses, name servers, certificates and signatures.

use std::net::{IpAddr, SocketAddr};

use egress::{Contact, CrawlerIdentity, EgressSettings, HostsFile, OwnRules, Reach, Signer};
use ipnet::IpNet;
use policy::OwnNetworks;

use super::file::ConfigFile;
use super::flags::CrawlFlags;
use super::given::{Given, given, given_list};
use super::settings::{UsageError, first, read_text};

/// Default port of name servers.
const DNS_PORT: u16 = 53;

pub(super) fn egress_settings(
    flags: &CrawlFlags,
    file: &ConfigFile,
    contact: &Contact,
) -> Result<EgressSettings, UsageError> {
    let table = &file.crawler;
    let hosts = given("--hosts", flags.hosts.as_deref(), table.hosts.as_deref(), file);
    let hosts = match hosts.value {
        Some(path) => HostsFile::parse(&read_text(&hosts.name, path)?).map_err(|error| {
            UsageError(format!("the hosts file {} is not usable: {error}", path.display()))
        })?,
        None => HostsFile::default(),
    };
    let allowed = given_list("--allow-addresses", &flags.allow_addresses, &table.allow_addresses, file);
    let name_servers = &flags.operator.name_servers;
    Ok(EgressSettings {
        identity: CrawlerIdentity::new(contact),
        additional_roots_pem: additional_roots(flags, file)?,
        own_networks: own_networks(&allowed)?,
        reach: Reach::Everywhere,
        own_rules: if flags.operator.strict || table.strict { OwnRules::Strict } else { OwnRules::Relaxed },
        hosts,
        name_servers: addresses(&given_list("--name-servers", name_servers, &table.name_servers, file))?,
        signer: signer(flags, file)?,
    })
}

/// The text of the file with additional certificates. An error names the file if a certificate cannot be read.
fn additional_roots(flags: &CrawlFlags, file: &ConfigFile) -> Result<Option<Vec<u8>>, UsageError> {
    let given = given("--ca-file", flags.ca_file.as_deref(), file.crawler.ca_file.as_deref(), file);
    let Some(path) = given.value else { return Ok(None) };
    let pem = read_text(&given.name, path)?;
    if !pem.contains("-----BEGIN CERTIFICATE-----") {
        return Err(UsageError(format!(
            "{}: {} holds no certificate: it should be PEM text with BEGIN CERTIFICATE",
            given.name,
            path.display()
        )));
    }
    Ok(Some(pem.into_bytes()))
}

fn signer(flags: &CrawlFlags, file: &ConfigFile) -> Result<Option<Signer>, UsageError> {
    let table = &file.crawler;
    let key = &flags.operator.signing_key;
    let given = given("--signing-key", key.as_deref(), table.signing_key.as_deref(), file);
    let Given { name, value: Some(path) } = given else { return Ok(None) };
    let Some(agent) = first(flags.operator.signature_agent.as_ref(), table.signature_agent.as_ref()) else {
        let why = "needs --signature-agent, the origin where sites find your public key";
        return Err(UsageError(format!("{name} {why}")));
    };
    let pem = read_text(&name, path)?;
    let signer = Signer::new(pem.as_bytes(), &agent);
    signer.map(Some).map_err(|error| UsageError(format!("{name} {}: {error}", path.display())))
}

fn addresses(servers: &Given<&[String]>) -> Result<Vec<SocketAddr>, UsageError> {
    let name = &servers.name;
    let parse = |text: &String| {
        let socket = text.parse::<SocketAddr>().ok();
        socket.or_else(|| Some(SocketAddr::new(text.parse().ok()?, DNS_PORT))).ok_or_else(|| {
            UsageError(format!("{name}: \"{text}\" is not an address: write it like 192.0.2.53"))
        })
    };
    servers.value.into_iter().flatten().map(parse).collect()
}

fn own_networks(allowed: &Given<&[String]>) -> Result<OwnNetworks, UsageError> {
    let name = &allowed.name;
    let parse = |text: &String| {
        let network = text.parse::<IpNet>().ok();
        network.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from)).ok_or_else(|| {
            UsageError(format!("{name}: \"{text}\" is not a network: write it like 10.0.0.0/8"))
        })
    };
    allowed.value.into_iter().flatten().map(parse).collect::<Result<Vec<_>, _>>().map(OwnNetworks::new)
}
