//! Crawls published files on test hosts for their repositories, audits the crawl and checks the results.
//!
//! Without the files, the test is skipped with a message.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use manifest::{Discovery, Document, Format, Manifest, ManifestUrl};
use policy::FetchOutcome;
use serde_json::Value;
use store::{FetchReport, Store};
use testweb::{Host, Web};

use crate::world::{Backend, World};

struct File {
    name: String,
    url: ManifestUrl,
    bytes: Vec<u8>,
}

fn corpus() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|folder| folder.join("shared/corpus")).find(|root| root.is_dir())
}

/// The URL path of a file: it starts at `.well-known` or at the file name; the part before that belongs to the repository.
fn served_path(path: &str) -> String {
    let path = path.split('#').next().unwrap_or_default();
    match path.find(".well-known") {
        Some(at) => format!("/{}", path.get(at..).unwrap_or_default()),
        None => format!("/{}", path.rsplit('/').next().unwrap_or_default()),
    }
}

/// Every file of the index. Files of one repository share a host if their paths differ.
fn files(root: &Path) -> Vec<File> {
    let index = std::fs::read_to_string(root.join("index.jsonl")).unwrap();
    let mut hosts: HashMap<(String, usize), Vec<String>> = HashMap::new();
    let mut names: BTreeMap<(String, usize), usize> = BTreeMap::new();
    let mut files = Vec::new();
    for line in index.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let (path, repository) = (served_path(&text("path")), text("repo"));
        let is_free = |hosts: &HashMap<(String, usize), Vec<String>>, copy| {
            hosts.get(&(repository.clone(), copy)).is_none_or(|paths| !paths.contains(&path))
        };
        let copy = (0..=files.len()).find(|copy| is_free(&hosts, *copy)).unwrap();
        let host = (repository, copy);
        hosts.entry(host.clone()).or_default().push(path.clone());
        let next = names.len();
        let number = *names.entry(host).or_insert(next);
        let url = ManifestUrl::parse(&format!("https://corpus{number}.test{path}")).unwrap();
        let bytes = std::fs::read(root.join(text("file"))).unwrap();
        files.push(File { name: text("file"), url, bytes });
    }
    files
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("txt") => "text/plain; charset=utf-8",
        Some("md") => "text/markdown",
        Some("yaml" | "yml") => "application/yaml",
        _ => "application/json",
    }
}

fn hosts(files: &[File]) -> Vec<Host> {
    let mut hosts: BTreeMap<String, Host> = BTreeMap::new();
    for file in files {
        let (name, path) = (file.url.host().to_string(), file.url.path());
        let host = hosts.remove(&name).unwrap_or_else(|| Host::new(&name));
        hosts.insert(name, host.file(path, content_type(path), file.bytes.clone()));
    }
    hosts.into_values().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_published_file_is_crawled_and_read() {
    let Some(root) = corpus() else {
        return report("skipped: no corpus found");
    };
    let files = files(&root);
    let hosts = hosts(&files);
    let sites = hosts.len();
    let world = World::start(Backend::Sqlite, Web::builder().hosts(hosts)).await;
    world.write_seeds(files.iter().map(|file| file.url.as_str()));
    let summary = world.crawl(&[]);
    assert_eq!(summary["sites_visited"], sites, "{summary}");
    world.assert_polite();

    let store = Store::open_in_data_dir(&world.path("data")).await.unwrap();
    let (mut read, mut without_manifest) = (BTreeMap::<&str, usize>::new(), Vec::new());
    for file in &files {
        let stored = store.manifests_of_site(&file.url.site()).await.unwrap();
        let found =
            stored.into_iter().map(|stored| stored.manifest).find(|manifest| manifest.url == file.url);
        if let Some(manifest) = found {
            *read.entry(manifest.format().as_str()).or_default() += 1;
            same_as_read_here(file, &manifest);
        } else {
            without_manifest.push(why_not(&store, file).await);
        }
    }
    store.close().await;
    report(&format!("{} files on {sites} sites, {} requests: {read:?}", files.len(), world.requests()));
    report(&format!("{} contain no manifest:\n{}", without_manifest.len(), without_manifest.join("\n")));
    assert!(read.values().sum::<usize>() * 10 > files.len() * 8, "too few files were read: {read:?}");
}

/// Asserts that the stored manifest equals the result of reading the file here.
fn same_as_read_here(file: &File, stored: &Manifest) {
    let here = read_here(file, stored.discovery, Some(&stored.served));
    assert_eq!(stored.format(), here.format(), "{}", file.name);
    if stored.links.iter().all(|link| link.follow != Some(manifest::model::Follow::Merge)) {
        assert_eq!(*stored, here, "{} has two different results", file.name);
    }
}

fn read_here(file: &File, discovery: Discovery, served: Option<&manifest::model::Served>) -> Manifest {
    let (bytes, url) = (file.bytes.as_slice(), &file.url);
    manifest::read(&Document { bytes, url, final_url: None, discovery, served, linked: &[], force: None })
}

/// Asserts that a file without a manifest was fetched and that the reader finds no manifest in it either; returns a description.
async fn why_not(store: &Store, file: &File) -> String {
    let known = store.site_report(&file.url.site(), 1).await.unwrap().unwrap();
    let fetches: &[FetchReport] = &known.visits.first().unwrap().fetches;
    let fetch = fetches.iter().find(|fetch| fetch.url == file.url);
    let fetch = fetch.unwrap_or_else(|| panic!("{} was not fetched: {fetches:?}", file.url));
    let here = read_here(file, Discovery::Submitted, None).format();
    let empty = matches!(here, Format::Opaque | Format::Unrelated | Format::Malformed);
    let judged = matches!(fetch.outcome, FetchOutcome::NotAManifest | FetchOutcome::Html);
    assert!(empty && judged, "{} ({here}) ended with {} ({:?})", file.name, fetch.outcome, fetch.reason);
    format!("{}: {here}, {}", file.name, fetch.reason.as_deref().unwrap_or_default())
}

#[expect(clippy::print_stderr, reason = "reports what was tested")]
fn report(text: &str) {
    eprintln!("{text}");
}
