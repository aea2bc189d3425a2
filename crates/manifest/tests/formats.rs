//! Checks that a fixture causes every finding of the formats other than the core dialects.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

mod support;

use std::collections::BTreeSet;

use support::Case;

/// First parts of the codes of these formats.
const PREFIXES: &[&str] = &[
    "a2a",
    "acp",
    "agents_json_jm",
    "agents_json_lt",
    "agents_txt",
    "agents_txt_com",
    "ahp",
    "ai_plugin",
    "air",
    "anp",
    "api_catalog",
    "ard",
    "awas",
    "erc8004",
    "facts",
    "llms_txt",
    "manifest_v1",
    "mcp",
    "openapi",
    "signature",
    "skills_index",
    "ucp",
    "w2a",
    "web_bot_auth",
    "webmcp",
    "wildcard",
    "x402",
];

#[test]
fn a_fixture_causes_every_finding_of_these_formats() {
    for case in Case::all() {
        assert!(case.format.parse::<manifest::Format>().is_ok(), "{} is not a format", case.format);
    }
    let findings = Case::all().into_iter().flat_map(|case| case.read().findings);
    let provoked: BTreeSet<String> = findings.map(|finding| finding.code.into_owned()).collect();
    let silent: Vec<String> = manifest::catalogue()
        .into_iter()
        .map(|entry| entry.code)
        .filter(|code| {
            PREFIXES.contains(&code.split('.').next().unwrap_or_default()) && !provoked.contains(code)
        })
        .collect();
    assert!(silent.is_empty(), "no fixture causes {silent:#?}");
}
