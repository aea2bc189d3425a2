//! A web of virtual HTTPS hosts on loopback, selected by SNI, with a log of every hit.
//!
//! The demo and all tests that crawl use it. It has hosts that behave correctly, and hosts that misbehave in every way that a crawler has
//! to survive. It has its own certificate authority and serves HTTP/1.1 and HTTP/2 without a framework, so that it can also send invalid
//! responses. It records all requests, but does not judge their politeness.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use testweb::{Answer, Host, Web};
//!
//! let web = Web::builder()
//!     .host(Host::new("skyhop.example").robots("User-agent: *\nAllow: /\n").route("/agent.json", r#"{"awp_version":"0.1"}"#))
//!     .host(Host::new("busy.example").catch_all(Answer::retry_after(503, "120").times(3, Answer::status(404))))
//!     .start()
//!     .await?;
//! let files = web.write_files(std::path::Path::new("/tmp"))?; // `crawler --ca-file … --hosts …`
//! web.set("skyhop.example", "/agent.json", r#"{"awp_version":"0.2"}"#);
//! web.log().wait_until(|log| log.hit_count() >= 2).await;
//! # drop(files);
//! # Ok(())
//! # }
//! ```

mod answer;
mod authority;
mod body;
mod coding;
pub mod demo;
mod forward;
pub mod hit;
mod host;
mod log;
mod names;
mod respond;
mod sequence;
mod server;
pub mod shares;
mod tamper;
mod web;

pub use answer::Answer;
pub use hit::{Connection, HandshakeOutcome, Hit};
pub use host::{Certificate, Handshake, Host, Protocols};
pub use log::Log;
pub use names::Addresses;
pub use web::{Web, WebBuilder, WebFiles, serve};
