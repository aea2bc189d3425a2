//! Runs the fuzz targets without a fuzzer: with every fixture, and with damaged copies that are generated from a seed.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be read has to fail the test")]

#[expect(unreachable_pub, reason = "a separate crate when a fuzzer is built")]
#[path = "../fuzz/src/lib.rs"]
mod fuzz;

#[path = "support/damage.rs"]
mod damage;

use std::fs;
use std::path::Path;

use damage::damaged;

/// Pieces of the formats, which replace bytes of a document.
const TOKENS: &[&str] = &[
    "{", "}", "[", "]", "\"", ":", ",", "\\u0000", "null", "-1e999", "\u{202e}", "<b>", "](", "\n\t", "#/",
    "&a *a",
];

/// Damaged copies of each fixture for each target.
const COPIES: u64 = 2;
/// Longer fixtures are skipped, because the caps have their own tests.
const DOCUMENT_BYTES_MAX: usize = 8_000;

#[test]
fn every_target_accepts_fixtures_and_damaged_copies() {
    let mut documents = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures"), &mut documents);
    assert!(documents.len() > 100, "the fixtures are missing");
    for (at, document) in documents.iter().enumerate() {
        for (number, (_, target)) in fuzz::TARGETS.iter().enumerate() {
            target(document);
            for copy in 0..COPIES {
                let seed = (at * fuzz::TARGETS.len() + number) as u64 * COPIES + copy;
                target(&damaged(document, TOKENS, seed));
            }
        }
    }
}

#[test]
fn every_target_accepts_the_regressions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/regressions");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 25, "the regressions are missing");
    for (at, path) in files.iter().enumerate() {
        let bytes = fs::read(path).unwrap();
        for (number, (_, target)) in fuzz::TARGETS.iter().enumerate() {
            target(&bytes);
            target(&damaged(&bytes, TOKENS, (at * fuzz::TARGETS.len() + number) as u64));
        }
    }
}

/// The documents of the fixtures, in the order of their folders.
fn collect(folder: &Path, documents: &mut Vec<Vec<u8>>) {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, documents);
        } else if path.file_stem().is_some_and(|stem| stem == "document") {
            documents
                .extend(Some(fs::read(&path).unwrap()).filter(|bytes| bytes.len() <= DOCUMENT_BYTES_MAX));
        }
    }
}
