//! Turns at a suffix and at an address together, over a store of its own.

use store::{SuffixPermitOutcome, SuffixPermitRequest};
use tokio_util::task::TaskTracker;

use super::*;

/// How long the other workers have taken the turns of the suffix for.
const TAKEN: Duration = Duration::from_secs(3);

struct Desk {
    pace: Pace,
    store: Store,
    _dir: tempfile::TempDir,
}

async fn desk() -> Desk {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    let rate = NonZeroU32::new(1_000).unwrap();
    let pace = Pace::start(store.clone(), Duration::ZERO, rate, Duration::from_mins(1), &TaskTracker::new());
    Desk { pace, store, _dir: dir }
}

impl Desk {
    /// Another worker's turn, after which the next one is far off.
    async fn take_all_turns(&self) {
        let now = clock::now();
        let (open_max, life) = (4, Duration::from_mins(1));
        let (suffix, latest) = ("github.io".to_owned(), later(now, TAKEN));
        let request = SuffixPermitRequest { suffix, from: now, latest, gap: TAKEN, open_max, life };
        assert!(matches!(
            self.store.suffix_permit_take(&request).await.unwrap(),
            SuffixPermitOutcome::Taken(_)
        ));
    }

    async fn turn(&self, name: &str) -> Turn {
        let mut clock = AuthorityClock::new(Host::parse(name).unwrap(), None, 0, 0);
        let asked = self.pace.ask(&github_pages(), &mut clock, &SiteClock::default()).await.unwrap();
        let Asked::Go(turn) = asked else { panic!("{name}: {asked:?}") };
        turn
    }
}

/// Where sites below `github.io` lie, and others with names of their own.
fn github_pages() -> Target {
    let addresses = vec!["185.199.108.153".parse().unwrap()];
    Target { addresses, network: Network::Global, crawl_delay: None }
}

#[tokio::test]
async fn who_waits_for_a_suffix_holds_up_nobody_at_the_same_address() {
    let desk = desk().await;
    desk.take_all_turns().await;
    let began = Instant::now();
    let others = async {
        // the one below the suffix has come first
        tokio::time::sleep(Duration::from_millis(100)).await;
        for name in ["a.example", "b.example"] {
            drop(desk.turn(name).await);
        }
        began.elapsed()
    };
    let (turn, others_took) = tokio::join!(desk.turn("alice.github.io"), others);
    assert!(others_took < TAKEN / 2, "the others waited for {others_took:?}");
    assert!(
        began.elapsed() >= TAKEN.saturating_sub(WRITE_TIME_MAX.min(TAKEN / 2)),
        "its turn came after {:?}",
        began.elapsed()
    );
    // the gap of the platform counts from when that request leaves
    let leaves_at = turn.below.as_ref().unwrap().turn.at;
    drop(turn);
    drop(desk.turn("c.example").await);
    let gap = Scope::Platform.limits().gap;
    assert!(clock::now() >= later(leaves_at, gap), "{} after {leaves_at}", clock::now());
}

/// Thousands of visits wait for their turns and clocks at once, so that what is rare has its state apart.
#[tokio::test]
async fn who_waits_for_a_turn_or_a_clock_carries_little() {
    const BYTES_MAX: usize = 2_048;
    let desk = desk().await;
    let (target, mut site) = (github_pages(), SiteClock::default());
    let mut clock = AuthorityClock::new(Host::parse("a.example").unwrap(), None, 0, 0);
    let asking = size_of_val(&desk.pace.ask(&target, &mut clock, &site));
    let mut turn = desk.turn("b.example").await;
    let leave = Leave { turn: &mut turn, progress: None, member: None };
    let clearing = size_of_val(&desk.pace.clear(&target, &mut clock, &mut site, leave));
    assert!(asking <= BYTES_MAX && clearing <= BYTES_MAX, "{asking} bytes to ask, {clearing} to be cleared");
}
