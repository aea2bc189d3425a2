//! Fixtures of end-to-end tests: a PostgreSQL database for each test, binaries of the workspace, files for a crawler.

mod binary;
mod crawl;
mod postgres;
mod server;

pub use binary::{Finished, binary};
pub use crawl::{CrawlDir, write_seeds};
pub use postgres::TestDatabase;
pub use server::PostgresServer;
