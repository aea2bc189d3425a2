//! Handwritten logs. By default, a log is polite: the crawler identifies itself and waits a second between requests.

use agentdex_tests::audit::{self, Policy, Report, Rule};
use testweb::{
    Hit,
    hit::{RequestHeaders, ResponseHeaders},
};

pub(crate) const SECOND_US: u64 = 1_000_000;
pub(crate) const HOUR_US: u64 = 3_600 * SECOND_US;
/// Duration of each response.
const RESPONSE_US: u64 = 2_000;
/// The start of the log: 14 November 2023, 22:13:20 UTC.
pub(crate) const BEGAN_S: u64 = 1_700_000_000;

/// Builds a log.
pub(crate) struct Crafted {
    hits: Vec<Hit>,
    now_us: u64,
}

impl Crafted {
    /// A log that begins with the robots.txt of `site.example`.
    pub(crate) fn new() -> Self {
        Self::empty().robots("User-agent: *\nDisallow: /private\n")
    }

    pub(crate) fn empty() -> Self {
        Self { hits: Vec::new(), now_us: 0 }
    }

    pub(crate) fn robots(self, body: &str) -> Self {
        self.get("/robots.txt").change(|hit| hit.robots_body = Some(body.into()))
    }

    pub(crate) fn get(self, path: &str) -> Self {
        self.get_on("site.example", path)
    }

    /// Adds a request at the current time, its response, and a second without requests.
    pub(crate) fn get_on(mut self, host: &str, path: &str) -> Self {
        let request = RequestHeaders {
            user_agent: Some("agentdex/0.1.0 (+https://github.com/agentdex/agentdex)".to_owned()),
            ..RequestHeaders::default()
        };
        self.hits.push(Hit {
            id: self.hits.len() as u64,
            connection: 0,
            started_us: self.now_us,
            ended_us: self.now_us + RESPONSE_US,
            wall_us: BEGAN_S * SECOND_US + self.now_us,
            peer: "127.0.0.1:40000".parse().expect("an address"),
            server: "127.0.0.1:8443".parse().expect("an address"),
            host: host.to_owned(),
            authority: host.to_owned(),
            http_version: "HTTP/2.0".to_owned(),
            method: "GET".to_owned(),
            path: path.to_owned(),
            request,
            status: Some(200),
            response: ResponseHeaders {
                content_type: Some("application/json".to_owned()),
                ..ResponseHeaders::default()
            },
            body_bytes: 100,
            complete: true,
            posted: None,
            robots_body: None,
        });
        self.wait(RESPONSE_US + SECOND_US)
    }

    /// Advances the time.
    pub(crate) fn wait(mut self, us: u64) -> Self {
        self.now_us += us;
        self
    }

    /// Starts the next request this long after the end of the last response.
    pub(crate) fn hurry(mut self, gap_us: u64) -> Self {
        self.now_us = self.hits.last().map_or(0, |hit| hit.ended_us) + gap_us;
        self
    }

    /// Starts the next request in the middle of the last one.
    pub(crate) fn overlap(mut self) -> Self {
        self.now_us = self.hits.last().map_or(0, |hit| hit.started_us) + RESPONSE_US / 2;
        self
    }

    /// Changes the last hit.
    pub(crate) fn change(mut self, change: impl FnOnce(&mut Hit)) -> Self {
        change(self.hits.last_mut().expect("a hit to change"));
        self
    }

    pub(crate) fn status(self, status: u16) -> Self {
        self.change(|hit| hit.status = Some(status))
    }

    pub(crate) fn response(self, change: impl FnOnce(&mut ResponseHeaders)) -> Self {
        self.change(|hit| change(&mut hit.response))
    }

    pub(crate) fn request(self, change: impl FnOnce(&mut RequestHeaders)) -> Self {
        self.change(|hit| change(&mut hit.request))
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.now_us
    }

    pub(crate) fn check(&self, policy: &Policy) -> Report {
        audit::check(&self.hits, policy)
    }

    /// Asserts that the log breaks no rule.
    #[track_caller]
    pub(crate) fn keeps(&self, policy: &Policy) {
        self.check(policy).assert_clean();
    }

    /// Asserts that the log breaks this rule the given number of times, and no other rule.
    #[track_caller]
    pub(crate) fn breaks(&self, rule: Rule, times: usize, policy: &Policy) {
        let report = self.check(policy);
        assert_eq!(report.count(rule), times, "{report}");
        assert_eq!(report.violations.len(), times, "{report}");
    }
}
