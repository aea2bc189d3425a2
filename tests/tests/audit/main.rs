//! Tests of the audit with handwritten logs: for each rule, one log that breaks it and one that obeys it.

mod cache;
mod crafted;
mod identity;
mod pace;
mod robots;
mod third_parties;
mod web;
