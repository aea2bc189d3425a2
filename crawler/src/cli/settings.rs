//! Combines the flags, the environment and the configuration file. Flags take precedence over the file, and the file over defaults. All
//! settings are checked here, before anything is opened or sent.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::settings::log::{Log, LogFormat, LogLevel};
use ::settings::{SettingsError, SharedFlags, TracesUrl};
use manifest::Host;
use policy::delay::{DELAY_DEFAULT, DELAY_FLOOR};
use policy::schedule::REVISIT_EVERY_FLOOR;
use policy::{AddressVerdict, OwnNetworks};
use store::{
    DatabaseUrl, LEASE_DURATION_DEFAULT, LEASE_DURATION_MAX, Retention, SLOW_STATEMENT_DEFAULT, StoreConfig,
};

use super::duration;
use super::egress_settings::egress_settings;
use super::file::ConfigFile;
use super::flags::{CrawlFlags, OperatorFlags};
use super::given::{Given, given, given_list};
use super::seed_sources::seed_sources;
use crate::config::{
    CONCURRENCY_DEFAULT, CrawlConfig, EndpointChecks, Mode, PARK_WAIT_DEFAULT, RATE_DEFAULT, SeedLists,
    TextRecords, WithoutSeeds, worker_id,
};
use crate::crontab::Crontab;
use crate::groups::LEASE_FLOOR;
use crate::output::OutputFormat;
use crate::schedule::Schedules;
use egress::{Contact, ContactError, Reach};
use runtime::ReaderProgram;

/// Default schedule of housekeeping: once an hour, a little after the hour.
const HOUSEKEEPING_DEFAULT: &str = "23 * * * *";
/// Readers poll the feed at least once a day.
const RETAINED_MIN: Duration = Duration::from_hours(24);
/// With a shorter interval, a site in the operator's own networks would be visited continuously.
const REVISIT_EVERY_MIN: Duration = Duration::from_secs(1);
/// More visits would need more file descriptors than a process can have.
const CONCURRENCY_MAX: u32 = 50_000;

/// A wrong argument, described in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Verbosity of stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    Quiet,
    Normal,
    Verbose,
    Everything,
}

/// Settings of every agentdex program.
#[derive(Debug, Clone)]
pub struct SharedSettings {
    pub data_dir: PathBuf,
    pub store: StoreConfig,
    pub log_format: LogFormat,
    pub log_level: LogLevel,
    /// Where spans are sent, from the file.
    pub traces_url: Option<TracesUrl>,
    pub verbosity: Verbosity,
    /// The typed flags that locate the data, for commands in messages.
    pub location: String,
}

impl SharedSettings {
    /// Sends log lines to stderr, and spans to the collector, if there is one.
    pub fn start_logging(&self, program: &'static str) -> Log {
        ::settings::log::start(program, self.log_format, self.log_level, self.traces_url.as_ref())
    }
}

/// The parsed settings and command.
#[derive(Debug, Clone)]
pub struct Settings {
    pub shared: SharedSettings,
    pub crawl: CrawlConfig,
    pub contact: Contact,
    pub output: OutputFormat,
    /// Listen address of the crawler's metrics.
    pub metrics: Option<SocketAddr>,
    /// Whether the program only lists requests and sends none.
    pub dry_run: bool,
    /// The first typed flag that only affects a crawl that keeps running.
    pub continuous_flag: Option<&'static str>,
}

impl Settings {
    /// The settings of a crawl that runs until it is stopped. Site owners must be able to reach its operator, so without a contact it
    /// visits only the operator's own networks.
    ///
    /// # Errors
    ///
    /// If there is no contact, and no network of the operator's own.
    pub fn continuous(mut self) -> Result<Self, UsageError> {
        let housekeeping = &mut self.crawl.schedules.housekeeping;
        *housekeeping = housekeeping.take().or_else(|| Crontab::parse(HOUSEKEEPING_DEFAULT).ok());
        if !self.contact.is_missing() {
            return Ok(self);
        }
        if self.crawl.egress.own_networks == OwnNetworks::default() {
            return Err(UsageError(
                "a crawl that keeps running needs --contact-email or --contact-url (or the same keys in [crawler] of the \
                 configuration file), so that site owners can reach you; a single pass needs none: `crawler` without --daemon, `agentdex` with --once"
                    .to_owned(),
            ));
        }
        self.crawl.egress.reach = Reach::OwnNetworks;
        Ok(self)
    }

    /// The settings of a single pass. It runs no scheduled task, so flags for these tasks are refused.
    ///
    /// # Errors
    ///
    /// If such a flag was typed.
    pub fn single_pass(self) -> Result<Self, UsageError> {
        match self.continuous_flag {
            None => Ok(self),
            Some(flag) => Err(UsageError(format!(
                "{flag} is for a crawl that keeps running, `crawler --daemon` or `agentdex` without --once: a single pass has no schedule, \
                 and `agentdex db retain` removes old data at once"
            ))),
        }
    }

    /// What is wrong with the contact, if owners of the sites that are visited cannot reach the operator.
    fn contact_warning(&self) -> Option<String> {
        if let Some(example) = self.contact.copied_example() {
            return Some(format!(
                "{example} is an example address, where site owners cannot reach you: name your own with --contact-email or --contact-url"
            ));
        }
        let egress = &self.crawl.egress;
        if !self.contact.is_missing() || egress.reach == Reach::OwnNetworks {
            return None;
        }
        let whose = if egress.own_networks == OwnNetworks::default() {
            "site owners"
        } else {
            "if you visit sites outside --allow-addresses, their owners"
        };
        Some(format!(
            "{whose} cannot reach you: requests name no contact, so a site owner with a complaint can only block the crawler; \
             add --contact-email ADDRESS or --contact-url URL"
        ))
    }

    /// Warns before a crawl if site owners cannot reach the operator.
    pub fn warn_about_contact(&self) {
        if self.shared.verbosity != Verbosity::Quiet
            && let Some(warning) = self.contact_warning()
        {
            tracing::warn!("{warning}");
        }
    }

    /// Gives the same warning before a visit to one host, unless the hosts file maps the host only to addresses in the operator's own
    /// networks.
    pub(crate) fn warn_about_contact_to(&self, host: &Host) {
        let egress = &self.crawl.egress;
        let is_own =
            |address: &SocketAddr| matches!(egress.own_networks.judge(address.ip()), AddressVerdict::Own(_));
        if !egress.hosts.find(host).is_some_and(|addresses| addresses.iter().all(is_own)) {
            self.warn_about_contact();
        }
    }
}

/// Combines flags with the configuration file they name.
pub fn resolve(shared: &SharedFlags, crawl: &CrawlFlags) -> Result<Settings, UsageError> {
    let file = read_file(shared)?;
    let contact = contact(crawl, &file)?;
    let mode = mode(crawl, &file)?;
    let shared = shared_settings(shared, &file)?;
    let locked_database = match &shared.store.url {
        DatabaseUrl::Sqlite(path) => Some(path.clone()),
        DatabaseUrl::Postgres(_) => None,
    };
    let settings = Settings {
        crawl: CrawlConfig { locked_database, ..crawl_config(crawl, &file, &contact, mode)? },
        shared,
        contact,
        output: crawl.format.unwrap_or_default(),
        metrics: crawl.operator.metrics.or(file.crawler.metrics),
        dry_run: crawl.operator.dry_run,
        continuous_flag: continuous_flag(&crawl.operator),
    };
    if mode == Mode::Daemon { settings.continuous() } else { Ok(settings) }
}

/// The log level of the flags and the current file; read again at SIGHUP.
pub fn log_level(flags: &SharedFlags) -> Result<LogLevel, UsageError> {
    Ok(level(flags, &read_file(flags)?))
}

fn read_file(flags: &SharedFlags) -> Result<ConfigFile, UsageError> {
    let mut file: ConfigFile = ::settings::load(flags.config.as_deref(), &::settings::variables())?;
    file.path.clone_from(&flags.config);
    Ok(file)
}

impl From<SettingsError> for UsageError {
    fn from(error: SettingsError) -> Self {
        Self(error.to_string())
    }
}

fn verbosity(flags: &SharedFlags) -> Verbosity {
    match (flags.quiet, flags.verbose) {
        (true, _) => Verbosity::Quiet,
        (false, 0) => Verbosity::Normal,
        (false, 1) => Verbosity::Verbose,
        (false, _) => Verbosity::Everything,
    }
}

fn level(flags: &SharedFlags, file: &ConfigFile) -> LogLevel {
    flags.log_level(file.log_level, LogLevel::Warn)
}

fn shared_settings(flags: &SharedFlags, file: &ConfigFile) -> Result<SharedSettings, UsageError> {
    let data_dir = flags.data_dir(file.data_dir.clone());
    let url = flags.database_url(file.database_url.clone(), file.database_url_file.as_deref())?;
    let url = match url {
        Some(text) => DatabaseUrl::parse(&text).map_err(|error| UsageError(error.to_string()))?,
        None => DatabaseUrl::in_data_dir(&data_dir),
    };
    let log_format = flags.log_format.or(file.log_format).unwrap_or_default();
    let slow_statement = file.slow_statement_ms.map_or(SLOW_STATEMENT_DEFAULT, Duration::from_millis);
    Ok(SharedSettings {
        data_dir,
        store: StoreConfig { slow_statement, ..StoreConfig::new(url) },
        log_format,
        log_level: level(flags, file),
        traces_url: file.traces_url.clone(),
        verbosity: verbosity(flags),
        location: flags.location(store::url_to_type),
    })
}

fn crawl_config(
    flags: &CrawlFlags,
    file: &ConfigFile,
    contact: &Contact,
    mode: Mode,
) -> Result<CrawlConfig, UsageError> {
    let table = &file.crawler;
    let egress = egress_settings(flags, file, contact)?;
    let lease = lease(flags, file, &egress.own_networks)?;
    Ok(CrawlConfig {
        delay: delay(flags, file, &egress.own_networks)?,
        revisit_every: revisit_every(flags, file, &egress.own_networks)?,
        egress,
        seeds: seed_sources(&given_list("--seeds", &flags.seeds, &table.seeds, file))?,
        seed_lists: if flags.follow_seeds || table.follow_seeds == Some(true) {
            SeedLists::Followed
        } else {
            SeedLists::Added
        },
        without_seeds: match mode {
            Mode::Once { .. } => WithoutSeeds::Fails,
            Mode::Daemon => WithoutSeeds::VisitsKnownSites,
        },
        seeds_read_at: None,
        mode,
        rate: rate(&given("--rate", flags.rate, table.rate, file))?,
        concurrency: concurrency(&given("--concurrency", flags.concurrency, table.concurrency, file))?,
        revisit_older_than: read_duration(&given("--revisit", flags.revisit.as_deref(), None, file))?,
        worker: worker_id(),
        locked_database: None,
        lock: None,
        lease,
        schedules: schedules(&flags.operator, file)?,
        retention: retention(&flags.operator, file)?,
        events: first(flags.operator.events.as_ref(), table.events.as_ref()),
        text_records: if flags.operator.text_records || table.text_records {
            TextRecords::Queried
        } else {
            TextRecords::Ignored
        },
        endpoint_checks: if flags.operator.check_endpoints || table.check_endpoints {
            EndpointChecks::Daily
        } else {
            EndpointChecks::Off
        },
        reader: Some(reader_program()?),
    })
}

/// The path of this program, which starts itself in a separate process to read long documents.
fn reader_program() -> Result<ReaderProgram, UsageError> {
    ReaderProgram::this_program().map_err(|error| {
        UsageError(format!(
            "documents are read in a process of this program, and its path is not known: {error}"
        ))
    })
}

/// The delay. At public addresses it is never below the minimum, so a shorter delay is accepted only together with networks to which it
/// applies.
fn delay(flags: &CrawlFlags, file: &ConfigFile, own: &OwnNetworks) -> Result<Duration, UsageError> {
    let given = given("--delay", flags.delay.as_deref(), file.crawler.delay.as_deref(), file);
    let delay = read_duration(&given)?.unwrap_or(DELAY_DEFAULT);
    if delay < DELAY_FLOOR && *own == OwnNetworks::default() {
        return Err(UsageError(format!(
            "{} must be at least {} for public sites; --allow-addresses names networks of your own, which may \
             have less",
            given.name,
            duration::in_words(DELAY_FLOOR)
        )));
    }
    Ok(delay)
}

/// How long a site is leased. At public addresses, every request that is sent under a lease ends before the lease does.
fn lease(flags: &CrawlFlags, file: &ConfigFile, own: &OwnNetworks) -> Result<Duration, UsageError> {
    let given = given("--lease", flags.lease.as_deref(), file.crawler.lease.as_deref(), file);
    let lease = read_duration(&given)?.unwrap_or(LEASE_DURATION_DEFAULT);
    if lease > LEASE_DURATION_MAX {
        return Err(UsageError(format!("{} must be at most one day", given.name)));
    }
    if lease < LEASE_FLOOR && *own == OwnNetworks::default() {
        return Err(UsageError(format!(
            "{} must be at least {} for public sites; --allow-addresses names networks of your own, which may \
             have less",
            given.name,
            duration::in_words(LEASE_FLOOR)
        )));
    }
    Ok(lease)
}

/// The operator's interval between visits. At public addresses it is never below the minimum, so a shorter one is accepted only together
/// with networks to which it applies.
fn revisit_every(
    flags: &CrawlFlags,
    file: &ConfigFile,
    own: &OwnNetworks,
) -> Result<Option<Duration>, UsageError> {
    let (typed, filed) = (flags.revisit_every.as_deref(), file.crawler.revisit_every.as_deref());
    let given = given("--revisit-every", typed, filed, file);
    let interval = read_duration(&given)?;
    if interval.is_some_and(|interval| interval < REVISIT_EVERY_FLOOR) && *own == OwnNetworks::default() {
        return Err(UsageError(format!(
            "{} must be at least {} for public sites; --allow-addresses names networks of your own, which \
             may have less",
            given.name,
            duration::in_words(REVISIT_EVERY_FLOOR)
        )));
    }
    if interval.is_some_and(|interval| interval < REVISIT_EVERY_MIN) {
        return Err(UsageError(format!(
            "{} must be at least {}",
            given.name,
            duration::in_words(REVISIT_EVERY_MIN)
        )));
    }
    Ok(interval)
}

/// The first typed flag of a scheduled task.
fn continuous_flag(typed: &OperatorFlags) -> Option<&'static str> {
    let flags = [
        ("--schedule-seeds", &typed.schedule_seeds),
        ("--schedule-housekeeping", &typed.schedule_housekeeping),
        ("--schedule-report", &typed.schedule_report),
        ("--retain-feed", &typed.retain_feed),
        ("--retain-versions", &typed.retain_versions),
    ];
    flags.into_iter().find(|(_, value)| value.is_some()).map(|(flag, _)| flag)
}

fn schedules(typed: &OperatorFlags, file: &ConfigFile) -> Result<Schedules, UsageError> {
    let table = &file.crawler;
    let read = |flag: &str, typed: Option<&String>, filed: Option<&String>| {
        let Given { name, value } = given(flag, typed, filed, file);
        let parse =
            |text: &String| Crontab::parse(text).map_err(|error| UsageError(format!("{name}: {error}")));
        value.map(parse).transpose()
    };
    Ok(Schedules {
        seeds: read("--schedule-seeds", typed.schedule_seeds.as_ref(), table.schedule_seeds.as_ref())?,
        housekeeping: read(
            "--schedule-housekeeping",
            typed.schedule_housekeeping.as_ref(),
            table.schedule_housekeeping.as_ref(),
        )?,
        report: read("--schedule-report", typed.schedule_report.as_ref(), table.schedule_report.as_ref())?,
    })
}

fn retention(typed: &OperatorFlags, file: &ConfigFile) -> Result<Retention, UsageError> {
    let read = |flag: &str, typed: Option<&String>, filed: Option<&String>| {
        let given = given(flag, typed.map(String::as_str), filed.map(String::as_str), file);
        let age = read_duration(&given)?;
        if age.is_some_and(|age| age < RETAINED_MIN) {
            return Err(UsageError(format!("{} must be at least one day (1d)", given.name)));
        }
        Ok(age)
    };
    let table = &file.crawler;
    Ok(Retention {
        feed: read("--retain-feed", typed.retain_feed.as_ref(), table.retain_feed.as_ref())?,
        versions: read("--retain-versions", typed.retain_versions.as_ref(), table.retain_versions.as_ref())?,
    })
}

fn mode(flags: &CrawlFlags, file: &ConfigFile) -> Result<Mode, UsageError> {
    if flags.daemon {
        return Ok(Mode::Daemon);
    }
    let park_wait = given("--park-wait", flags.park_wait.as_deref(), file.crawler.park_wait.as_deref(), file);
    let park_wait = read_duration(&park_wait)?.unwrap_or(PARK_WAIT_DEFAULT);
    Ok(Mode::Once { park_wait, goes_on: false })
}

fn contact(flags: &CrawlFlags, file: &ConfigFile) -> Result<Contact, UsageError> {
    let (flag, in_file) = (flags.contact_url.as_deref(), file.crawler.contact_url.as_deref());
    let url = given("--contact-url", flag, in_file, file);
    let (flag, in_file) = (flags.contact_email.as_deref(), file.crawler.contact_email.as_deref());
    let email = given("--contact-email", flag, in_file, file);
    Contact::parse(url.value, email.value).map_err(|error| {
        let name = match &error {
            ContactError::Url(_) => &url.name,
            ContactError::Email(_) => &email.name,
        };
        UsageError(format!("{name}: {error}"))
    })
}

fn rate(given: &Given<u32>) -> Result<NonZeroU32, UsageError> {
    given.value.map_or(Ok(RATE_DEFAULT), |rate| {
        NonZeroU32::new(rate)
            .ok_or_else(|| UsageError(format!("{} must be at least 1 request a second", given.name)))
    })
}

fn concurrency(given: &Given<u32>) -> Result<usize, UsageError> {
    match given.value {
        None => Ok(CONCURRENCY_DEFAULT),
        Some(count @ 1..=CONCURRENCY_MAX) => Ok(usize::try_from(count).unwrap_or(CONCURRENCY_DEFAULT)),
        Some(_) => Err(UsageError(format!("{} must be between 1 and {CONCURRENCY_MAX}", given.name))),
    }
}

fn read_duration(given: &Given<&str>) -> Result<Option<Duration>, UsageError> {
    let parse = |text| duration::parse(text).map_err(|error| UsageError(format!("{}: {error}", given.name)));
    given.value.map(parse).transpose()
}

pub(super) fn read_text(name: &str, path: &Path) -> Result<String, UsageError> {
    std::fs::read_to_string(path)
        .map_err(|error| UsageError(format!("{name}: cannot read {}: {error}", path.display())))
}

pub(super) fn first<T: Clone>(flag: Option<&T>, file: Option<&T>) -> Option<T> {
    flag.or(file).cloned()
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
