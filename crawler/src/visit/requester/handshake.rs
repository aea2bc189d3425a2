//! Checks whether a host completes a TLS handshake, under the rules of requests: checked addresses, permits, and clocks that are written
//! first. No request is sent.

use manifest::Host;
use policy::liveness::HostCheckOutcome;
use tokio::time::Instant;

use super::super::context::Interrupt;
use super::super::progress::Progress;
use super::Requester;
use super::robots::ContactPermission;
use crate::events::Event;
use egress::{Cause, Failure};

impl Requester<'_> {
    /// Completes one handshake with a host, if the stored robots.txt files permit to contact it. It counts as a request in the budgets and
    /// delays of its host, site and address.
    pub(in super::super) async fn handshake(
        &mut self,
        progress: &mut Progress,
        host: &Host,
    ) -> Result<HostCheckOutcome, Interrupt> {
        match self.contact_permission(&progress.traffic, host).await? {
            ContactPermission::Granted => {}
            ContactPermission::Denied => return Ok(HostCheckOutcome::RobotsDenied),
            ContactPermission::Unknown => return Ok(HostCheckOutcome::NotContacted),
        }
        if let Err(failure) = Box::pin(self.resolve(&mut progress.traffic, host)).await? {
            return Ok(check_outcome_of(&failure));
        }
        let mut permit = self.acquire_permit(host).await?;
        let group_use = self.enter(host)?;
        let member = group_use.as_ref().map(|group_use| group_use.member);
        let leave = Box::pin(self.write_clocks(progress, host, &mut permit, member)).await?;
        self.tools.events.write(Event::Handshake { host });
        let started = Instant::now();
        let answer = self.session.handshake(host, leave).await;
        if let Some(authority) = self.authorities.get_mut(host) {
            let (target, clock) = (&authority.target, &mut authority.clock);
            self.tools.pace.finish(target, clock, &mut self.site_clock, started.elapsed(), None);
        }
        drop((permit, group_use));
        Ok(answer.map_or_else(|failure| check_outcome_of(&failure), |()| HostCheckOutcome::Completed))
    }
}

/// The outcome of a check that failed while the name was resolved or during the handshake.
pub(crate) const fn check_outcome_of(failure: &Failure) -> HostCheckOutcome {
    match failure.cause {
        Cause::NameUnknown => HostCheckOutcome::NameUnknown,
        Cause::Address => HostCheckOutcome::AddressRefused,
        Cause::Connect => HostCheckOutcome::ConnectFailed,
        Cause::Tls => HostCheckOutcome::TlsFailed,
        Cause::NameServers
        | Cause::OtherSite
        | Cause::Timeout
        | Cause::TooLarge
        | Cause::Busy
        | Cause::Late
        | Cause::Encoding
        | Cause::Protocol => HostCheckOutcome::Unknown,
    }
}
