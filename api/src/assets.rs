//! Style sheet, scripts, icons and pictures: embedded in the program, named by a hash of their content, cached by browsers for a year.

use std::sync::LazyLock;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Bytes of the hash in an asset's name.
const FINGERPRINT_BYTES: usize = 6;

pub(crate) struct Asset {
    /// File name with fingerprint, as in `/assets/style.0a1b2c3d4e5f.css`.
    pub(crate) name: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: &'static [u8],
}

impl Asset {
    fn new(stem: &str, extension: &str, content_type: &'static str, body: &'static [u8]) -> Self {
        let digest = Sha256::digest(body);
        let fingerprint = HEXLOWER.encode(digest.get(..FINGERPRINT_BYTES).unwrap_or_default());
        Self { name: format!("{stem}.{fingerprint}.{extension}"), content_type, body }
    }

    pub(crate) fn url(&self) -> String {
        format!("/assets/{}", self.name)
    }
}

fn script(stem: &str, body: &'static [u8]) -> Asset {
    Asset::new(stem, "js", "text/javascript; charset=utf-8", body)
}

pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("style", "css", "text/css; charset=utf-8", include_bytes!("../assets/style.css"))
});

pub(crate) static SEARCH: LazyLock<Asset> =
    LazyLock::new(|| script("search", include_bytes!("../assets/search.js")));

pub(crate) static COPY: LazyLock<Asset> =
    LazyLock::new(|| script("copy", include_bytes!("../assets/copy.js")));

pub(crate) static DROP: LazyLock<Asset> =
    LazyLock::new(|| script("drop", include_bytes!("../assets/drop.js")));

pub(crate) static LIVE: LazyLock<Asset> =
    LazyLock::new(|| script("live", include_bytes!("../assets/live.js")));

pub(crate) static DOCS: LazyLock<Asset> =
    LazyLock::new(|| script("docs", include_bytes!("../assets/docs.js")));

pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_bytes!("../assets/icon.svg")));

pub(crate) static TOUCH_ICON: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("touch-icon", "png", "image/png", include_bytes!("../assets/touch-icon.png"))
});

/// Preview pictures for shared links, 1,200 by 630 pixels, by the name of the page's kind.
static PICTURES: LazyLock<[(&'static str, Asset); 7]> = LazyLock::new(|| {
    let picture = |name, body| (name, Asset::new(name, "png", "image/png", body));
    [
        picture("home", include_bytes!("../assets/pictures/home.png").as_slice()),
        picture("search", include_bytes!("../assets/pictures/search.png")),
        picture("capability", include_bytes!("../assets/pictures/capability.png")),
        picture("site", include_bytes!("../assets/pictures/site.png")),
        picture("activity", include_bytes!("../assets/pictures/activity.png")),
        picture("validate", include_bytes!("../assets/pictures/validate.png")),
        picture("docs", include_bytes!("../assets/pictures/docs.png")),
    ]
});

/// URL of the picture for a kind of page; for an unknown kind, the picture of the home page.
pub(crate) fn picture(kind: &str) -> String {
    let known = PICTURES.iter().find(|(name, _)| *name == kind).or_else(|| PICTURES.first());
    known.map(|(_, asset)| asset.url()).unwrap_or_default()
}

/// The asset with this name, which includes the fingerprint.
pub(crate) fn find(name: &str) -> Option<&'static Asset> {
    let files =
        [&STYLE, &SEARCH, &COPY, &DROP, &LIVE, &DOCS, &ICON, &TOUCH_ICON].into_iter().map(|asset| &**asset);
    files.chain(PICTURES.iter().map(|(_, asset)| asset)).find(|asset| asset.name == name)
}
