//! Checks that one build compiles every dependency once: a package that is built alone uses the same features as the whole workspace, so no
//! dependency is compiled a second time.

use std::collections::BTreeSet;
use std::process::Command;

/// All dependencies that a build compiles.
const ALL: &str = "normal,build";
/// Without procedural macros: they run in the compiler, so their dependencies are compiled separately in any case.
const WITHOUT_MACROS: &str = "normal,build,no-proc-macro";
/// With dev-dependencies, without procedural macros.
const TESTS: &str = "normal,build,dev,no-proc-macro";

/// The dependencies of the selected packages with their features, without packages of the workspace.
fn dependencies(edges: &str, selection: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", edges, "--prefix", "none", "--format", "{p} {f}"])
        .args(selection)
        .output()
        .expect("cannot run cargo tree");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("the output of cargo tree is not UTF-8");
    let is_dependency = |line: &&str| !line.contains("(/") && !line.is_empty();
    lines.lines().map(|line| line.trim_end_matches(" (*)")).filter(is_dependency).map(str::to_owned).collect()
}

#[test]
fn building_one_program_does_not_compile_a_dependency_again() {
    let together = dependencies(ALL, &["--package", "agentdex"]);
    assert!(together.len() > 300, "{}", together.len());
    for alone in ["crawler", "indexer", "api"] {
        let compiled_again: Vec<String> =
            dependencies(ALL, &["--package", alone]).difference(&together).cloned().collect();
        assert!(
            compiled_again.is_empty(),
            "-p {alone} uses other features of these crates: list all of them in crates/unified-features/Cargo.toml:\n{}",
            compiled_again.join("\n")
        );
    }
}

/// The optional features and the tests may use further crates, but no other features of the programs' crates.
#[test]
fn building_the_workspace_or_a_feature_does_not_compile_a_dependency_again() {
    let together = dependencies(WITHOUT_MACROS, &["--package", "agentdex"]);
    let name = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let known: BTreeSet<String> = together.iter().map(|line| name(line)).collect();
    let with_features = ["--package", "agentdex", "--features", "opentelemetry,s3"];
    for (edges, selection) in [(TESTS, &["--workspace"][..]), (WITHOUT_MACROS, &with_features)] {
        let compiled_again: Vec<String> = dependencies(edges, selection)
            .difference(&together)
            .filter(|line| known.contains(&name(line)))
            .cloned()
            .collect();
        assert!(compiled_again.is_empty(), "{selection:?}: {}", compiled_again.join("\n"));
    }
}
