//! Checks the layers inside each crate: no cycles between modules, no page that imports a route, no public function or constant that other
//! crates do not use.
//!
//! Each exception has a reason. The test fails if an exception is no longer needed.

mod graph;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use graph::{Graph, cycles, edges_within};
use source::{Crate, Segments};

/// Maximum number of files in a cycle, such as a module and its submodules, or documents inside documents.
const CYCLE_FILES_MAX: usize = 10;

/// Crates by directory.
const CRATES: [&str; 13] = [
    "api",
    "crates/agentdex",
    "crates/cluster",
    "crates/egress",
    "crates/embedder",
    "crates/manifest",
    "crates/policy",
    "crates/runtime",
    "crates/settings",
    "crates/store",
    "crates/testweb",
    "crawler",
    "indexer",
];

/// Crates whose public functions and constants other crates use.
const LIBRARIES: [&str; 4] = ["crates/manifest", "crates/policy", "crates/settings", "crates/store"];

/// Cycles between the top-level modules of a crate.
const MODULE_CYCLES: [(&str, &[&str], &str); 0] = [];

/// Cycles of more than [`CYCLE_FILES_MAX`] files: the crate, the maximum number of files, and the reason.
const FILE_CYCLES: [(&str, usize, &str); 0] = [];

/// Sibling modules of `api` that answer requests, and the allowed imports between them: a handler renders a page, the MCP server and the
/// self-description list the tools, the home page links to the self-description, and a lookup finds the entries of the API's own catalog.
const API_SIBLINGS: [&str; 6] = ["ard", "dashboard", "mcp", "routes", "self_description", "tools"];
const API_SIBLING_IMPORTS: [(&str, &str); 5] = [
    ("ard", "self_description"),
    ("mcp", "tools"),
    ("routes", "dashboard"),
    ("routes", "self_description"),
    ("self_description", "tools"),
];

/// Public functions and constants that no other crate uses.
const UNUSED: [(&str, &[&str], &str); 6] = [
    (
        "crates/manifest",
        &["BODY"],
        "the test of the cost of JSON-LD and a fuzz target parse within these limits",
    ),
    ("crates/manifest", &["catalogue"], "an example and a test print them for docs/FORMATS.md"),
    (
        "crates/policy",
        &["PATHS_WORK_MAX", "PATH_WORK_MAX"],
        "the test of the cost of robots.txt uses them as limits",
    ),
    ("crates/store", &["due_now"], "the tests of several crates and the benchmark of the store call it"),
    ("crates/store", &["task_failed", "task_succeeded"], "`TaskMonitor` calls them, and the contract test"),
    ("crates/store", &["REGISTRY_ROWS_MAX"], "the contract test fills a registry up to this limit"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in the workspace")
}

fn read(name: &str) -> Crate {
    Crate::read(&root().join(name).join("src"))
}

/// The dependencies between modules, as a graph whose nodes `node` derives from the module paths.
fn graph(source: &Crate, node: impl Fn(&Segments) -> String) -> Graph {
    let mut graph = Graph::new();
    for path in source.modules.keys() {
        let from = node(path);
        let targets = source.dependencies(path).iter().map(&node).filter(|target| *target != from).collect();
        graph.entry(from).or_default().extend::<BTreeSet<String>>(targets);
    }
    graph
}

/// The top-level module of a path; items of the root count as their own module.
fn top_level(path: &Segments) -> String {
    path.first().map_or_else(|| "lib".to_owned(), Clone::clone)
}

#[test]
fn top_level_modules_form_no_cycles() {
    let mut needed = BTreeSet::new();
    for name in CRATES {
        let graph = graph(&read(name), top_level);
        for cycle in cycles(&graph) {
            let allowed = MODULE_CYCLES.iter().position(|(of, modules, _)| {
                *of == name && cycle.iter().all(|module| modules.contains(&module.as_str()))
            });
            let edges = edges_within(&graph, &cycle);
            needed.insert(allowed.unwrap_or_else(|| panic!("{name}: modules in a cycle: {edges:#?}")));
        }
    }
    for (place, (name, modules, _)) in MODULE_CYCLES.iter().enumerate() {
        assert!(needed.contains(&place), "{name}: remove the exception for {modules:?}");
    }
}

#[test]
fn no_cycle_exceeds_ten_files() {
    for name in CRATES {
        let source = read(name);
        let file_of = |path: &Segments| source.modules[path].file.display().to_string();
        let graph = graph(&source, file_of);
        let largest = cycles(&graph).first().map_or(0, BTreeSet::len);
        let allowed = FILE_CYCLES.iter().find(|(of, ..)| *of == name).map(|(_, files, _)| *files);
        let files_max = allowed.unwrap_or(CYCLE_FILES_MAX);
        assert!(largest <= files_max, "{name}: {largest} files in a cycle: {:#?}", cycles(&graph).first());
        let is_needed = allowed.is_none() || largest > CYCLE_FILES_MAX;
        assert!(is_needed, "{name}: remove the exception, its largest cycle has {largest} files");
    }
}

#[test]
fn pages_do_not_import_routes_and_siblings_do_not_import_each_other() {
    let graph = graph(&read("api"), top_level);
    let siblings = |target: &&String| API_SIBLINGS.contains(&target.as_str());
    let imports = API_SIBLINGS.into_iter().flat_map(|from| {
        graph[from].iter().filter(siblings).map(move |to| (from, to.as_str())).collect::<Vec<_>>()
    });
    assert_eq!(imports.collect::<Vec<_>>(), API_SIBLING_IMPORTS);
}

#[test]
fn other_crates_use_every_public_function_and_constant() {
    let crates: BTreeMap<&str, Crate> = CRATES.into_iter().map(|name| (name, read(name))).collect();
    for library in LIBRARIES {
        let others = crates.iter().filter(|(name, _)| **name != library);
        let words: BTreeSet<&String> =
            others.flat_map(|(_, source)| source.modules.values().flat_map(|module| &module.words)).collect();
        let public = crates[library].modules.values().flat_map(|module| &module.public);
        let unused: BTreeSet<&str> =
            public.filter(|name| !words.contains(name)).map(String::as_str).collect();
        let exceptions = UNUSED.iter().filter(|(of, ..)| *of == library);
        let allowed: BTreeSet<&str> = exceptions.flat_map(|(_, names, _)| names.iter().copied()).collect();
        let stray: Vec<_> = unused.difference(&allowed).collect();
        assert!(stray.is_empty(), "{library}: no other crate names {stray:?}: narrow or delete them");
        let stale: Vec<_> = allowed.difference(&unused).collect();
        assert!(stale.is_empty(), "{library}: remove the exceptions for {stale:?}");
    }
}

/// Tests the checks above with a known cycle.
#[test]
fn finds_cycles_through_reexports_and_macros() {
    let folder = tempfile::tempdir().expect("a folder");
    for (file, text) in [
        ("lib.rs", "mod a; mod b; mod c; mod d; pub use b::B; pub fn unused() {}"),
        ("a.rs", "use crate::B; pub struct A(B);"),
        ("b.rs", "pub struct B; fn f() { println!(\"{}\", super::c::TEXT); }"),
        ("c.rs", "use super::a::A; pub const TEXT: &str = \"\"; pub fn of(_: A) {}"),
        ("d.rs", "use crate::a::A; #[cfg(test)] mod tests { use crate::a; }"),
    ] {
        std::fs::write(folder.path().join(file), text).expect("a file");
    }
    let source = Crate::read(folder.path());
    let graph = graph(&source, top_level);
    let expected: BTreeSet<String> = ["a", "b", "c"].map(str::to_owned).into();
    assert_eq!(cycles(&graph), [expected]);
    assert_eq!(source.modules[&Vec::new()].public, ["unused"]);
}
