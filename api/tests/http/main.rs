//! The interface over a real SQLite store and a real index, called as a client calls it.

mod conventions;
mod documents;
mod pages;
mod records;
mod searching;
mod world;
