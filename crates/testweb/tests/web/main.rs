//! Tests of the test web with a real client: answers, misbehaviour and the log.

mod client;
mod demo;
mod honest;
mod hostile;
mod many;
