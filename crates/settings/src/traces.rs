//! Sends spans to an OpenTelemetry collector: OTLP over HTTP, in batches, on its own thread.
//!
//! `OTEL_TRACES_SAMPLER`, `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_RESOURCE_ATTRIBUTES` work as the OpenTelemetry
//! specification says. While a collector is unavailable, only spans are lost.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde::Deserialize;
use url::Url;

/// Timeout for sending one batch.
const EXPORT_TIME_MAX: Duration = Duration::from_secs(5);

/// The URL of a collector, such as `http://127.0.0.1:4318/v1/traces`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct TracesUrl(Url);

impl TryFrom<String> for TracesUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong =
            |why: &str| format!("traces_url {text:?} {why}; it looks like http://127.0.0.1:4318/v1/traces");
        let url = Url::parse(&text).map_err(|error| wrong(&format!("is not a URL ({error})")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("is neither http nor https"));
        }
        Ok(Self(url))
    }
}

/// Starts to send the spans of a program.
pub(crate) fn provider(program: &'static str, url: &TracesUrl) -> Result<SdkTracerProvider, String> {
    // The exporter's HTTP client uses the default provider of the process; the crawler passes its own to each connection.
    drop(rustls::crypto::ring::default_provider().install_default());
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(url.0.as_str())
        .with_timeout(EXPORT_TIME_MAX)
        .build()
        .map_err(|error| error.to_string())?;
    let resource = Resource::builder()
        .with_service_name(program)
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_url_is_reported_with_an_example() {
        for (text, why) in [("collector:4318", "neither http nor https"), ("/v1/traces", "is not a URL")] {
            let error = TracesUrl::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains(why) && error.contains("http://127.0.0.1:4318/v1/traces"), "{error}");
        }
        assert!(TracesUrl::try_from("https://collector.example/v1/traces".to_owned()).is_ok());
    }
}
