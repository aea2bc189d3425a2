//! Tests of permits with a store: those that need both a suffix and an address, and those at an address that several processes use.

use chrono::TimeDelta;
use store::{LeaseRequest, Seed, SuffixPermitOutcome, SuffixPermitRequest, WorkerId};
use tokio_util::task::TaskTracker;

use super::*;

/// A seed is due within a minute.
const DAY: Duration = Duration::from_hours(24);
/// Time for which other workers have reserved the suffix.
const RESERVED: Duration = Duration::from_secs(3);

struct Fixture {
    pace: Pace,
    store: Store,
    _dir: tempfile::TempDir,
}

async fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    let rate = NonZeroU32::new(1_000).unwrap();
    let lifetimes = Lifetimes::of(Duration::from_mins(3));
    let pace = Pace::start(store.clone(), Duration::ZERO, rate, lifetimes, &TaskTracker::new());
    Fixture { pace, store, _dir: dir }
}

impl Fixture {
    /// Reserves the suffix for another worker.
    async fn reserve_suffix(&self) {
        let now = clock::now();
        let (open_max, life) = (4, Duration::from_mins(1));
        let (suffix, latest) = ("github.io".to_owned(), later(now, RESERVED));
        let request = SuffixPermitRequest { suffix, from: now, latest, gap: RESERVED, open_max, life };
        assert!(matches!(
            self.store.suffix_permit_take(&request).await.unwrap(),
            SuffixPermitOutcome::Taken(_)
        ));
    }

    async fn permit(&self, name: &str) -> Permit {
        let mut clock = AuthorityClock::new(Host::parse(name).unwrap(), None, 0, 0);
        let answer = self.pace.acquire(&github_pages(), &mut clock, &SiteClock::default()).await.unwrap();
        let PermitAnswer::Granted(permit) = answer else { panic!("{name}: {answer:?}") };
        permit
    }
}

/// An address of GitHub Pages, which serves `github.io` and other names.
fn github_pages() -> Target {
    let addresses = vec!["185.199.108.153".parse().unwrap()];
    Target {
        addresses,
        network: Network::Global,
        role: AddressRole::Owner,
        crawl_delay: None,
        budget: Budget::Whole,
    }
}

#[tokio::test]
async fn waiting_for_a_suffix_does_not_delay_others_at_the_same_address() {
    let fixture = fixture().await;
    fixture.reserve_suffix().await;
    let began = Instant::now();
    let others = async {
        // the visit below the suffix arrives first
        tokio::time::sleep(Duration::from_millis(100)).await;
        for name in ["a.example", "b.example"] {
            drop(fixture.permit(name).await);
        }
        began.elapsed()
    };
    let (permit, others_took) = tokio::join!(fixture.permit("alice.github.io"), others);
    assert!(others_took < RESERVED / 2, "the others waited for {others_took:?}");
    assert!(
        began.elapsed() >= RESERVED.saturating_sub(RESERVED / 2),
        "its permit came after {:?}",
        began.elapsed()
    );
    // the gap of the platform begins when that request is sent
    let leaves_at = permit.suffix.as_ref().unwrap().reservation.at;
    drop(permit);
    drop(fixture.permit("c.example").await);
    let gap = Scope::Platform.limits().gap;
    assert!(clock::now() >= later(leaves_at, gap), "{} after {leaves_at}", clock::now());
}

/// Sends requests at one address, one after another, and returns when each began.
async fn requests_at(pace: &Pace, store: &Store, name: &str, role: AddressRole) -> Vec<DateTime<Utc>> {
    const REQUESTS: usize = 3;
    let (host, now) = (Host::parse(name).unwrap(), clock::now());
    store.seeds_add(&[Seed::of_host(host.clone())], now).await.unwrap();
    let only = Some(vec![host.site()]);
    let request = LeaseRequest { only, ..LeaseRequest::due_now(WorkerId::new(name), 1, later(now, DAY)) };
    let lease = store.sites_lease(&request, now).await.unwrap().remove(0).token;
    let addresses = vec!["93.184.216.34".parse().unwrap()];
    let target =
        Target { addresses, network: Network::Global, role, crawl_delay: None, budget: Budget::Whole };
    let mut began = Vec::new();
    while began.len() < REQUESTS {
        // each request is for another host, so only the limit of the address applies
        let mut clock = AuthorityClock::new(host.clone(), None, 0, 0);
        let answer = pace.acquire(&target, &mut clock, &SiteClock::default()).await.unwrap();
        let PermitAnswer::Granted(mut permit) = answer else { continue };
        let departure = Departure { permit: &mut permit, lease: lease.clone(), progress: None, member: None };
        let mut site = SiteClock::default();
        let clearance = pace.write_clocks(&target, &mut clock, &mut site, departure).await.unwrap();
        assert!(matches!(clearance, Clearance::Granted { .. }), "{name}: {clearance:?}");
        began.push(clock::now());
        pace.finish(&target, &mut clock, &mut site, Duration::ZERO, None);
    }
    began
}

/// Each of three processes has its own limiter. They share only the database.
#[tokio::test]
async fn requests_of_an_owner_and_two_guests_are_a_gap_apart() {
    let fixture = fixture().await;
    let rate = NonZeroU32::new(1_000).unwrap();
    let (lifetimes, tracker) = (Lifetimes::of(Duration::from_mins(3)), TaskTracker::new());
    let process = || Pace::start(fixture.store.clone(), Duration::ZERO, rate, lifetimes, &tracker);
    let [owner, first, second] = [process(), process(), process()];
    let requests = |pace, name, role| requests_at(pace, &fixture.store, name, role);
    let (owner, first, second) = tokio::join!(
        requests(&owner, "a.example", AddressRole::Owner),
        requests(&first, "b.example", AddressRole::Guest),
        requests(&second, "c.example", AddressRole::Guest),
    );
    let mut began = [owner, first, second].concat();
    began.sort_unstable();
    let gap = TimeDelta::from_std(Scope::Address.limits().gap).unwrap();
    let close: Vec<TimeDelta> =
        began.windows(2).map(|pair| pair[1] - pair[0]).filter(|between| *between < gap).collect();
    assert!(close.is_empty(), "{close:?} between {began:?}");
}

/// Thousands of visits wait for permits and clocks at the same time, so large futures that are rarely needed are boxed.
#[tokio::test]
async fn waiting_for_a_permit_or_a_clock_takes_little_memory() {
    const BYTES_MAX: usize = 2_048;
    let fixture = fixture().await;
    let (target, mut site) = (github_pages(), SiteClock::default());
    let mut clock = AuthorityClock::new(Host::parse("a.example").unwrap(), None, 0, 0);
    let acquiring = size_of_val(&fixture.pace.acquire(&target, &mut clock, &site));
    let mut permit = fixture.permit("b.example").await;
    let lease = LeaseToken {
        site: Host::parse("a.example").unwrap().site(),
        worker: WorkerId::new("test"),
        fence: 1,
        expires_at: clock::now(),
        due_at: clock::now(),
        address_group: None,
    };
    let departure = Departure { permit: &mut permit, lease, progress: None, member: None };
    let writing = size_of_val(&fixture.pace.write_clocks(&target, &mut clock, &mut site, departure));
    assert!(acquiring <= BYTES_MAX && writing <= BYTES_MAX, "{acquiring} and {writing} bytes");
}
