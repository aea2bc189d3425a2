//! Compares the speed of reading published files with that of parsing their JSON, on one core.
//!
//! `cargo run --release -p manifest --example corpus_bench FOLDER [ROUNDS]` reads every file below the folder.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use manifest::{Discovery, Document, ManifestUrl};

/// Default number of rounds over all files.
const ROUNDS: usize = 20;

struct File {
    url: ManifestUrl,
    bytes: Vec<u8>,
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its numbers")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else {
        println!("usage: corpus_bench FOLDER [ROUNDS]");
        return;
    };
    let rounds: usize = arguments.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS).max(1);
    let files = files(Path::new(&folder));
    let bytes: usize = files.iter().map(|file| file.bytes.len()).sum();
    // Both alternate, so that a busy machine slows both; the best round of each counts.
    let (mut parsed, mut read) = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds {
        parsed = parsed.min(time(|| files.iter().for_each(parse_one)));
        read = read.min(time(|| files.iter().for_each(read_one)));
    }
    println!("files {} bytes {bytes} rounds {rounds}", files.len());
    for (what, time) in [("parse", parsed), ("read", read)] {
        let seconds = time.as_secs_f64();
        let documents = count(files.len()) / seconds;
        let megabytes = count(bytes) / 1e6 / seconds;
        println!("{what:5} {documents:>9.0} documents/s {megabytes:>7.1} MB/s {:>8.1} ms", seconds * 1e3);
    }
    println!("read takes {:.2} times as long as parse", read.as_secs_f64() / parsed.as_secs_f64());
}

#[expect(clippy::cast_precision_loss, reason = "counts of files and bytes are far below 2^52")]
fn count(number: usize) -> f64 {
    number as f64
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn parse_one(file: &File) {
    black_box(serde_json::from_slice::<serde_json::Value>(&file.bytes).ok());
}

fn read_one(file: &File) {
    black_box(manifest::read(&Document {
        bytes: &file.bytes,
        url: &file.url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[],
        force: None,
    }));
}

/// Every JSON file below a folder.
fn files(folder: &Path) -> Vec<File> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "json") {
                found.extend(file(&path));
            }
        }
    }
    found
}

fn file(path: &PathBuf) -> Option<File> {
    let bytes = std::fs::read(path).ok()?;
    let name = path.file_name()?.to_str()?;
    let url = ManifestUrl::parse(&format!("https://site.example/.well-known/{name}")).ok()?;
    Some(File { url, bytes })
}
