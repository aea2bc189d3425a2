//! A real client against the test web: what it serves, how it misbehaves, and what it writes down.

mod client;
mod demo;
mod honest;
mod hostile;
mod many;
