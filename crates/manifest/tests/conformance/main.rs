//! The registers in `tests/conformance` list every clause of the core specifications, how agentdex supports it, and the tests that prove
//! it. docs/CONFORMANCE.md is rendered from them.
//!
//! A register names a fixture with a complete example of its specification. If a clause has members, the tests mutate them: each member is
//! removed, given another type, emptied, and set to the values of `contradict`. The parser must then report a finding at the member, below
//! it, or at its parent with the name of the member, at the level that the clause states.

#![expect(clippy::unwrap_used, reason = "a register that cannot be read has to fail the test")]

mod mutation;
mod register;
mod render;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::fs;

use register::{Register, repository};
use serde_json::Value;

/// Minimum percentage of mutations that must be reported as their clause requires.
const MUTATIONS_REPORTED_PERCENT: usize = 98;

#[test]
fn every_clause_names_existing_tests_or_a_reason() {
    let mut wrong = Vec::new();
    for register in Register::all() {
        for clause in &register.clauses {
            let name = format!("{} {} {}", register.name, clause.section, clause.says);
            if clause.tests.is_empty() && clause.members().next().is_none() {
                wrong.push(format!("{name}: no test"));
            }
            if clause.agentdex == register::Support::DoesNot && clause.how.is_empty() {
                wrong.push(format!("{name}: no reason"));
            }
            for test in &clause.tests {
                if !register::test_exists(test) {
                    wrong.push(format!("{name}: {test} does not exist"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_member_of_the_examples_has_a_clause() {
    let mut missing = Vec::new();
    for register in Register::all() {
        let example: Value = serde_json::from_slice(&register.example().bytes).unwrap();
        let mut members = BTreeSet::new();
        register::members(&example, "", &mut members);
        let is_listed = |member: &str| register.clauses.iter().any(|clause| clause.covers(member));
        missing.extend(
            members
                .iter()
                .filter(|member| !is_listed(member))
                .map(|member| format!("{} {member}", register.name)),
        );
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_mutation_is_reported_as_its_clause_requires() {
    let (mut all, mut failures) = (0, Vec::new());
    for register in Register::all() {
        let example = register.example();
        for clause in &register.clauses {
            for mutation in mutation::of(clause, &example) {
                all += 1;
                if let Err(failure) = mutation.check(&example) {
                    failures.push(format!("{} {}: {failure}", register.name, clause.section));
                }
            }
        }
    }
    assert!(all > 0, "no register has a mutation");
    let reported = (all - failures.len()) * 100 / all;
    assert!(
        reported >= MUTATIONS_REPORTED_PERCENT,
        "{reported} % of {all} mutations are reported as asked; these are not: {failures:#?}"
    );
}

#[test]
fn every_kept_member_is_in_the_normalised_manifest() {
    let mut lost = Vec::new();
    for register in Register::all() {
        let example = register.example();
        for clause in &register.clauses {
            if let Err(failure) = mutation::is_kept(clause, &example) {
                lost.push(format!("{} {}: {failure}", register.name, clause.section));
            }
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}

#[test]
fn the_examples_have_no_findings_but_notes() {
    for register in Register::all() {
        let findings: Vec<String> = mutation::deviations(&register.example().read()).collect();
        assert!(findings.is_empty(), "{}: {findings:#?}", register.name);
    }
}

/// `CONFORMANCE_UPDATE=1` writes the document instead.
#[test]
fn the_document_is_rendered_from_the_registers() {
    let rendered = render::document(&Register::all());
    let path = repository().join("docs/CONFORMANCE.md");
    if std::env::var_os("CONFORMANCE_UPDATE").is_some() {
        fs::write(&path, &rendered).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == rendered,
        "docs/CONFORMANCE.md is out of date: run `CONFORMANCE_UPDATE=1 cargo test -p manifest --test conformance`"
    );
}
