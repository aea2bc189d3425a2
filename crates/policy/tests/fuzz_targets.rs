//! Runs the fuzz targets without a fuzzer, on the regressions and on seeded mutations of each.

#[expect(unreachable_pub, reason = "a separate crate when a fuzzer is built")]
#[path = "../fuzz/src/lib.rs"]
mod fuzz;

#[path = "../../manifest/tests/support/damage.rs"]
mod damage;

use std::fs;
use std::path::Path;

use damage::damaged;

/// Tokens of the formats, which replace bytes of a document.
const TOKENS: &[&str] = &[
    "User-agent: *",
    "Disallow: ",
    "Allow: /",
    "Crawl-delay: ",
    "$",
    "*",
    "%",
    ":",
    "#",
    "\r",
    "\n",
    "\0",
    "\u{feff}",
];

/// Number of mutated copies of each regression.
const COPIES: u64 = 50;

#[test]
fn every_target_accepts_the_regressions_and_their_mutations() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/regressions");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 9, "the regressions are missing");
    for (at, path) in files.iter().enumerate() {
        let bytes = fs::read(path).unwrap();
        for (_, target) in fuzz::TARGETS {
            target(&bytes);
            for copy in 0..COPIES {
                target(&damaged(&bytes, TOKENS, at as u64 * COPIES + copy));
            }
        }
    }
}
