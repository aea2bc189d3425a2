//! Compares the processor time of reading published files with the time of parsing their JSON.
//!
//! `cargo run --release -p manifest --example corpus_bench FOLDER [--rounds N] [--bar FACTOR] [--slowest N]` reads every JSON file below
//! the folder. With `--bar` it fails if reading takes more than `FACTOR` times as long as parsing.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use manifest::{Discovery, Document, Manifest, ManifestUrl};

/// The allocator that the programs use.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Default number of rounds over all files.
const ROUNDS: usize = 20;

struct File {
    path: PathBuf,
    url: ManifestUrl,
    bytes: Vec<u8>,
}

/// The command-line options.
struct Options {
    folder: PathBuf,
    rounds: usize,
    bar: Option<f64>,
    slowest: usize,
}

impl Options {
    fn parse(arguments: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let mut options =
            Self { folder: PathBuf::from(arguments.next()?), rounds: ROUNDS, bar: None, slowest: 0 };
        while let Some(name) = arguments.next() {
            let value = arguments.next()?;
            match name.as_str() {
                "--rounds" => options.rounds = value.parse().ok().filter(|rounds| *rounds > 0)?,
                "--bar" => options.bar = Some(value.parse().ok()?),
                "--slowest" => options.slowest = value.parse().ok()?,
                _ => return None,
            }
        }
        Some(options)
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its numbers")]
fn main() -> ExitCode {
    let Some(options) = Options::parse(std::env::args().skip(1)) else {
        println!("usage: corpus_bench FOLDER [--rounds N] [--bar FACTOR] [--slowest N]");
        return ExitCode::from(2);
    };
    let files = files(&options.folder);
    let bytes: usize = files.iter().map(|file| file.bytes.len()).sum();
    // Parsing and reading alternate, so that a busy machine slows both. The fastest round of each is used.
    let (mut parsed, mut read) = (Duration::MAX, Duration::MAX);
    for _ in 0..options.rounds {
        parsed = parsed.min(time(|| files.iter().for_each(parse_one)));
        read = read.min(time(|| files.iter().for_each(read_and_drop)));
    }
    println!("files {} bytes {bytes} rounds {}", files.len(), options.rounds);
    for (what, time) in [("parse", parsed), ("read", read)] {
        let seconds = time.as_secs_f64();
        let documents = count(files.len()) / seconds;
        let megabytes = count(bytes) / 1e6 / seconds;
        println!("{what:5} {documents:>9.0} documents/s {megabytes:>7.1} MB/s {:>8.1} ms", seconds * 1e3);
    }
    let factor = read.as_secs_f64() / parsed.as_secs_f64();
    println!("read takes {factor:.2} times as long as parse");
    print_slowest(&files, &options);
    match options.bar {
        Some(bar) if factor > bar => {
            println!("the bar is {bar}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Prints the files with the largest difference between reading time and parsing time.
#[expect(clippy::print_stdout, reason = "a benchmark prints its numbers")]
fn print_slowest(files: &[File], options: &Options) {
    if options.slowest == 0 {
        return;
    }
    let best = |work: &dyn Fn()| (0..options.rounds).map(|_| time(work)).min().unwrap_or_default();
    let mut times: Vec<(Duration, Duration, &File)> = files
        .iter()
        .map(|file| {
            let (parsed, read) = (best(&|| parse_one(file)), best(&|| drop(black_box(read_one(file)))));
            (read, parsed, file)
        })
        .collect();
    times.sort_by_key(|(read, parsed, _)| std::cmp::Reverse(read.saturating_sub(*parsed)));
    for (read, parsed, file) in times.iter().take(options.slowest) {
        let factor = read.as_secs_f64() / parsed.as_secs_f64();
        let format = read_one(file).format();
        println!(
            "{:>8.1} µs {factor:>5.1} times {:>7} bytes {format:14} {}",
            read.as_secs_f64() * 1e6,
            file.bytes.len(),
            file.path.display()
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of files and bytes are far below 2^52")]
fn count(number: usize) -> f64 {
    number as f64
}

/// Wall-clock time. Only the fastest round is used, which other programs on the machine hardly affect.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Not inlined, so that callgrind reports it by name.
#[inline(never)]
fn parse_one(file: &File) {
    black_box(serde_json::from_slice::<serde_json::Value>(&file.bytes).ok());
}

/// Not inlined, for the same reason.
#[inline(never)]
fn read_and_drop(file: &File) {
    drop(black_box(read_one(file)));
}

fn read_one(file: &File) -> Manifest {
    manifest::read(&Document {
        bytes: &file.bytes,
        url: &file.url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[],
        force: None,
    })
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
                found.extend(file(path));
            }
        }
    }
    found
}

fn file(path: PathBuf) -> Option<File> {
    let bytes = std::fs::read(&path).ok()?;
    let name = path.file_name()?.to_str()?;
    let url = ManifestUrl::parse(&format!("https://site.example/.well-known/{name}")).ok()?;
    Some(File { path, url, bytes })
}
