//! The URL of an OpenTelemetry collector.

use serde::Deserialize;
use url::Url;

use crate::Feature;

/// The feature that exports spans.
pub(crate) const OPENTELEMETRY: Feature =
    Feature { name: "opentelemetry", is_built: cfg!(feature = "opentelemetry") };

/// The URL of a collector, such as `http://127.0.0.1:4318/v1/traces`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct TracesUrl(Url);

impl TracesUrl {
    fn parse(text: &str, export: Feature) -> Result<Self, String> {
        let wrong =
            |why: &str| format!("traces_url {text:?} {why}; it looks like http://127.0.0.1:4318/v1/traces");
        let url = Url::parse(text).map_err(|error| wrong(&format!("is not a URL ({error})")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("is neither http nor https"));
        }
        export.require().map_err(|missing| format!("traces_url {text:?} cannot be used: {missing}"))?;
        Ok(Self(url))
    }

    #[cfg(feature = "opentelemetry")]
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl TryFrom<String> for TracesUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text, OPENTELEMETRY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILT: Feature = Feature { is_built: true, ..OPENTELEMETRY };

    #[test]
    fn an_invalid_url_is_reported_with_an_example() {
        for (text, why) in [("collector:4318", "neither http nor https"), ("/v1/traces", "is not a URL")] {
            let error = TracesUrl::parse(text, BUILT).unwrap_err();
            assert!(error.contains(why) && error.contains("http://127.0.0.1:4318/v1/traces"), "{error}");
        }
        assert!(TracesUrl::parse("https://collector.example/v1/traces", BUILT).is_ok());
    }

    #[test]
    fn without_the_feature_a_url_is_refused() {
        let left_out = Feature { is_built: false, ..OPENTELEMETRY };
        let error = TracesUrl::parse("https://collector.example/v1/traces", left_out).unwrap_err();
        assert!(error.contains("collector.example") && error.contains("--features opentelemetry"), "{error}");
    }
}
