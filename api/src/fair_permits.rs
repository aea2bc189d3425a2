//! A fair semaphore: waiting clients get permits in turn, so a client with many waiting requests delays each other client by one of its
//! requests, not by all of them.
//!
//! Each customer ([`runtime::customer`]) has its own queue. Otherwise one customer with an IPv6 /48, which has many client addresses, would
//! be served before all others. A free permit goes to the client that was served least recently, as FQ-CoDel does with new flows (RFC 8290
//! §4.2): a new client is served next, however many greedy clients wait. A request for more permits than are free waits for them, and
//! blocks later requests, so that it is served eventually. Requests of a client that holds its maximum number of permits block only each
//! other.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::sync::oneshot::error::RecvError;

/// Number of remembered grants: more than the expected number of greedy clients. A client without a remembered grant counts as new.
const REMEMBERED_GRANTS: usize = 256;

/// A number of permits, shared by all clients.
#[derive(Debug, Clone)]
pub(crate) struct FairPermits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    total: usize,
    client_max: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// The permits of each client.
    held: HashMap<IpAddr, usize>,
    /// The waiting clients, each once, in the order of their turns.
    turns: BTreeMap<Turn, IpAddr>,
    waiting: HashMap<IpAddr, VecDeque<Waiter>>,
    /// The latest grants, and the latest one of each of their clients.
    grants: VecDeque<(u64, IpAddr)>,
    latest_grants: HashMap<IpAddr, u64>,
    /// Numbers grants and arrivals.
    number: u64,
}

/// Position in the queue: the number of the client's latest grant (0 for a new client), then the number of its arrival.
type Turn = (u64, u64);

#[derive(Debug)]
struct Waiter {
    amount: usize,
    granted: oneshot::Sender<Permit>,
}

/// An amount of permits, returned on drop.
#[derive(Debug)]
pub(crate) struct Permit {
    of: Arc<Shared>,
    client: IpAddr,
    amount: usize,
}

impl FairPermits {
    pub(crate) fn new(total: usize) -> Self {
        Self::with_client_max(total, usize::MAX)
    }

    /// Permits; a client may hold only a limited number of them at the same time.
    pub(crate) fn with_client_max(total: usize, client_max: usize) -> Self {
        let state = State {
            free: total,
            held: HashMap::new(),
            turns: BTreeMap::new(),
            waiting: HashMap::new(),
            grants: VecDeque::new(),
            latest_grants: HashMap::new(),
            number: 0,
        };
        Self(Arc::new(Shared { total, client_max, state: Mutex::new(state) }))
    }

    /// Waits until it is the turn of the client's customer and `amount` permits are free. A number above the total means all permits. A
    /// dropped request leaves the queue.
    pub(crate) async fn acquire(&self, client: IpAddr, amount: usize) -> Result<Permit, RecvError> {
        let client = runtime::customer(client);
        let (granted, permit) = oneshot::channel();
        let waiter = Waiter { amount: amount.clamp(1, self.0.total), granted };
        self.0.state().enqueue(client, waiter);
        self.0.grant();
        permit.await
    }

    pub(crate) fn free(&self) -> usize {
        self.0.state().free
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives free permits to waiting requests.
    fn grant(self: &Arc<Self>) {
        let mut state = self.state();
        let mut abandoned = Vec::new();
        while let Some((client, waiter)) = state.next(self.client_max) {
            let permit = Permit { of: Arc::clone(self), client, amount: waiter.amount };
            if let Err(permit) = waiter.granted.send(permit) {
                abandoned.push(permit);
            }
        }
        drop(state);
        // Their permits are released here, after the lock.
        drop(abandoned);
    }
}

impl State {
    fn enqueue(&mut self, client: IpAddr, waiter: Waiter) {
        if let Some(queue) = self.waiting.get_mut(&client) {
            queue.retain(|waiter| !waiter.granted.is_closed());
            queue.push_back(waiter);
        } else {
            self.waiting.insert(client, VecDeque::from([waiter]));
            self.take_turn(client);
        }
    }

    /// Queues a waiting client after those that were served less recently.
    fn take_turn(&mut self, client: IpAddr) {
        self.number += 1;
        let latest_grant = self.latest_grants.get(&client).copied().unwrap_or(0);
        self.turns.insert((latest_grant, self.number), client);
    }

    /// The next request, if its permits are free.
    fn next(&mut self, client_max: usize) -> Option<(IpAddr, Waiter)> {
        let mut passed_over = Bound::Unbounded;
        while let Some((turn, client)) =
            self.turns.range((passed_over, Bound::Unbounded)).next().map(|(turn, client)| (*turn, *client))
        {
            let held = self.held.get(&client).copied().unwrap_or(0);
            let queue = self.waiting.entry(client).or_default();
            queue.retain(|waiter| !waiter.granted.is_closed());
            let waiter = match queue.front().map(|waiter| waiter.amount) {
                Some(amount) if held.saturating_add(amount) > client_max => {
                    passed_over = Bound::Excluded(turn);
                    continue;
                }
                Some(amount) if amount > self.free => {
                    if self.free > 0 {
                        // New clients are queued after it.
                        self.turns.remove(&turn);
                        self.turns.insert((0, turn.1), client);
                    }
                    return None;
                }
                Some(_) => queue.pop_front(),
                None => None,
            };
            let waits_on = !queue.is_empty();
            self.turns.remove(&turn);
            if let Some(waiter) = &waiter {
                self.free -= waiter.amount;
                self.held.insert(client, held + waiter.amount);
                self.remember_grant(client);
            }
            if waits_on {
                self.take_turn(client);
            } else {
                self.waiting.remove(&client);
            }
            if let Some(waiter) = waiter {
                return Some((client, waiter));
            }
        }
        None
    }

    fn remember_grant(&mut self, client: IpAddr) {
        self.number += 1;
        self.latest_grants.insert(client, self.number);
        self.grants.push_back((self.number, client));
        if self.grants.len() > REMEMBERED_GRANTS
            && let Some((number, client)) = self.grants.pop_front()
            && self.latest_grants.get(&client) == Some(&number)
        {
            self.latest_grants.remove(&client);
        }
    }

    fn give_back(&mut self, client: IpAddr, amount: usize) {
        self.free += amount;
        let left = self.held.get(&client).map_or(0, |held| held.saturating_sub(amount));
        if left == 0 {
            self.held.remove(&client);
        } else {
            self.held.insert(client, left);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.of.state().give_back(self.client, self.amount);
        self.of.grant();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use super::*;

    type Waiting<'a> = Pin<Box<dyn Future<Output = Result<Permit, RecvError>> + 'a>>;

    fn client(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    /// A request that already waits.
    async fn wait(permits: &FairPermits, number: u8, amount: usize) -> Waiting<'_> {
        let mut waiting: Waiting<'_> = Box::pin(permits.acquire(client(number), amount));
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        waiting
    }

    #[tokio::test]
    async fn client_with_many_waiting_requests_delays_another_by_one() {
        let permits = FairPermits::new(1);
        let held = permits.acquire(client(1), 1).await.unwrap();
        let mut greedy = VecDeque::new();
        for _ in 0..100 {
            greedy.push_back(wait(&permits, 1, 1).await);
        }
        let modest = wait(&permits, 2, 1).await;
        let last = wait(&permits, 3, 1).await;
        drop(held);
        drop(modest.await.unwrap());
        drop(last.await.unwrap());
        for waiting in greedy {
            drop(waiting.await.unwrap());
        }
        assert_eq!(permits.free(), 1);
        assert!(permits.0.state().waiting.is_empty(), "clients that do not wait are forgotten");
    }

    #[tokio::test]
    async fn a_new_client_comes_before_any_number_of_greedy_clients() {
        let permits = FairPermits::new(1);
        for number in 1..=50 {
            drop(permits.acquire(client(number), 1).await.unwrap());
        }
        let held = permits.acquire(client(1), 1).await.unwrap();
        let mut greedy = Vec::new();
        for number in (1..=50).flat_map(|number| [number; 4]) {
            greedy.push(wait(&permits, number, 1).await);
        }
        let mut new = [wait(&permits, 100, 1).await, wait(&permits, 101, 1).await];
        drop(held);
        for waiting in &mut new {
            assert!(futures::poll!(waiting.as_mut()).is_ready(), "clients that were not served are next");
        }
        drop(greedy);
        assert_eq!(permits.free(), 1);
    }

    #[tokio::test]
    async fn new_clients_do_not_overtake_a_large_request_indefinitely() {
        let permits = FairPermits::new(2);
        drop(permits.acquire(client(1), 1).await.unwrap());
        let one = permits.acquire(client(2), 1).await.unwrap();
        let other = permits.acquire(client(3), 1).await.unwrap();
        let mut large = wait(&permits, 1, 2).await;
        drop(one);
        assert_eq!(permits.free(), 1, "the permit is reserved for the large request");
        let mut new = wait(&permits, 4, 1).await;
        drop(other);
        assert!(futures::poll!(large.as_mut()).is_ready());
        assert!(futures::poll!(new.as_mut()).is_ready());
        assert_eq!(permits.free(), 2);
    }

    #[tokio::test]
    async fn only_the_latest_grants_are_remembered() {
        let permits = FairPermits::new(1);
        for number in 0..1_000_u32 {
            let address = IpAddr::from(std::net::Ipv4Addr::from_bits(number));
            drop(permits.acquire(address, 1).await.unwrap());
        }
        let state = permits.0.state();
        assert_eq!((state.grants.len(), state.latest_grants.len()), (REMEMBERED_GRANTS, REMEMBERED_GRANTS));
        assert!(state.turns.is_empty() && state.waiting.is_empty() && state.held.is_empty());
    }

    #[tokio::test]
    async fn the_networks_of_one_customer_take_one_turn() {
        let permits = FairPermits::new(1);
        let held = permits.acquire(client(1), 1).await.unwrap();
        let mut greedy = VecDeque::new();
        for network in 0..50 {
            let address = IpAddr::from([0x2001, 0xdb8, 1, network, 0, 0, 0, 1]);
            let mut waiting: Waiting<'_> = Box::pin(permits.acquire(address, 1));
            assert!(futures::poll!(waiting.as_mut()).is_pending());
            greedy.push_back(waiting);
        }
        let modest = wait(&permits, 2, 1).await;
        drop(held);
        drop(greedy.pop_front().unwrap().await.unwrap());
        drop(modest.await.unwrap());
        for waiting in greedy {
            drop(waiting.await.unwrap());
        }
        assert_eq!(permits.free(), 1);
    }

    #[tokio::test]
    async fn client_at_its_maximum_waits_and_others_do_not() {
        let permits = FairPermits::with_client_max(2, 1);
        let held = permits.acquire(client(1), 1).await.unwrap();
        let greedy = [wait(&permits, 1, 1).await, wait(&permits, 1, 1).await];
        assert_eq!(permits.free(), 1, "one client holds one permit");
        let modest = permits.acquire(client(2), 1).await.unwrap();
        let last = wait(&permits, 3, 1).await;
        drop(modest);
        drop(last.await.unwrap());
        drop(held);
        for waiting in greedy {
            drop(waiting.await.unwrap());
        }
        assert_eq!(permits.free(), 2);
        assert!(permits.0.state().held.is_empty(), "clients that hold nothing are forgotten");
    }

    #[tokio::test]
    async fn never_grants_more_permits_than_exist() {
        let permits = FairPermits::new(10);
        let six = permits.acquire(client(1), 6).await.unwrap();
        let large = wait(&permits, 2, 5).await;
        let small = wait(&permits, 3, 1).await;
        assert_eq!(permits.free(), 4, "small requests do not overtake the large one indefinitely");
        drop(six);
        let (large, small) = (large.await.unwrap(), small.await.unwrap());
        assert_eq!(permits.free(), 4);
        let all = wait(&permits, 1, 1_000).await;
        drop((large, small));
        let all = all.await.unwrap();
        assert_eq!(permits.free(), 0, "a request for more permits than exist gets all of them");
        drop(all);
        assert_eq!(permits.free(), 10);
    }

    #[tokio::test]
    async fn dropped_requests_take_no_permit() {
        let permits = FairPermits::new(1);
        let held = permits.acquire(client(1), 1).await.unwrap();
        let given_up = wait(&permits, 2, 1).await;
        let granted_and_given_up = wait(&permits, 3, 1).await;
        let last = wait(&permits, 1, 1).await;
        drop(given_up);
        drop(held);
        assert_eq!(permits.free(), 0, "the permit is on its way to the third client");
        drop(granted_and_given_up);
        drop(last.await.unwrap());
        assert_eq!(permits.free(), 1);
    }
}
