//! Serves search, sites and manifests as JSON and as pages.
