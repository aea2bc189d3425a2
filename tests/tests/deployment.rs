//! Checks that the deployment files agree with the workspace: facts across files that format validators cannot check.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::MetadataCommand;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The documents of a YAML file.
fn yaml(path: &str) -> Vec<Value> {
    text(path).split("\n---\n").map(|document| yaml_serde::from_str(document).unwrap()).collect()
}

/// Every file below a directory, as text.
fn texts(folder: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                texts.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    texts
}

fn files_below(folder: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn the_image_builds_every_crate_with_the_toolchain_of_the_workspace() {
    let metadata = MetadataCommand::new().no_deps().other_options(["--locked".to_owned()]).exec().unwrap();
    let dockerfile = text("deploy/Dockerfile");
    for package in metadata.workspace_packages() {
        let manifest = package.manifest_path.strip_prefix(&metadata.workspace_root).unwrap();
        let folder = manifest.parent().unwrap();
        assert!(
            dockerfile.contains(&format!("COPY {manifest} {folder}/\n")),
            "deploy/Dockerfile does not copy {manifest} before it builds the dependencies"
        );
    }
    let toolchain = metadata.workspace_packages()[0].rust_version.clone().unwrap();
    let from = format!("FROM rust:{}.{}-", toolchain.major, toolchain.minor);
    assert!(dockerfile.contains(&from), "deploy/Dockerfile does not begin with {from}");
    let version = metadata.workspace_packages()[0].version.to_string();
    assert!(
        dockerfile.contains(&format!("ARG VERSION={version}\n")),
        "deploy/Dockerfile has another version"
    );
    let kustomization = &yaml("deploy/kubernetes/base/kustomization.yaml")[0];
    assert_eq!(kustomization["images"][0]["newTag"], version.as_str());
}

/// Features that few need, and that lengthen the build.
const FEATURES_ON_REQUEST: [&str; 2] = ["cluster", "embedder"];

/// Every feature of the package except those on request.
#[test]
fn releases_have_the_optional_features() {
    let metadata = MetadataCommand::new().no_deps().other_options(["--locked".to_owned()]).exec().unwrap();
    let package =
        metadata.workspace_packages().into_iter().find(|package| package.name == "agentdex").unwrap();
    let features: Vec<&str> = package
        .features
        .keys()
        .map(String::as_str)
        .filter(|name| !FEATURES_ON_REQUEST.contains(name))
        .collect();
    let features = features.join(",");
    assert_eq!(features, "opentelemetry,s3");
    let dockerfile = text("deploy/Dockerfile");
    let builds: Vec<&str> = dockerfile.lines().filter(|line| line.contains("cargo build")).collect();
    assert!(
        builds.len() == 2 && builds.iter().all(|line| line.contains("--features \"$FEATURES\" ")),
        "{builds:?}"
    );
    let argument = format!("\nARG FEATURES={features}\n");
    assert!(dockerfile.contains(&argument), "deploy/Dockerfile has other features");
    let script = text("deploy/build-release");
    assert!(script.contains(&format!("\nfeatures={features}\n")), "deploy/build-release has other features");
    let mut builds = script.lines().filter(|line| line.contains("--release --locked"));
    assert!(
        builds.all(|line| line.contains("--features \"$features\"")),
        "deploy/build-release does not build with these features"
    );
    for name in package.features.keys() {
        let readme = text("README.md");
        assert!(readme.contains(&format!("\n| `{name}` | ")), "README.md does not list the feature {name}");
    }
}

#[test]
fn compose_starts_every_program() {
    let compose: Value = {
        let mut value: yaml_serde::Value = yaml_serde::from_str(&text("deploy/compose.yaml")).unwrap();
        value.apply_merge().unwrap();
        serde_json::to_value(value).unwrap()
    };
    let services = compose["services"].as_object().unwrap();
    let names: BTreeSet<&str> = services.keys().map(String::as_str).collect();
    assert_eq!(names, BTreeSet::from(["api", "crawler", "grafana", "indexer", "postgres", "prometheus"]));
    for twice in ["crawler", "api"] {
        assert_eq!(services[twice]["deploy"]["replicas"], 2, "{twice}");
    }
    for ours in ["crawler", "indexer", "api"] {
        assert!(services[ours]["healthcheck"]["test"].is_array(), "{ours} has no health check");
        assert_eq!(services[ours]["read_only"], true, "{ours}");
        let is_outside = services[ours]["networks"].as_array().unwrap().contains(&Value::from("outside"));
        assert_eq!(is_outside, ours == "crawler", "only the crawler may reach the internet: {ours}");
    }
    assert_eq!(compose["networks"]["inside"]["internal"], true);
}

/// Prometheus scrapes every program of the compose file that serves metrics, at its port, and has a token for the API.
#[test]
fn prometheus_scrapes_every_program_of_the_compose_file() {
    let compose = text("deploy/compose.yaml");
    let scrapes = &yaml("deploy/prometheus/prometheus.yml")[0]["scrape_configs"];
    let scrapes = scrapes.as_array().unwrap();
    for (service, port, flag) in [
        ("crawler", 9101, "--metrics=0.0.0.0:9101"),
        ("indexer", 9102, "\"--metrics\", \"0.0.0.0:9102\""),
        ("api", 8080, "\"--listen\", \"0.0.0.0:8080\""),
    ] {
        assert!(compose.contains(flag), "{service} does not start with {flag}");
        let job = format!("agentdex-{service}");
        let scrape = scrapes.iter().find(|scrape| scrape["job_name"] == job.as_str());
        let scrape = scrape.unwrap_or_else(|| panic!("prometheus.yml has no job {job}"));
        let target = &scrape["dns_sd_configs"][0];
        assert_eq!((&target["names"][0], &target["port"]), (&service.into(), &port.into()), "{job}");
        let token = &scrape["authorization"]["credentials_file"];
        assert_eq!(token == "/run/secrets/metrics_token", service == "api", "{job}: {token}");
    }
    let compose: Value =
        serde_json::to_value(yaml_serde::from_str::<yaml_serde::Value>(&compose).unwrap()).unwrap();
    let script = text("deploy/metrics-token");
    for (service, secret) in [("prometheus", "metrics_token"), ("api", "admin_tokens")] {
        assert_eq!(compose["services"][service]["secrets"][0], secret, "{service}");
        assert_eq!(compose["secrets"][secret]["file"], format!("./secrets/{secret}"));
        assert!(
            script.contains(&format!(">{secret}")) || script.contains(&format!(">>{secret}")),
            "{secret}"
        );
    }
    for ignored in [text(".gitignore"), text(".dockerignore")] {
        assert!(ignored.contains("deploy/secrets\n"), "secrets could be committed or built into the image");
    }
}

#[test]
fn the_kubernetes_base_lists_every_file() {
    let kustomization = &yaml("deploy/kubernetes/base/kustomization.yaml")[0];
    let listed = kustomization["resources"].as_array().unwrap().iter();
    let mut listed: BTreeSet<String> = listed.map(|name| name.as_str().unwrap().to_owned()).collect();
    listed.insert("kustomization.yaml".to_owned());
    assert_eq!(listed, files_below("deploy/kubernetes/base"));
}

/// The overlay contains the base, and each of its own files.
#[test]
fn the_kubernetes_overlay_of_a_cluster_lists_every_file() {
    let kustomization = &yaml("deploy/kubernetes/cluster/kustomization.yaml")[0];
    let listed = kustomization["resources"].as_array().unwrap().iter();
    let mut listed: BTreeSet<String> = listed.map(|name| name.as_str().unwrap().to_owned()).collect();
    assert!(listed.remove("../base"));
    listed.insert("kustomization.yaml".to_owned());
    assert_eq!(listed, files_below("deploy/kubernetes/cluster"));
}

/// The limits of queries that agentdex needs, on every server that a file starts.
#[test]
fn servers_of_a_cluster_accept_the_queries_of_agentdex() {
    const NEEDED: [&str; 4] = [
        "--max-concurrent-searches=32",
        "--max-query-nodes=4096",
        "--max-query-clauses=4096",
        "--max-boolean-clauses=1024",
    ];
    let flags_of = |file: &str| -> Vec<String> {
        let words = text(file)
            .split_whitespace()
            .map(|word| word.trim_matches(['"', ',']).to_owned())
            .collect::<Vec<_>>();
        words.into_iter().filter(|word| word.starts_with("--max-")).collect()
    };
    for file in [
        "deploy/cluster/compose.yaml",
        "deploy/kubernetes/cluster/engine.yaml",
        "tests/tests/cluster/servers.rs",
    ] {
        let flags = flags_of(file);
        for needed in NEEDED {
            assert!(
                flags.iter().any(|flag| flag.starts_with(needed)),
                "{file} does not start servers with {needed}"
            );
        }
    }
}

#[test]
fn in_kubernetes_only_the_crawler_reaches_the_internet() {
    let policies = yaml("deploy/kubernetes/base/network-policies.yaml");
    let nothing = policies.iter().find(|policy| policy["metadata"]["name"] == "nothing").unwrap();
    assert_eq!(nothing["spec"]["podSelector"], serde_json::json!({}), "the policy must apply to every pod");
    assert!(nothing["spec"].get("egress").is_none() && nothing["spec"].get("ingress").is_none());
    let mut crawler_reaches_the_world = false;
    for policy in &policies {
        let rules = policy["spec"]["egress"].as_array().cloned().unwrap_or_default();
        for rule in rules {
            let to = rule["to"].as_array().expect("a rule without `to` lets a pod reach everything").clone();
            for block in to.iter().filter(|to| to.get("ipBlock").is_some()) {
                let pods = &policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/name"];
                assert_eq!(pods, "crawler", "{} opens {block}", policy["metadata"]["name"]);
                crawler_reaches_the_world |= block["ipBlock"]["cidr"] == "0.0.0.0/0";
            }
        }
    }
    assert!(crawler_reaches_the_world);
}

#[test]
fn every_container_has_limits_and_no_privileges() {
    for file in ["crawler.yaml", "api.yaml"] {
        let path = format!("deploy/kubernetes/base/{file}");
        let deployment = yaml(&path).into_iter().find(|document| document["kind"] == "Deployment").unwrap();
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{file}");
        for container in pod["containers"].as_array().unwrap() {
            let name = &container["name"];
            assert!(container["resources"]["limits"]["memory"].is_string(), "{file}: {name} has no limit");
            assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true, "{file}: {name}");
            assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL", "{file}: {name}");
            let is_probed = container["livenessProbe"].is_object() || name == "indexer";
            assert!(is_probed, "{file}: {name} has no probe");
        }
    }
}

#[test]
fn every_unit_has_the_same_hardening() {
    let hardening = |unit: &str| -> Vec<String> {
        let unit = text(&format!("deploy/systemd/{unit}"));
        let (_, rest) = unit.split_once("# What it may not do.\n").unwrap();
        // allowed addresses differ: some programs reach the internet
        let is_shared = |line: &&str| !line.starts_with('#') && !line.starts_with("IPAddress");
        rest.lines().take_while(|line| !line.is_empty()).filter(is_shared).map(str::to_owned).collect()
    };
    let units = files_below("deploy/systemd");
    assert_eq!(units.len(), 4, "{units:?}");
    for unit in &units {
        assert_eq!(hardening(unit), hardening("agentdex.service"), "{unit}");
    }
}

#[test]
fn the_starter_seeds_are_valid() {
    let path = root().join("deploy/seeds/starter.txt");
    let mut reader = crawler::seeds::SeedReader::new(manifest::SiteScope::Public, &|| false);
    let file = std::fs::File::open(path).unwrap();
    let mut hosts = BTreeSet::new();
    let each = |seed: store::Seed| hosts.extend([seed.host.to_string()]);
    reader.read("starter.txt", file, each).unwrap();
    let report = reader.into_report();
    assert!(report.rejected.is_empty() && report.duplicates == 0, "{report:?}");
    assert!(hosts.len() >= 50, "only {} hosts", hosts.len());
    let elsewhere =
        ["vercel.app", "netlify.app", "ngrok", "trycloudflare.com", "pages.dev", "example", "localhost"];
    let stray: Vec<&String> =
        hosts.iter().filter(|host| elsewhere.iter().any(|end| host.contains(end))).collect();
    assert!(stray.is_empty(), "previews or placeholders: {stray:?}");
}

#[test]
fn documents_state_the_default_delay() {
    let seconds = policy::delay::DELAY_DEFAULT.as_secs();
    for (file, statement) in [
        ("deploy/agentdex.toml", format!("\ndelay = \"{seconds}s\"\n")),
        ("docs/POLITENESS.md", format!("the longest of {seconds} s, ")),
        ("docs/SCALING.md", format!("{seconds} s apart")),
        ("crawler/src/cli/flags.rs", format!("two requests to a host [default: {seconds}s]")),
    ] {
        assert!(text(file).contains(&statement), "{file} does not contain {statement:?}");
    }
}

#[test]
fn actions_are_pinned_by_commit() {
    for file in files_below(".github/workflows") {
        let workflow = text(&format!(".github/workflows/{file}"));
        for line in workflow.lines().filter(|line| line.contains("uses:")) {
            let pinned =
                line.split('@').nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap_or_default();
            let is_commit = pinned.len() == 40 && pinned.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_commit, "{file}: not pinned by commit: {}", line.trim());
        }
    }
    let tests = text(".github/workflows/ci.yml");
    assert!(tests.contains("run: bash .ci/run"), "ci.yml does not run what CI runs");
}

#[test]
fn every_watched_metric_is_emitted() {
    let of_a_histogram = |name: &str| name.trim_end_matches("_bucket").to_owned();
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let mut watched = BTreeSet::new();
    for text in texts("deploy/prometheus").into_iter().chain(texts("deploy/grafana")) {
        for (start, _) in text.match_indices("agentdex_") {
            let rest = text.get(start..).unwrap();
            let name: String = rest.chars().take_while(|c| is_part(*c)).collect();
            watched.insert(of_a_histogram(&name));
        }
    }
    assert!(watched.len() > 10, "{watched:?}");
    let sources: String =
        ["crawler/src", "indexer/src", "api/src", "crates/runtime/src"].into_iter().flat_map(texts).collect();
    for name in watched {
        assert!(
            sources.contains(&format!("\"{name}\"")),
            "files in deploy/ use the metric {name}, which no program emits"
        );
    }
}

/// Programs of the previous version must work with an expanded schema. They recognise a contraction by its name.
#[test]
fn migrations_that_drop_or_rename_are_named_contractions() {
    for folder in ["migrations/postgres", "migrations/sqlite"] {
        for file in files_below(folder) {
            let statements = text(&format!("{folder}/{file}")).to_ascii_uppercase();
            let takes_away =
                ["DROP TABLE", "DROP COLUMN", "RENAME "].iter().any(|words| statements.contains(words));
            let is_named = file.split_once('_').is_some_and(|(_, name)| name.starts_with("contract"));
            assert!(
                !takes_away || is_named,
                "{folder}/{file} drops or renames something, but its name does not contain contract"
            );
        }
    }
}

/// Each script prints its header comment, without building or writing anything.
#[test]
fn scripts_of_deploy_print_their_usage() {
    let elsewhere = tempfile::tempdir().unwrap();
    for script in ["deploy/build-release", "deploy/check-tag", "deploy/debian/build", "deploy/metrics-token"]
    {
        for flag in ["--help", "-h"] {
            let run =
                Command::new(root().join(script)).arg(flag).current_dir(elsewhere.path()).output().unwrap();
            let (shown, errors) =
                (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
            assert!(run.status.success() && errors.is_empty(), "{script} {flag}: {errors}");
            assert!(
                shown.contains(&format!("\n  {script}")) && !shown.contains("set -"),
                "{script}: {shown}"
            );
        }
    }
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}
