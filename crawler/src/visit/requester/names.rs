//! Queries DNS records other than addresses.

use futures::future;
use manifest::Host;
use tokio::time::Instant;

use super::super::traffic::Traffic;
use super::Requester;
use egress::Failure;

/// Records of a host, one entry for each queried label. The entry is empty if the name does not exist.
pub(in crate::visit) struct Records {
    pub(in crate::visit) texts: Vec<Result<Vec<String>, Failure>>,
    /// The targets of SVCB records.
    pub(in crate::visit) services: Vec<Result<Vec<String>, Failure>>,
}

impl Requester<'_> {
    /// The TXT and SVCB records of labels below a host, queried concurrently, so that unresponsive name servers cost only the time of one
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
