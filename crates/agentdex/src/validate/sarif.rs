//! Findings as SARIF 2.1.0 (OASIS), which code hosting platforms show next to the affected lines.

use std::collections::BTreeMap;
use std::io::Write;

use manifest::{Finding, Severity};
use serde_json::{Value, json};

use super::Checked;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub(super) fn print(checked: &Checked<'_>, out: &mut impl Write) -> anyhow::Result<()> {
    let findings = &checked.manifest.findings;
    let rules: BTreeMap<&str, Value> =
        findings.iter().map(|finding| (finding.code.as_ref(), rule(finding))).collect();
    let results: Vec<Value> = findings.iter().map(|finding| result(checked, finding)).collect();
    let driver = json!({
        "name": "agentdex", "version": env!("CARGO_PKG_VERSION"), "informationUri": env!("CARGO_PKG_REPOSITORY"),
        "rules": rules.into_values().collect::<Vec<_>>(),
    });
    let log = json!({
        "$schema": SCHEMA, "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    });
    writeln!(out, "{}", settings::escape::json(&serde_json::to_string_pretty(&log)?))?;
    Ok(())
}

fn rule(finding: &Finding) -> Value {
    json!({"id": finding.code, "shortDescription": {"text": finding.spec}, "help": {"text": finding.fix}})
}

fn result(checked: &Checked<'_>, finding: &Finding) -> Value {
    let (line, column) = checked.position(finding);
    json!({
        "ruleId": finding.code,
        "level": level(finding.severity),
        "message": {"text": format!("{}. {}", finding.text, finding.fix)},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": finding.pointer_document.as_deref().unwrap_or(checked.name)},
                "region": {"startLine": line, "startColumn": column},
            },
            "logicalLocations": [{"fullyQualifiedName": finding.pointer}],
        }],
    })
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Must => "error",
        Severity::Should => "warning",
        Severity::May | Severity::Note => "note",
    }
}
