//! Visits web sites politely and reads what they declare to agents.
//!
//! The only crate that talks to the open web, through one module, [`egress`]. Decisions come from `policy`, meaning from
//! `manifest`, memory from `store`; what remains here is IO in the right order.

pub mod cli;
mod clock;
pub mod config;
pub mod egress;
mod output;
mod pace;
pub mod seeds;
mod visit;
