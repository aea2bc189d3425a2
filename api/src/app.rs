//! The interface as a library: state, routes, and serving until told to stop.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use store::{Store, StoreError};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::ApiConfig;
use crate::index::{self, IndexHandle};
use crate::slots::Slots;
use crate::{middleware, routes};

/// How long open requests may finish after the signal to stop.
const DRAIN: Duration = Duration::from_secs(5);

/// What keeps the interface from starting or running; the text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error("the database {url} cannot be used: {source}")]
    Store { url: String, source: StoreError },
    #[error(
        "cannot listen on {address}: {source}; choose another with --listen, or stop the program that uses it"
    )]
    Listen { address: std::net::SocketAddr, source: std::io::Error },
    #[error("serving failed: {0}")]
    Serve(#[source] std::io::Error),
}

/// What the handlers share.
#[derive(Clone)]
pub struct App(Arc<Shared>);

struct Shared {
    config: ApiConfig,
    store: Store,
    index: Arc<IndexHandle>,
    slots: Slots,
}

impl App {
    /// Opens the database; the index may come later.
    pub async fn open(config: ApiConfig) -> Result<Self, ApiError> {
        let opened = Store::open(&config.database).await;
        let store =
            opened.map_err(|source| ApiError::Store { url: config.database.url.to_string(), source })?;
        Ok(Self::with_store(config, store))
    }

    /// On a database that is open already, as where all three programs share one process.
    pub fn with_store(config: ApiConfig, store: Store) -> Self {
        let slots = Slots::for_this_machine();
        let index = Arc::new(IndexHandle::new(config.index_dir.clone(), slots.clone()));
        Self(Arc::new(Shared { config, store, index, slots }))
    }

    /// Opens the index, or makes its newest commit visible, at once. Blocking; `serve` does this every second.
    pub fn refresh_index(&self) {
        self.0.index.refresh();
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    /// Where blocking work runs.
    pub(crate) fn slots(&self) -> &Slots {
        &self.0.slots
    }

    pub(crate) fn index(&self) -> &IndexHandle {
        &self.0.index
    }

    /// How the world reaches us.
    pub(crate) fn base_url(&self) -> String {
        let configured =
            self.0.config.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
        configured.unwrap_or_else(|| format!("http://{}", self.0.config.listen))
    }
}

/// Every route, with everything that requests pass through.
pub fn router(app: App) -> Router {
    middleware::wrapped(routes::all().with_state(app))
}

/// Binds the configured address.
pub async fn bind(config: &ApiConfig) -> Result<TcpListener, ApiError> {
    let address = config.listen;
    TcpListener::bind(address).await.map_err(|source| ApiError::Listen { address, source })
}

/// Serves until `cancel`, then lets open requests finish for a few seconds.
pub async fn serve(listener: TcpListener, app: App, cancel: CancellationToken) -> Result<(), ApiError> {
    let tasks = TaskTracker::new();
    let follow_until = cancel.child_token();
    tasks.spawn(index::follow(Arc::clone(&app.0.index), follow_until.clone()));
    tasks.close();

    let serving = axum::serve(listener, router(app)).with_graceful_shutdown(cancel.clone().cancelled_owned());
    let drained = async {
        cancel.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    let served = tokio::select! {
        result = async { serving.await } => result.map_err(ApiError::Serve),
        () = drained => Ok(()),
    };
    follow_until.cancel();
    tasks.wait().await;
    served
}
