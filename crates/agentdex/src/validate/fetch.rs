//! Fetches a document from its site with the crawler, which applies robots.txt and all limits.

use anyhow::{Context as _, bail};
use crawler::Inspection;
use crawler::cli::{CrawlFlags, UsageError, refuse_demo_host};
use manifest::{Discovery, Format, ManifestUrl};
use policy::FetchOutcome;
use runtime::OwnedDocument;
use settings::SharedFlags;
use store::{FetchRecord, Store};

/// Fetches a document and the parts that complete it.
pub(crate) async fn fetch(
    url: &ManifestUrl,
    force: Option<Format>,
    shared: &SharedFlags,
    crawl: &CrawlFlags,
) -> anyhow::Result<OwnedDocument> {
    let resolved = crawler::cli::resolve(shared, crawl)?;
    let _log = resolved.shared.start_logging("agentdex-validate");
    let scope = resolved.crawl.egress.own_networks.site_scope();
    scope.check_host(&url.host()).map_err(|error| UsageError(error.to_string()))?;
    refuse_demo_host(&url.host(), &resolved.crawl.egress)?;
    let folder = tempfile::tempdir().context("cannot create a directory for the visit")?;
    let store = Store::open_in_data_dir(folder.path()).await?;
    let inspected = crawler::inspect(&resolved.crawl, &store, url).await;
    store.close().await;
    match inspected? {
        Inspection::Ended { end, fetches } => match source(url, force, fetches) {
            Some(source) => source,
            None => bail!("{url} was not fetched: {}", end.description()),
        },
        Inspection::Waits { until, reason } => {
            bail!("{url} was not fetched: {reason}; it may be fetched at {}", until.format("%H:%M:%S UTC"))
        }
        Inspection::Taken => bail!("{url} was not fetched: another visit is running"),
    }
}

/// The fetched document; `None` if it was not requested.
fn source(
    url: &ManifestUrl,
    force: Option<Format>,
    fetches: Vec<FetchRecord>,
) -> Option<anyhow::Result<OwnedDocument>> {
    let (mut document, mut linked) = (None, Vec::new());
    for fetch in fetches {
        if fetch.url == *url {
            document = Some(fetch);
        } else {
            // without bytes the reader reports that the document could not be fetched
            linked.push((fetch.url, fetch.body.unwrap_or_default()));
        }
    }
    let FetchRecord { body, final_url, manifest, outcome, reason, .. } = document?;
    let (Some(bytes), Some(manifest)) = (body, manifest) else {
        let advice = match outcome {
            _ if url.path_and_query() == "/" => {
                format!("; `agentdex check {}` looks for the manifests of a site", url.host())
            }
            FetchOutcome::TlsFailed => {
                "; --ca-file names the certificate authority of a private network".to_owned()
            }
            FetchOutcome::AddressRefused => {
                "; for private addresses of your own, name their networks with --allow-addresses".to_owned()
            }
            _ => String::new(),
        };
        let reason = reason.unwrap_or_else(|| outcome.to_string()) + &advice;
        return Some(Err(anyhow::anyhow!("{url} has nothing to validate: {reason}")));
    };
    let served = Some(manifest.served);
    let (url, discovery) = (url.clone(), Discovery::Submitted);
    Some(Ok(OwnedDocument { bytes, url, final_url, discovery, served, linked, force }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_url_of_the_demo_is_not_on_the_web() {
        let url = ManifestUrl::parse("https://skyhop.example/agent.json").unwrap();
        let fetched = fetch(&url, None, &SharedFlags::default(), &CrawlFlags::default()).await;
        let error = fetched.err().unwrap().to_string();
        assert!(error.contains("skyhop.example is not on the web"), "{error}");
    }
}
