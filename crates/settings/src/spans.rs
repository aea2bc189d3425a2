//! Sends spans to an OpenTelemetry collector: OTLP over HTTP, in batches, on its own thread. Needs the feature `opentelemetry`.
//!
//! `OTEL_TRACES_SAMPLER`, `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_RESOURCE_ATTRIBUTES` work as specified by OpenTelemetry. While the
//! collector is unavailable, spans are lost, but the program continues.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::TracesUrl;

/// Timeout for sending one batch.
const EXPORT_TIME_MAX: Duration = Duration::from_secs(5);

/// Sends the spans of a program. Dropping it sends the remaining spans.
#[derive(Debug)]
pub(crate) struct Exporter {
    provider: SdkTracerProvider,
    program: &'static str,
}

impl Exporter {
    pub(crate) fn start(program: &'static str, url: &TracesUrl) -> Result<Self, String> {
        // The exporter's HTTP client uses the default provider of the process; the crawler passes its own to each connection.
        drop(rustls::crypto::ring::default_provider().install_default());
        let exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(url.as_str())
            .with_timeout(EXPORT_TIME_MAX)
            .build()
            .map_err(|error| error.to_string())?;
        let resource = Resource::builder()
            .with_service_name(program)
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        Ok(Self { provider, program })
    }

    /// The layer that records the spans.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer().with_tracer(self.provider.tracer(self.program))
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}
