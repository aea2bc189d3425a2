//! Checks the dependencies in docs/ARCHITECTURE.md with `cargo metadata`: those allowed between crates, and those forbidden for the pure
//! crates. Also checks in the source code what every program must do when it starts.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// Each crate of the workspace with the workspace crates that it may depend on.
const ALLOWED_DEPENDENCIES: [(&str, &[&str]); 13] = [
    ("manifest", &[]),
    ("policy", &["manifest"]),
    ("store", &["manifest", "policy"]),
    ("settings", &[]),
    ("runtime", &["manifest"]),
    ("unified-features", &[]),
    ("egress", &["manifest", "policy", "unified-features"]),
    ("crawler", &["egress", "manifest", "policy", "runtime", "settings", "store", "unified-features"]),
    ("indexer", &["manifest", "policy", "runtime", "settings", "store", "unified-features"]),
    ("api", &["egress", "manifest", "policy", "runtime", "settings", "store", "indexer", "unified-features"]),
    ("testweb", &[]),
    (
        "agentdex",
        &["manifest", "policy", "runtime", "settings", "store", "crawler", "indexer", "api", "testweb"],
    ),
    ("agentdex-tests", &["manifest", "policy", "settings", "store", "crawler", "indexer", "api", "testweb"]),
];

/// The embedder is not a member of the workspace because it takes a minute to build. Only one crate may depend on it, optionally. Its own
/// dependencies are listed too.
const EMBEDDER: &str = "embedder";
const MAY_DEPEND_ON_EMBEDDER: &str = "indexer";
const DEPENDENCIES_OF_EMBEDDER: [&str; 4] = ["matrixmultiply", "ndarray", "safetensors", "tokenizers"];

/// The client of a distributed engine is not a member of the workspace either: only the feature `cluster` builds it, with its gRPC client.
const CLUSTER: &str = "cluster";
const MAY_DEPEND_ON_CLUSTER: [&str; 2] = ["indexer", "agentdex-tests"];
const DEPENDENCIES_OF_CLUSTER: [&str; 2] = ["tonic", "tonic-prost"];

/// Crates that contain only decisions and values, and the dependencies that would add a clock, a network or a database.
const PURE: [&str; 2] = ["manifest", "policy"];
const IMPURE: [&str; 8] =
    ["tokio", "reqwest", "hyper", "sqlx", "axum", "tantivy", "rand", "hickory-resolver"];

/// Clients that connect only to configured hosts: a collector of spans, a bucket of snapshots. The third crate has no code: it only selects
/// features of dependencies.
const CLIENTS_OF_CONFIGURED_HOSTS: [&str; 3] = ["opentelemetry-otlp", "object_store", "unified-features"];

/// Crates of programs: only `agentdex` and the tests may depend on them.
const PROGRAMS: [&str; 2] = ["crawler", "api"];
const MAY_DEPEND_ON_PROGRAMS: [&str; 2] = ["agentdex", "agentdex-tests"];

fn metadata() -> Metadata {
    MetadataCommand::new().other_options(["--locked".to_owned()]).exec().expect("cargo metadata")
}

/// The dependencies of a package, without dev-dependencies.
fn dependencies(package: &Package) -> BTreeSet<&str> {
    let built =
        package.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Development);
    built.map(|dependency| dependency.name.as_str()).collect()
}

/// The packages of the workspace by name.
fn members(metadata: &Metadata) -> BTreeMap<&str, &Package> {
    metadata.workspace_packages().into_iter().map(|package| (package.name.as_str(), package)).collect()
}

/// All direct and indirect build dependencies of a package.
fn transitive_dependencies<'a>(metadata: &'a Metadata, package: &Package) -> BTreeSet<&'a str> {
    transitive_dependencies_without(metadata, package, &[])
}

/// The transitive dependencies without those that are reached only through some packages.
fn transitive_dependencies_without<'a>(
    metadata: &'a Metadata,
    package: &Package,
    left_out: &[&str],
) -> BTreeSet<&'a str> {
    let resolved = metadata.resolve.as_ref().expect("a resolved graph");
    let mut queue = vec![&package.id];
    let mut seen = BTreeSet::new();
    while let Some(id) = queue.pop() {
        if left_out.contains(&metadata[id].name.as_str()) || !seen.insert(id) {
            continue;
        }
        let node = resolved.nodes.iter().find(|node| &node.id == id).expect("a node for each package");
        let built = node
            .deps
            .iter()
            .filter(|dependency| dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal));
        queue.extend(built.map(|dependency| &dependency.pkg));
    }
    metadata
        .packages
        .iter()
        .filter(|other| seen.contains(&other.id))
        .map(|other| other.name.as_str())
        .collect()
}

#[test]
fn every_crate_declares_its_allowed_dependencies() {
    let metadata = metadata();
    let declared: BTreeSet<&str> = ALLOWED_DEPENDENCIES.iter().map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = members(&metadata).into_keys().collect();
    assert_eq!(
        found, declared,
        "a crate was added or removed: update ALLOWED_DEPENDENCIES and ARCHITECTURE.md"
    );
}

#[test]
fn crates_depend_only_on_allowed_crates() {
    let metadata = metadata();
    let members = members(&metadata);
    for (name, allowed) in ALLOWED_DEPENDENCIES {
        let ours = dependencies(members[name]).into_iter().filter(|other| members.contains_key(other));
        let stray: Vec<_> = ours.filter(|other| !allowed.contains(other)).collect();
        assert!(stray.is_empty(), "{name} depends on {stray:?}, which ALLOWED_DEPENDENCIES does not permit");
    }
}

#[test]
fn pure_crates_depend_on_no_clock_network_or_database() {
    let metadata = metadata();
    let members = members(&metadata);
    for name in PURE {
        let reached = transitive_dependencies(&metadata, members[name]);
        let stray: Vec<_> = IMPURE.iter().filter(|impure| reached.contains(*impure)).collect();
        assert!(stray.is_empty(), "{name} reaches {stray:?}");
    }
}

/// The crate that sends requests to the web, and the crates that may use it. The crawler obeys `policy` before each request, and the API
/// queries only the registries that its operator configured.
const SENDER: &str = "egress";
const MAY_SEND: [&str; 2] = ["api", "crawler"];
/// Crates that may depend on an HTTP client or a resolver: the sender, the selection of features, and the tests.
const MAY_HAVE_CLIENTS: [&str; 3] = [SENDER, "unified-features", "agentdex-tests"];

#[test]
fn only_the_crawler_and_the_api_send_requests() {
    let metadata = metadata();
    for (name, package) in members(&metadata) {
        let direct: BTreeSet<&str> =
            package.dependencies.iter().map(|dependency| dependency.name.as_str()).collect();
        if !MAY_SEND.contains(&name) {
            assert!(!direct.contains(SENDER), "{name} depends on {SENDER}, in tests or outside");
        }
        if !MAY_HAVE_CLIENTS.contains(&name) {
            let built = dependencies(package);
            let clients: Vec<_> =
                ["reqwest", "hickory-resolver"].into_iter().filter(|client| built.contains(client)).collect();
            assert!(clients.is_empty(), "{name} depends on {clients:?}");
        }
    }
}

/// Client input must never make the API connect to another host than the configured peers: its one module that can send takes addresses
/// from the configuration alone, and only `POST /search` uses that module.
#[test]
fn the_api_sends_to_configured_peers_only() {
    let module = "api/src/federation/";
    for (name, text) in sources("api/src") {
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        assert!(!text.contains("egress::") || name.starts_with(module), "{name} uses {SENDER}");
        assert!(!text.contains(".ask(&question)") || name == "api/src/ard/federated.rs", "{name} asks peers");
        let makes_addresses = text.contains("PeerUrl {") || text.contains("PeerUrl::parse(");
        assert!(
            !makes_addresses || name == format!("{module}settings.rs"),
            "{name} constructs addresses of peers"
        );
        let sends = text.contains(".post_json(") || text.contains(".fetch(&") || text.contains(".session(");
        assert!(!sends || name == format!("{module}peer.rs"), "{name} sends requests");
    }
}

#[test]
fn the_api_does_not_depend_on_an_http_client() {
    let metadata = metadata();
    let without: Vec<&str> = CLIENTS_OF_CONFIGURED_HOSTS.into_iter().chain([SENDER]).collect();
    let reached = transitive_dependencies_without(&metadata, members(&metadata)["api"], &without);
    let clients: Vec<_> =
        ["reqwest", "hyper-rustls", "ureq"].into_iter().filter(|name| reached.contains(name)).collect();
    assert!(clients.is_empty(), "api depends on {clients:?}");
}

#[test]
fn only_agentdex_and_the_tests_depend_on_the_programs() {
    let metadata = metadata();
    for (name, package) in members(&metadata) {
        if MAY_DEPEND_ON_PROGRAMS.contains(&name) {
            continue;
        }
        let all: BTreeSet<&str> =
            package.dependencies.iter().map(|dependency| dependency.name.as_str()).collect();
        let stray: Vec<_> = PROGRAMS.iter().filter(|program| all.contains(*program)).collect();
        assert!(stray.is_empty(), "{name} depends on {stray:?}, in tests or outside");
    }
}

#[test]
fn the_embedder_is_built_only_with_its_feature() {
    let metadata = metadata();
    for (name, package) in members(&metadata) {
        let stray: Vec<_> = [EMBEDDER].into_iter().chain(DEPENDENCIES_OF_EMBEDDER).collect();
        let reached = transitive_dependencies(&metadata, package);
        assert!(!stray.iter().any(|apart| reached.contains(apart)), "{name} is built with the embedder");
        let ours = package.dependencies.iter().filter(|dependency| dependency.name == EMBEDDER);
        assert!(
            ours.clone().all(|dependency| dependency.optional),
            "the dependency of {name} on {EMBEDDER} is not optional"
        );
        assert!(
            ours.count() == usize::from(name == MAY_DEPEND_ON_EMBEDDER),
            "{name} may not depend on {EMBEDDER}"
        );
    }
    let manifest = std::fs::read_to_string(metadata.workspace_root.join("crates/embedder/Cargo.toml"))
        .expect("the Cargo.toml of the embedder");
    assert!(!manifest.contains("path ="), "{EMBEDDER} must not have a path dependency");
}

#[test]
fn the_client_of_an_engine_is_built_only_with_its_feature() {
    let metadata = metadata();
    for (name, package) in members(&metadata) {
        let stray: Vec<_> = [CLUSTER].into_iter().chain(DEPENDENCIES_OF_CLUSTER).collect();
        let reached = transitive_dependencies(&metadata, package);
        assert!(!stray.iter().any(|apart| reached.contains(apart)), "{name} is built with the client");
        let mut ours = package.dependencies.iter().filter(|dependency| dependency.name == CLUSTER);
        assert!(
            ours.all(|dependency| dependency.optional && MAY_DEPEND_ON_CLUSTER.contains(&name)),
            "{name} may not depend on {CLUSTER}"
        );
    }
    let manifest = std::fs::read_to_string(metadata.workspace_root.join("crates/cluster/Cargo.toml"))
        .expect("the Cargo.toml of the client");
    assert!(!manifest.contains("path ="), "{CLUSTER} must not have a path dependency");
}

/// RUSTSEC-2024-0436: `paste` is no longer maintained. Only the tokenizer of the optional embedder needs it.
#[test]
fn only_the_embedder_needs_an_unmaintained_crate() {
    let metadata = metadata();
    for (name, package) in members(&metadata) {
        assert!(
            !transitive_dependencies(&metadata, package).contains("paste"),
            "{name} depends on paste without the embedder"
        );
    }
    let deny = std::fs::read_to_string(metadata.workspace_root.join("deny.toml")).expect("deny.toml");
    assert!(deny.contains("RUSTSEC-2024-0436"), "deny.toml must list the advisory");
}

/// Manifests range from a few KiB to several MiB, so the API may read one only with a permit for its bytes.
#[test]
fn the_api_reads_manifests_in_one_module() {
    const READS: [&str; 7] = [
        ".manifest_find(",
        ".manifests_load(",
        ".manifests_packed(",
        ".manifests_page(",
        ".manifests_of_site(",
        ".manifest_of_capability(",
        ".version_find(",
    ];
    let stray = calls_outside("api/src", &READS, &["manifests.rs"]);
    assert!(stray.is_empty(), "use App::manifests instead: {stray:#?}");
}

/// A parser without a budget can build a tree as large as the maximum body allows.
#[test]
fn untrusted_json_is_parsed_within_a_budget() {
    const PARSERS: [&str; 3] = ["serde_json::from_slice", "serde_json::from_str", "serde_json::from_reader"];
    // JSON that the API wrote itself, and a parameter of at most 1,024 characters.
    const OF_THE_API: [&str; 3] = ["json_text.rs", "tools/find.rs", "dashboard/use_it/examples.rs"];
    // The queue and the progress that the crawler wrote itself.
    const OF_THE_CRAWLER: [&str; 1] = ["visit/queue.rs"];
    let mut stray = calls_outside("api/src", &PARSERS, &OF_THE_API);
    stray.extend(calls_outside("crawler/src", &PARSERS, &OF_THE_CRAWLER));
    assert!(stray.is_empty(), "use manifest::budget::parse_within_budget instead: {stray:#?}");
}

/// The calls in a directory, without tests, in files that may not make them.
fn calls_outside(folder: &str, calls: &[&str], may_call: &[&str]) -> Vec<String> {
    let mut stray = Vec::new();
    for (name, text) in sources(folder) {
        let name = name.trim_start_matches(folder).trim_start_matches('/');
        if !name.ends_with("tests.rs") && !may_call.contains(&name) {
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            let found = calls.iter().filter(|call| text.contains(**call));
            stray.extend(found.map(|call| format!("{name} calls {call}")));
        }
    }
    stray
}

/// The paths and texts of the Rust files below a directory of the workspace.
fn sources(folder: &str) -> Vec<(String, String)> {
    let root = metadata().workspace_root;
    let mut folders = vec![root.join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir_utf8().expect("a folder") {
            let path = entry.expect("an entry").into_path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension() == Some("rs") {
                let name = path.strip_prefix(&root).expect("below the workspace").as_str().to_owned();
                files.push((name, std::fs::read_to_string(&path).expect("a file")));
            }
        }
    }
    files
}

/// The program files that call a function.
fn programs_that_call(call: &str) -> BTreeMap<String, String> {
    let folders = ["api/src", "crawler/src", "indexer/src", "crates/agentdex/src"];
    folders.into_iter().flat_map(sources).filter(|(_, text)| text.contains(call)).collect()
}

/// A separate thread handles signals from the start, so that a program exits within its drain time even if it is blocked.
#[test]
fn every_program_handles_signals_before_it_opens_its_store() {
    const OPENINGS: [(&str, &str); 6] = [
        ("api/src/program.rs", "App::open("),
        ("crates/agentdex/src/mcp.rs", "Store::open_existing("),
        ("crates/agentdex/src/serve.rs", "Store::open_when_available("),
        ("crawler/src/cli/app.rs", "Store::open_when_available("),
        ("crawler/src/cli/check.rs", "crate::check("),
        ("indexer/src/program.rs", "Store::open_when_available("),
    ];
    let programs = programs_that_call("::on_signals(");
    let names: Vec<&str> = programs.keys().map(String::as_str).collect();
    assert_eq!(names, OPENINGS.map(|(name, _)| name));
    for (name, opening) in OPENINGS {
        let (before, after) = programs[name].split_once("::on_signals(").expect("the call");
        let time = after.split(')').next().unwrap_or_default();
        assert!(time.ends_with("STOP_MAX"), "{name}: {time}");
        assert!(!before.contains(opening) && after.contains(opening), "{name}: {opening}");
    }
    for name in programs_that_call("Store::open_when_available(").into_keys() {
        assert!(names.contains(&name.as_str()) || name == "api/src/state.rs", "{name} handles no signals");
    }
}

/// Programs must keep the watchdog because dropping it ends it. `/readyz` reads its state.
#[test]
fn every_program_keeps_its_watchdog() {
    let programs = programs_that_call("runtime::start()");
    let names: Vec<&str> = programs.keys().map(String::as_str).collect();
    let expected = [
        "api/src/program.rs",
        "crates/agentdex/src/main.rs",
        "crawler/src/cli/app.rs",
        "indexer/src/program.rs",
    ];
    assert_eq!(names, expected);
    for (name, text) in &programs {
        assert!(text.contains("(runtime, watchdog)") || text.contains("(runtime, _watchdog)"), "{name}");
    }
    assert!(programs["api/src/program.rs"].contains("runtime_health: watchdog.health()"));
    assert!(programs["crates/agentdex/src/main.rs"].contains("work(watchdog.health())"));
    assert!(programs_that_call("ApiConfig { runtime_health,").contains_key("crates/agentdex/src/serve.rs"));
}

/// A program that cannot start itself as a reader reports an error instead of reading documents in its own process.
#[test]
fn every_program_that_reads_documents_has_a_reader_process() {
    let programs = programs_that_call("ReaderProgram::this_program()");
    let names: Vec<&str> = programs.keys().map(String::as_str).collect();
    let expected = [
        "api/src/program.rs",
        "crates/agentdex/src/main.rs",
        "crates/agentdex/src/mcp.rs",
        "crates/agentdex/src/serve.rs",
        "crawler/src/cli/settings.rs",
    ];
    assert_eq!(names, expected);
    for (name, text) in &programs {
        assert!(!text.contains("this_program().ok()"), "{name} drops the error");
    }
}

#[test]
fn every_workspace_dependency_has_a_purpose_comment() {
    let metadata = metadata();
    let root =
        std::fs::read_to_string(metadata.workspace_root.join("Cargo.toml")).expect("the root Cargo.toml");
    let (_, section) = root.split_once("[workspace.dependencies]\n").expect("the workspace's dependencies");
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    let apart = std::fs::read_to_string(metadata.workspace_root.join("crates/embedder/Cargo.toml"))
        .expect("the Cargo.toml of the embedder");
    let (_, section) = apart.split_once("[dependencies]\n").expect("its dependencies");
    let lines = lines.chain(section.lines().take_while(|line| !line.starts_with('[')));
    let foreign =
        lines.filter(|line| line.contains('=') && !line.starts_with('#') && !line.contains("path ="));
    let unexplained: Vec<_> =
        foreign.filter(|line| line.split_once(" # ").is_none_or(|(_, purpose)| purpose.len() < 10)).collect();
    assert!(unexplained.is_empty(), "without a purpose comment: {unexplained:#?}");
}

#[test]
fn crates_take_their_dependencies_from_the_workspace() {
    let metadata = metadata();
    for (name, package) in members(&metadata) {
        let text = std::fs::read_to_string(&package.manifest_path).expect("the crate's Cargo.toml");
        let pinned: Vec<_> = text.lines().filter(|line| line.contains("version = \"")).collect();
        assert!(pinned.is_empty(), "{name} pins its own versions: {pinned:?}");
    }
}
