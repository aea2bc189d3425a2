//! Records of names other than addresses.

use futures::future;
use manifest::Host;
use tokio::time::Instant;

use super::super::traffic::Traffic;
use super::Requester;
use egress::Failure;

/// Records of a host for each label that was queried; a name that does not exist has none.
pub(in crate::visit) struct Records {
    pub(in crate::visit) texts: Vec<Result<Vec<String>, Failure>>,
    /// The targets of SVCB records.
    pub(in crate::visit) services: Vec<Result<Vec<String>, Failure>>,
}

impl Requester<'_> {
    /// The TXT and SVCB records of labels below a host, queried concurrently, so that name servers that do not answer cost the time of one
    /// query.
    pub(in crate::visit) async fn records(
        &self,
        traffic: &mut Traffic,
        host: &Host,
        (text_labels, service_labels): (&[&str], &[&str]),
    ) -> Records {
        let started = Instant::now();
        let texts = text_labels.iter().map(|label| self.session.texts(label, host));
        let services = service_labels.iter().map(|label| self.session.services(label, host));
        let (texts, services) = future::join(future::join_all(texts), future::join_all(services)).await;
        traffic.count_resolution(started.elapsed());
        Records { texts, services }
    }
}
