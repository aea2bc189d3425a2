//! Every folder below `fixtures/<format>/<case>/` is a case: a document, an optional `about.json` that says how it was
//! served, and the manifest it has to become (`expected.snap`).

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

mod support;

use std::collections::BTreeSet;

use support::Case;

#[test]
fn every_fixture_becomes_its_expected_manifest() {
    for case in Case::all() {
        let manifest = case.read();
        assert_eq!(manifest.format().as_str(), case.format, "{}", case.folder.display());
        assert_eq!(manifest, case.read(), "{} reads differently twice", case.folder.display());
        insta::with_settings!({
            snapshot_path => &case.folder,
            prepend_module_to_snapshot => false,
            omit_expression => true,
            description => "",
        }, {
            insta::assert_json_snapshot!("expected", manifest);
        });
    }
}

#[test]
fn every_core_finding_is_provoked_by_a_fixture() {
    let provoked: BTreeSet<String> = Case::all()
        .iter()
        .flat_map(|case| case.read().findings)
        .map(|finding| finding.code.into_owned())
        .collect();
    let core = [
        "arws",
        "awp",
        "atp",
        "atp_schema",
        "agents_json",
        "agents_txt_0",
        "document",
        "json",
        "text",
        "origin",
        "address",
        "safety",
        "woa",
    ];
    let silent: Vec<String> = manifest::catalogue()
        .into_iter()
        .map(|entry| entry.code)
        .filter(|code| core.contains(&code.split('.').next().unwrap_or_default()) && !provoked.contains(code))
        .collect();
    assert!(silent.is_empty(), "no fixture provokes {silent:#?}");
}

#[test]
fn every_finding_of_a_fixture_is_in_the_catalogue() {
    let known: BTreeSet<String> = manifest::catalogue().into_iter().map(|entry| entry.code).collect();
    for case in Case::all() {
        for finding in case.read().findings {
            assert!(known.contains(finding.code.as_ref()), "{} is not in the catalogue", finding.code);
            assert!(!finding.text.is_empty() && !finding.fix.is_empty(), "{}", finding.code);
        }
    }
}
