//! One build makes all programs: a package that is built alone uses the features that the whole workspace uses, so that no
//! dependency is compiled a second time.

use std::collections::BTreeSet;
use std::process::Command;

/// The dependencies of a selection of packages with their features, without the packages of the workspace.
fn dependencies(selection: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p} {f}"])
        .args(selection)
        .output()
        .expect("cargo tree runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("cargo tree prints UTF-8");
    let is_dependency = |line: &&str| !line.contains("(/") && !line.is_empty();
    lines.lines().map(|line| line.trim_end_matches(" (*)")).filter(is_dependency).map(str::to_owned).collect()
}

#[test]
fn building_one_program_compiles_no_dependency_again() {
    let together = dependencies(&["--package", "agentdex"]);
    assert!(together.len() > 300, "{}", together.len());
    for alone in ["crawler", "indexer", "api"] {
        let compiled_again: Vec<String> =
            dependencies(&["--package", alone]).difference(&together).cloned().collect();
        assert!(
            compiled_again.is_empty(),
            "-p {alone} uses other features of these crates: name all of them in crates/unified-features/Cargo.toml:\n{}",
            compiled_again.join("\n")
        );
    }
}

/// The tests use further crates, but no other features of those that the programs use.
#[test]
fn building_the_workspace_compiles_no_dependency_again() {
    let together = dependencies(&["--package", "agentdex"]);
    let name = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let known: BTreeSet<String> = together.iter().map(|line| name(line)).collect();
    let compiled_again: Vec<String> = dependencies(&["--workspace"])
        .difference(&together)
        .filter(|line| known.contains(&name(line)))
        .cloned()
        .collect();
    assert!(compiled_again.is_empty(), "{}", compiled_again.join("\n"));
}
