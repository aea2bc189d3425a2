//! Tests of the flags and the configuration file of a crawl.

use super::super::seed_sources::seed_source;
use super::*;
use crate::config::SeedSource;

fn resolved(crawl: &CrawlFlags) -> Result<Settings, String> {
    let shared = SharedFlags { data_dir: Some("d".into()), ..SharedFlags::default() };
    resolve(&shared, crawl).map_err(|error| error.to_string())
}

#[test]
fn defaults_are_polite() {
    let settings = resolved(&CrawlFlags::default()).unwrap();
    assert_eq!(settings.crawl.delay, DELAY_DEFAULT);
    assert_eq!(settings.crawl.mode, Mode::Once { park_wait: PARK_WAIT_DEFAULT, goes_on: false });
    assert_eq!(settings.shared.store.url, DatabaseUrl::in_data_dir(Path::new("d")));
}

#[test]
fn reports_wrong_values_in_one_sentence_with_the_flag() {
    let text = |value: &str| Some(value.to_owned());
    let with = |operator| CrawlFlags { operator, ..CrawlFlags::default() };
    for (flags, named) in [
        (CrawlFlags { delay: text("3"), ..CrawlFlags::default() }, "--delay"),
        (CrawlFlags { delay: text("999ms"), ..CrawlFlags::default() }, "--delay must be at least 1 s"),
        (CrawlFlags { rate: Some(0), ..CrawlFlags::default() }, "--rate"),
        (CrawlFlags { concurrency: Some(0), ..CrawlFlags::default() }, "--concurrency"),
        (
            CrawlFlags { allow_addresses: vec!["10.0.0.0/99".into()], ..CrawlFlags::default() },
            "--allow-addresses",
        ),
        (CrawlFlags { hosts: Some("/nowhere/hosts".into()), ..CrawlFlags::default() }, "--hosts"),
        (CrawlFlags { daemon: true, ..CrawlFlags::default() }, "--contact-url"),
        (
            CrawlFlags { contact_email: text("me"), ..CrawlFlags::default() },
            "--contact-email: \"me\" is not an e-mail",
        ),
        (CrawlFlags { seeds: vec!["https://10.0.0.1/list".into()], ..CrawlFlags::default() }, "--seeds"),
        (
            with(OperatorFlags { name_servers: vec!["ns.example".into()], ..OperatorFlags::default() }),
            "--name-servers",
        ),
        (
            CrawlFlags {
                daemon: true,
                contact_email: text("me@example.org"),
                ..with(OperatorFlags { schedule_seeds: text("0 3 * * 9"), ..OperatorFlags::default() })
            },
            "--schedule-seeds",
        ),
        (
            with(OperatorFlags { signing_key: Some("key.pem".into()), ..OperatorFlags::default() }),
            "--signature-agent",
        ),
    ] {
        let error = resolved(&flags).unwrap_err();
        assert!(error.contains(named) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn a_crawl_that_keeps_running_has_the_typed_schedules_and_a_single_pass_refuses_them() {
    let text = |value: &str| Some(value.to_owned());
    let none = OperatorFlags::default();
    for (operator, flag) in [
        (OperatorFlags { schedule_seeds: text("0 3 * * *"), ..none.clone() }, "--schedule-seeds"),
        (
            OperatorFlags { schedule_housekeeping: text("0 3 * * *"), ..none.clone() },
            "--schedule-housekeeping",
        ),
        (OperatorFlags { schedule_report: text("0 3 * * *"), ..none.clone() }, "--schedule-report"),
        (OperatorFlags { retain_feed: text("9d"), ..none.clone() }, "--retain-feed"),
        (OperatorFlags { retain_versions: text("9d"), ..none }, "--retain-versions"),
    ] {
        let flags = CrawlFlags { operator, contact_email: text("me@example.org"), ..CrawlFlags::default() };
        let settings = resolved(&flags).unwrap();
        let refused = settings.clone().single_pass().unwrap_err().to_string();
        assert!(refused.starts_with(&format!("{flag} is for a crawl that keeps running")), "{refused}");
        let crawl = settings.continuous().unwrap().crawl;
        assert_eq!(crawl.schedules.seeds.is_some(), flag == "--schedule-seeds");
        assert_eq!(
            crawl.retention.versions,
            (flag == "--retain-versions").then(|| Duration::from_hours(9 * 24))
        );
        assert!(crawl.schedules.housekeeping.is_some(), "the default, unless it is typed");
    }
    assert!(resolved(&CrawlFlags::default()).unwrap().single_pass().is_ok());
}

#[test]
fn errors_about_the_file_name_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentdex.toml");
    for (line, key) in [
        ("delay = \"3\"", "delay"),
        ("delay = \"10ms\"", "delay"),
        ("concurrency = 0", "concurrency"),
        ("rate = 0", "rate"),
        ("lease = \"2d\"", "lease"),
        ("revisit_every = \"1h\"", "revisit_every"),
        ("allow_addresses = [\"x\"]", "allow_addresses"),
        ("name_servers = [\"x\"]", "name_servers"),
        ("hosts = \"/nowhere/hosts\"", "hosts"),
        ("ca_file = \"/nowhere/ca\"", "ca_file"),
        ("schedule_seeds = \"daily\"", "schedule_seeds"),
        ("retain_feed = \"1h\"", "retain_feed"),
        ("park_wait = \"long\"", "park_wait"),
        ("signing_key = \"key.pem\"", "signing_key"),
        ("seeds = [\"https://10.0.0.1/list\"]", "seeds"),
    ] {
        std::fs::write(&path, format!("[crawler]\n{line}\n")).unwrap();
        let shared = SharedFlags { config: Some(path.clone()), ..SharedFlags::default() };
        let error = resolve(&shared, &CrawlFlags::default()).unwrap_err().to_string();
        let name = format!("`{key}` in [crawler] of {}", path.display());
        assert!(error.starts_with(&name), "{line}: {error}");
    }
    // the flag wins, and an error about it names it
    let shared = SharedFlags { config: Some(path), ..SharedFlags::default() };
    let typed = CrawlFlags { seeds: vec!["https://10.0.0.2/list".into()], ..CrawlFlags::default() };
    let error = resolve(&shared, &typed).unwrap_err().to_string();
    assert!(error.starts_with("--seeds: "), "{error}");
}

#[test]
fn names_the_file_without_a_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.pem");
    std::fs::write(&path, "no certificate").unwrap();
    let error = resolved(&CrawlFlags { ca_file: Some(path.clone()), ..CrawlFlags::default() }).unwrap_err();
    assert!(error.starts_with(&format!("--ca-file: {} holds no certificate", path.display())), "{error}");
}

#[test]
fn accepts_short_delays_only_for_own_networks() {
    let flags = |allow: &[&str]| CrawlFlags {
        delay: Some("10ms".to_owned()),
        allow_addresses: allow.iter().map(|network| (*network).to_owned()).collect(),
        ..CrawlFlags::default()
    };
    assert!(resolved(&flags(&[])).is_err());
    assert_eq!(resolved(&flags(&["10.0.0.0/8"])).unwrap().crawl.delay, Duration::from_millis(10));
    let second = CrawlFlags { delay: Some("1s".to_owned()), ..CrawlFlags::default() };
    assert_eq!(resolved(&second).unwrap().crawl.delay, DELAY_FLOOR);
}

#[test]
fn accepts_short_leases_only_for_own_networks() {
    let flags = |lease: &str, allow: &[&str]| CrawlFlags {
        lease: Some(lease.to_owned()),
        allow_addresses: allow.iter().map(|network| (*network).to_owned()).collect(),
        ..CrawlFlags::default()
    };
    let lease = |flags: &CrawlFlags| resolved(flags).map(|settings| settings.crawl.lease);
    let error = lease(&flags("119s", &[])).unwrap_err();
    assert!(error.starts_with("--lease must be at least 2 min"), "{error}");
    assert_eq!(lease(&flags("2m", &[])), Ok(LEASE_FLOOR));
    assert_eq!(lease(&flags("1s", &["10.0.0.0/8"])), Ok(Duration::from_secs(1)));
    assert_eq!(lease(&CrawlFlags::default()), Ok(LEASE_DURATION_DEFAULT));
}

#[test]
fn accepts_short_visit_intervals_only_for_own_networks() {
    let flags = |interval: &str, allow: &[&str]| CrawlFlags {
        revisit_every: Some(interval.to_owned()),
        allow_addresses: allow.iter().map(|network| (*network).to_owned()).collect(),
        ..CrawlFlags::default()
    };
    let every = |flags: &CrawlFlags| resolved(flags).map(|settings| settings.crawl.revisit_every);
    let error = every(&flags("23h", &[])).unwrap_err();
    assert!(error.starts_with("--revisit-every must be at least 1 d"), "{error}");
    assert!(every(&flags("0s", &["10.0.0.0/8"])).is_err());
    assert_eq!(every(&flags("7d", &[])), Ok(Some(Duration::from_hours(7 * 24))));
    assert_eq!(every(&flags("10m", &["10.0.0.0/8"])), Ok(Some(Duration::from_mins(10))));
    assert_eq!(every(&CrawlFlags::default()), Ok(None));
}

#[test]
fn continuous_crawl_without_a_contact_visits_only_own_networks() {
    let own = CrawlFlags { allow_addresses: vec!["10.0.0.0/8".to_owned()], ..CrawlFlags::default() };
    let reach = |flags: &CrawlFlags| resolved(flags).map(|settings| settings.crawl.egress.reach);
    assert_eq!(reach(&own), Ok(Reach::Everywhere));
    let daemon = CrawlFlags { daemon: true, ..own.clone() };
    assert_eq!(reach(&daemon), Ok(Reach::OwnNetworks));
    let reachable = CrawlFlags { contact_email: Some("me@example.org".to_owned()), ..daemon };
    assert_eq!(reach(&reachable), Ok(Reach::Everywhere));
    assert_eq!(resolved(&own).unwrap().continuous().unwrap().crawl.egress.reach, Reach::OwnNetworks);
    assert!(resolved(&CrawlFlags::default()).unwrap().continuous().is_err());
}

#[test]
fn the_starter_list_ships_with_the_program() {
    let crawl = CrawlFlags { seeds: vec!["starter".into()], ..CrawlFlags::default() };
    let settings = resolved(&crawl).unwrap();
    let [SeedSource::Text { text, .. }] = settings.crawl.seeds.as_slice() else {
        panic!("{:?}", settings.crawl.seeds)
    };
    let mut reader = crate::seeds::SeedReader::new(manifest::SiteScope::Public, &|| false);
    reader.read("starter", text.as_bytes(), |_| ()).unwrap();
    let report = reader.into_report();
    assert_eq!((report.rejected_count, report.duplicates), (0, 0), "{report:?}");
    assert!((50..=200).contains(&report.read), "{}", report.read);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("starter");
    std::fs::write(&file, "mine.example").unwrap();
    assert_eq!(seed_source("--seeds", &file).unwrap(), SeedSource::File(file));
}

#[test]
fn accepts_a_single_address_as_a_network() {
    let flags = CrawlFlags {
        allow_addresses: vec!["127.0.0.1".into(), "10.0.0.0/8".into()],
        ..CrawlFlags::default()
    };
    assert!(resolved(&flags).is_ok());
}

#[test]
fn a_contact_that_is_missing_or_an_example_is_a_warning() {
    let warning = |email: Option<&str>| {
        let flags = CrawlFlags { contact_email: email.map(str::to_owned), ..CrawlFlags::default() };
        resolved(&flags).unwrap().contact_warning()
    };
    assert!(warning(None).is_some_and(|warning| warning.starts_with("site owners cannot reach you")));
    let example = warning(Some("you@example.org")).unwrap_or_default();
    assert!(example.starts_with("you@example.org is an example address"), "{example}");
    assert_eq!(warning(Some("me@mine.example")), None);
}
