//! Why a crawl fails.

use std::io;
use std::path::PathBuf;

use store::StoreError;

use crate::database_lock::LockError;
use crate::seeds::SeedError;
use egress::TlsError;

/// Why a crawl could not start or finish.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    #[error(transparent)]
    Seeds(#[from] SeedError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Sole(#[from] LockError),
    #[error("cannot write events to {}: {source}", path.display())]
    Events {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("no source of seeds could be read: {0}")]
    NoSource(String),
    #[error("there is nothing to visit: name seeds with --seeds FILE, one domain a line")]
    NoSites,
}

impl CrawlError {
    /// Whether different arguments can fix the error.
    pub const fn is_usage(&self) -> bool {
        match self {
            Self::Seeds(SeedError::Unfetched { .. } | SeedError::Unstored { .. })
            | Self::Store(_)
            | Self::Sole(_)
            | Self::NoSource(_)
            | Self::Events { .. } => false,
            Self::Seeds(_) | Self::Tls(_) | Self::NoSites => true,
        }
    }
}
