//! Model checking of the protocol by which a fleet shares sites and addresses, for every order of events.
//!
//! The model has two workers, and either two sites at one address or one site whose address has no limits. Each step is one transaction of
//! the store or one action of a worker. Between any two steps, the other worker may act, time may pass, and a worker may be killed, started
//! or stalled. A stalled worker does not run, or is disconnected from the database. Other tests leave out parts of the protocol and require
//! that the checker finds a violation, because a model that cannot fail proves nothing.

use stateright::{Checker, HasDiscoveries, Model, Property};

const WORKERS: usize = 2;
/// Minimum gap between two requests to the address.
const GAP: u8 = 1;
/// Maximum duration of a request.
const REQUEST: u8 = 1;
/// A request is sent less than this time after its clock was written.
const LEAVES_WITHIN: u8 = 2;
/// The clock that is written before a request. It covers the latest time at which the request may be sent.
const CLOCK: u8 = GAP + LEAVES_WITHIN - 1;
/// Lifetime of a membership without a heartbeat: long enough for a request to be sent and to end.
const LIFE: u8 = LEAVES_WITHIN + REQUEST;
/// Lifetime of a lease that is not renewed.
const LEASE: u8 = LEAVES_WITHIN + REQUEST;

/// A part of the protocol that a test can disable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// No clock is written under an expired membership.
    FenceOfClocks,
    /// A clock renews the membership that it is written under.
    RenewalByClocks,
    /// A worker that takes a group over reads the clocks of its addresses.
    ReadingOfClocks,
    /// No visit is saved under a lease that another worker has taken.
    FenceOfSaves,
    /// No clock is written under a lease that another worker has taken.
    FenceOfLeases,
    /// A clock renews the lease that it is written under.
    RenewalOfLeases,
    /// A request is sent soon after its clock was written, or not at all.
    Departure,
}

#[derive(Clone, Copy, Debug)]
struct Protocol {
    sites: usize,
    left_out: Option<Part>,
    limits: Limits,
}

/// The limits that apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limits {
    /// The limits of the address, which has an owning worker.
    OfAddress,
    /// Only the limits of the site, as in the operator's own networks.
    OfSite,
}

const WHOLE: Protocol = Protocol { sites: 2, left_out: None, limits: Limits::OfAddress };
const SITE_ALONE: Protocol = Protocol { sites: 1, left_out: None, limits: Limits::OfSite };

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Leased,
    /// This worker owns the address and has read its clock.
    Met,
    /// The clock is written; the request may be sent within this time.
    Cleared(u8),
    /// The response arrives within this time.
    InFlight(u8),
    Answered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Visit {
    site: usize,
    stage: Stage,
    /// The lease has the highest fencing token.
    is_current: bool,
}

/// State in the memory of a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Worker {
    is_up: bool,
    is_member: bool,
    owns: bool,
    /// Remaining gap of the address, as far as this worker knows.
    gap_left: u8,
    visit: Option<Visit>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Site {
    /// Holder of the lease, and its remaining time.
    held: Option<(usize, u8)>,
    /// The group of the site is known: only its owner may lease the site.
    is_placed: bool,
    saves: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    workers: Vec<Worker>,
    /// Rows of the store: members, with their remaining lifetime.
    members: [Option<u8>; WORKERS],
    owner: Option<usize>,
    /// Remaining gap of the address, by its clock in the store.
    clock: u8,
    sites: Vec<Site>,
    /// Observed by the server: the time since the last request, and whether a gap was ever too short.
    since_last_request: u8,
    too_soon: bool,
    overlapped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    TimePasses,
    Kill(usize),
    Start(usize),
    Join(usize),
    Beat(usize),
    Take(usize),
    GiveUp(usize),
    Lease(usize, usize),
    Renew(usize),
    Meet(usize),
    WriteClock(usize),
    Send(usize),
    /// The request could not be sent in time and needs another clock.
    Retry(usize),
    Answer(usize),
    Save(usize),
}

impl State {
    fn worker(&mut self, worker: usize) -> &mut Worker {
        &mut self.workers[worker]
    }

    fn stage(&self, worker: usize) -> Option<Stage> {
        self.workers[worker].visit.map(|visit| visit.stage)
    }

    fn set_stage(&mut self, worker: usize, stage: Stage) {
        if let Some(visit) = &mut self.workers[worker].visit {
            visit.stage = stage;
        }
    }

    /// The worker no longer owns any group, and its visits forget the clock of the address.
    fn disown(&mut self, worker: usize) {
        self.workers[worker].owns = false;
        if matches!(self.stage(worker), Some(Stage::Met | Stage::Cleared(0))) {
            self.set_stage(worker, Stage::Leased);
        }
    }

    fn end_membership(&mut self, worker: usize) {
        self.members[worker] = None;
        if self.owner == Some(worker) {
            self.owner = None;
        }
    }

    /// Releases the lease, if it is still held.
    fn release(&mut self, worker: usize) {
        if let Some(visit) = self.workers[worker].visit.take()
            && visit.is_current
        {
            self.sites[visit.site].held = None;
        }
    }

    fn hand_over(&mut self, worker: usize) {
        if let Some(visit) = self.workers[worker].visit
            && visit.is_current
        {
            self.sites[visit.site].is_placed = true;
        }
        self.release(worker);
    }

    /// Whether a rule was violated. Later states need not be explored.
    fn is_wrong(&self) -> bool {
        self.too_soon || self.overlapped || self.sites.iter().any(|site| site.saves > 1)
    }

    fn allows(&self, step: Step, protocol: Protocol) -> bool {
        let in_use = |stage| matches!(stage, Some(Stage::Cleared(_) | Stage::InFlight(_)));
        match step {
            Step::TimePasses => {
                (0..WORKERS).all(|worker| !matches!(self.stage(worker), Some(Stage::InFlight(0))))
            }
            Step::Join(_) | Step::Beat(_) | Step::Take(_) | Step::GiveUp(_)
                if protocol.limits == Limits::OfSite =>
            {
                false
            }
            Step::Start(worker) => !self.workers[worker].is_up,
            // only the first worker is killed; the second one is sometimes slow; either may be the owner
            Step::Kill(worker) => worker == 0 && self.workers[worker].is_up,
            Step::Join(worker) => self.workers[worker].is_up && !self.workers[worker].is_member,
            Step::Beat(worker) => self.workers[worker].is_member,
            Step::Take(worker) => {
                let here = &self.workers[worker];
                here.is_member && !here.owns && self.members[worker].is_some() && self.owner.is_none()
            }
            Step::GiveUp(worker) => self.workers[worker].owns && !in_use(self.stage(worker)),
            Step::Lease(worker, site) => {
                let (here, site) = (&self.workers[worker], &self.sites[site]);
                let is_free = site.held.is_none_or(|(_, left)| left == 0);
                here.is_up
                    && here.visit.is_none()
                    && is_free
                    && site.saves == 0
                    && (!site.is_placed || here.owns)
            }
            Step::Renew(worker) => self.workers[worker].visit.is_some_and(|visit| visit.is_current),
            Step::Meet(worker) => self.stage(worker) == Some(Stage::Leased),
            Step::WriteClock(worker) => {
                let here = &self.workers[worker];
                self.stage(worker) == Some(Stage::Met) && protocol.may_use(here) && here.gap_left == 0
            }
            Step::Send(worker) => match self.stage(worker) {
                Some(Stage::Cleared(left)) => left > 0 || !protocol.has(Part::Departure),
                _ => false,
            },
            Step::Retry(worker) => self.stage(worker) == Some(Stage::Cleared(0)),
            Step::Answer(worker) => matches!(self.stage(worker), Some(Stage::InFlight(_))),
            Step::Save(worker) => self.stage(worker) == Some(Stage::Answered),
        }
    }

    fn is_over(&self) -> bool {
        self.sites.iter().all(|site| site.saves > 0)
    }
}

impl Protocol {
    fn has(self, part: Part) -> bool {
        self.left_out != Some(part)
    }

    /// Whether the limits of the address permit a request.
    fn may_use(self, worker: &Worker) -> bool {
        worker.owns || self.limits == Limits::OfSite
    }

    fn take(self, state: &mut State, step: Step) {
        match step {
            Step::TimePasses => pass_time(state),
            Step::Start(worker) => state.worker(worker).is_up = true,
            Step::Kill(worker) => *state.worker(worker) = Worker::default(),
            Step::Join(worker) => {
                state.end_membership(worker);
                state.members[worker] = Some(LIFE);
                state.worker(worker).is_member = true;
            }
            Step::Beat(worker) => beat(state, worker),
            Step::Take(worker) => {
                state.owner = Some(worker);
                state.worker(worker).owns = true;
            }
            Step::GiveUp(worker) => {
                state.disown(worker);
                if state.owner == Some(worker) {
                    state.owner = None;
                }
            }
            Step::Lease(worker, site) => lease(state, worker, site),
            Step::Renew(worker) => {
                if let Some(visit) = state.workers[worker].visit {
                    state.sites[visit.site].held = Some((worker, LEASE));
                }
            }
            Step::Meet(worker) => {
                if self.may_use(&state.workers[worker]) {
                    let clock = if self.has(Part::ReadingOfClocks) { state.clock } else { 0 };
                    let here = state.worker(worker);
                    here.gap_left = here.gap_left.max(clock);
                    state.set_stage(worker, Stage::Met);
                } else {
                    state.hand_over(worker);
                }
            }
            Step::WriteClock(worker) => self.write_clock(state, worker),
            Step::Send(worker) => {
                let others = (0..WORKERS).filter(|other| *other != worker);
                state.overlapped |=
                    others.into_iter().any(|other| matches!(state.stage(other), Some(Stage::InFlight(_))));
                state.too_soon |= state.since_last_request < GAP;
                state.since_last_request = 0;
                state.set_stage(worker, Stage::InFlight(REQUEST));
            }
            Step::Retry(worker) => state.set_stage(worker, Stage::Met),
            Step::Answer(worker) => {
                state.worker(worker).gap_left = GAP;
                state.set_stage(worker, Stage::Answered);
            }
            Step::Save(worker) => {
                if let Some(visit) = state.workers[worker].visit
                    && (visit.is_current || !self.has(Part::FenceOfSaves))
                {
                    state.sites[visit.site].saves += 1;
                }
                state.release(worker);
            }
        }
    }

    fn write_clock(self, state: &mut State, worker: usize) {
        let Some(visit) = state.workers[worker].visit else { return };
        if self.has(Part::FenceOfLeases) && !visit.is_current {
            state.workers[worker].visit = None;
            return;
        }
        if self.limits == Limits::OfAddress {
            if self.has(Part::FenceOfClocks) && state.members[worker].is_none() {
                state.hand_over(worker);
                return;
            }
            if self.has(Part::RenewalByClocks) && state.members[worker].is_some() {
                state.members[worker] = Some(LIFE);
            }
        }
        if self.has(Part::RenewalOfLeases) && visit.is_current {
            state.sites[visit.site].held = Some((worker, LEASE));
        }
        state.clock = CLOCK;
        state.worker(worker).gap_left = CLOCK;
        state.set_stage(worker, Stage::Cleared(LEAVES_WITHIN));
    }
}

fn pass_time(state: &mut State) {
    for worker in &mut state.workers {
        worker.gap_left = worker.gap_left.saturating_sub(1);
        if let Some(Visit { stage: Stage::InFlight(left) | Stage::Cleared(left), .. }) = &mut worker.visit {
            *left = left.saturating_sub(1);
        }
    }
    for left in state.members.iter_mut().flatten() {
        *left = left.saturating_sub(1);
    }
    for (_, left) in state.sites.iter_mut().filter_map(|site| site.held.as_mut()) {
        *left = left.saturating_sub(1);
    }
    state.clock = state.clock.saturating_sub(1);
    state.since_last_request = (state.since_last_request + 1).min(GAP);
}

fn beat(state: &mut State, worker: usize) {
    if state.members[worker].is_none() {
        state.disown(worker);
        state.worker(worker).is_member = false;
        return;
    }
    state.members[worker] = Some(LIFE);
    for other in 0..WORKERS {
        if state.members[other] == Some(0) {
            state.end_membership(other);
        }
    }
}

fn lease(state: &mut State, worker: usize, site: usize) {
    for visit in state.workers.iter_mut().filter_map(|other| other.visit.as_mut()) {
        visit.is_current &= visit.site != site;
    }
    state.sites[site].held = Some((worker, LEASE));
    state.worker(worker).visit = Some(Visit { site, stage: Stage::Leased, is_current: true });
}

impl Model for Protocol {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            workers: vec![Worker { is_up: true, ..Worker::default() }; WORKERS],
            members: [None; WORKERS],
            owner: None,
            clock: 0,
            sites: vec![Site::default(); self.sites],
            since_last_request: GAP,
            too_soon: false,
            overlapped: false,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let of_worker = |worker| {
            let each = [
                Step::Kill,
                Step::Start,
                Step::Join,
                Step::Beat,
                Step::Take,
                Step::GiveUp,
                Step::Renew,
                Step::Meet,
                Step::WriteClock,
                Step::Send,
                Step::Retry,
                Step::Answer,
                Step::Save,
            ];
            each.map(|step| step(worker))
                .into_iter()
                .chain((0..self.sites).map(move |site| Step::Lease(worker, site)))
        };
        let all = std::iter::once(Step::TimePasses).chain((0..WORKERS).flat_map(of_worker));
        steps.extend(all.filter(|step| !state.is_wrong() && state.allows(*step, *self)));
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut next = last.clone();
        self.take(&mut next, step);
        (next != *last).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(GAPS, |_, state: &State| !state.too_soon),
            Property::always(ALONE, |_, state: &State| !state.overlapped),
            Property::always(ONCE, |_, state: &State| state.sites.iter().all(|site| site.saves <= 1)),
            Property::sometimes(OVER, |_, state: &State| state.is_over()),
        ]
    }
}

const GAPS: &str = "an address has a gap between two requests";
const ALONE: &str = "an address has one request at a time";
const ONCE: &str = "a site is saved once";
const OVER: &str = "every site is visited";

/// Whether some order of events violates a rule.
fn breaks(protocol: Protocol, rule: &'static str) -> bool {
    let enough = HasDiscoveries::AllOf([rule].into());
    protocol.checker().threads(2).finish_when(enough).spawn_bfs().join().discovery(rule).is_some()
}

#[test]
fn complete_protocol_keeps_every_rule() {
    for protocol in [WHOLE, SITE_ALONE] {
        let checker = protocol.checker().threads(2).spawn_bfs().join();
        for rule in [GAPS, ALONE, ONCE] {
            assert!(checker.discovery(rule).is_none(), "{rule}: {:?}", checker.discovery(rule));
        }
        assert!(checker.discovery(OVER).is_some(), "no order of events visits every site");
    }
}

#[test]
fn omitting_any_part_of_the_protocol_breaks_a_rule() {
    let parts = [
        (Part::FenceOfClocks, GAPS),
        (Part::RenewalByClocks, ALONE),
        (Part::ReadingOfClocks, GAPS),
        (Part::FenceOfSaves, ONCE),
        (Part::Departure, ALONE),
    ];
    let parts_of_sites = [
        (Part::FenceOfSaves, ONCE),
        (Part::FenceOfLeases, ALONE),
        (Part::RenewalOfLeases, ALONE),
        (Part::Departure, ALONE),
    ];
    let of = |protocol: Protocol| move |(part, rule)| (Protocol { left_out: Some(part), ..protocol }, rule);
    for (protocol, rule) in parts.map(of(WHOLE)).into_iter().chain(parts_of_sites.map(of(SITE_ALONE))) {
        assert!(breaks(protocol, rule), "without {:?}: {rule}", protocol.left_out);
    }
}

/// From every reachable state, after any kills and delays, the visit can still be completed.
#[test]
fn every_site_can_always_be_completed() {
    for model in [Protocol { sites: 1, ..WHOLE }, SITE_ALONE] {
        complete_from_every_state(model);
    }
}

fn complete_from_every_state(model: Protocol) {
    let mut states = model.init_states();
    let mut places: std::collections::HashMap<State, usize> = states.iter().cloned().zip(0..).collect();
    let mut before: Vec<Vec<usize>> = vec![Vec::new()];
    let mut at = 0;
    while at < states.len() {
        for next in model.next_states(&states[at].clone()) {
            let place = *places.entry(next.clone()).or_insert_with(|| {
                states.push(next);
                before.push(Vec::new());
                states.len() - 1
            });
            before[place].push(at);
        }
        at += 1;
    }
    let mut reaches = vec![false; states.len()];
    let mut open: Vec<usize> = (0..states.len()).filter(|at| states[*at].is_over()).collect();
    while let Some(place) = open.pop() {
        if !std::mem::replace(&mut reaches[place], true) {
            open.extend(&before[place]);
        }
    }
    let stuck = reaches.iter().position(|reaches| !reaches);
    assert!(states.len() > 500, "{} states", states.len());
    assert_eq!(stuck.map(|at| &states[at]), None);
}
