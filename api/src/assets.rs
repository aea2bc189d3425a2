//! The style sheet, the scripts and the icon: embedded, named after their content, kept by browsers for a year.

use std::sync::LazyLock;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Bytes of the hash in an asset's name.
const FINGERPRINT_BYTES: usize = 6;

pub(crate) struct Asset {
    /// File name with fingerprint, as in `/assets/style.0a1b2c3d4e5f.css`.
    pub(crate) name: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: &'static str,
}

impl Asset {
    fn new(stem: &str, extension: &str, content_type: &'static str, body: &'static str) -> Self {
        let digest = Sha256::digest(body.as_bytes());
        let fingerprint = HEXLOWER.encode(digest.get(..FINGERPRINT_BYTES).unwrap_or_default());
        Self { name: format!("{stem}.{fingerprint}.{extension}"), content_type, body }
    }

    pub(crate) fn url(&self) -> String {
        format!("/assets/{}", self.name)
    }
}

fn script(stem: &str, body: &'static str) -> Asset {
    Asset::new(stem, "js", "text/javascript; charset=utf-8", body)
}

pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("style", "css", "text/css; charset=utf-8", include_str!("../assets/style.css"))
});

pub(crate) static SEARCH: LazyLock<Asset> =
    LazyLock::new(|| script("search", include_str!("../assets/search.js")));

pub(crate) static COPY: LazyLock<Asset> = LazyLock::new(|| script("copy", include_str!("../assets/copy.js")));

pub(crate) static DROP: LazyLock<Asset> = LazyLock::new(|| script("drop", include_str!("../assets/drop.js")));

pub(crate) static LIVE: LazyLock<Asset> = LazyLock::new(|| script("live", include_str!("../assets/live.js")));

pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("../assets/icon.svg")));

/// The asset of this name, fingerprint included.
pub(crate) fn find(name: &str) -> Option<&'static Asset> {
    [&STYLE, &SEARCH, &COPY, &DROP, &LIVE, &ICON]
        .into_iter()
        .map(|asset| &**asset)
        .find(|asset| asset.name == name)
}
