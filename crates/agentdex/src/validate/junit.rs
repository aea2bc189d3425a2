//! Findings as a `JUnit` XML report, which build servers show as failed tests: one test case for each finding code.

use std::collections::BTreeMap;
use std::io::Write;

use manifest::{Finding, Severity};
use settings::escape::is_unsafe;

use super::{Checked, is_recognised};

pub(super) fn print(checked: &Checked<'_>, out: &mut impl Write) -> anyhow::Result<()> {
    let mut cases: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in &checked.manifest.findings {
        cases.entry(finding.code.as_ref()).or_default().push(finding);
    }
    let format = checked.manifest.detection.format;
    let failures = cases.values().filter(|findings| is_failure(findings)).count()
        + usize::from(!is_recognised(checked.manifest));
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    // The detection is a test case, so that a document without findings has one. It fails if the document is not a manifest.
    writeln!(
        out,
        r#"<testsuite name="{}" tests="{}" failures="{failures}">"#,
        escaped(checked.name),
        cases.len() + 1
    )?;
    if is_recognised(checked.manifest) {
        writeln!(out, r#"  <testcase classname="{format}" name="is read as {format}"/>"#)?;
    } else {
        writeln!(out, r#"  <testcase classname="{format}" name="is read as {format}">"#)?;
        writeln!(out, "    <failure>the document is not recognised as a manifest</failure>")?;
        writeln!(out, "  </testcase>")?;
    }
    for (code, findings) in &cases {
        print_case(checked, code, findings, out)?;
    }
    writeln!(out, "</testsuite>")?;
    Ok(())
}

fn print_case(
    checked: &Checked<'_>,
    code: &str,
    findings: &[&Finding],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let format = checked.manifest.detection.format;
    let element = if is_failure(findings) { "failure" } else { "system-out" };
    writeln!(out, r#"  <testcase classname="{format}" name="{}">"#, escaped(code))?;
    writeln!(out, "    <{element}>")?;
    for finding in findings {
        let (line, column) = checked.position(finding);
        let text =
            format!("{}:{line}:{column}: {}. {} ({})", checked.name, finding.text, finding.fix, finding.spec);
        writeln!(out, "{}", escaped(&text))?;
    }
    writeln!(out, "    </{element}>")?;
    writeln!(out, "  </testcase>")?;
    Ok(())
}

fn is_failure(findings: &[&Finding]) -> bool {
    findings.iter().any(|finding| finding.severity >= Severity::Should)
}

/// Text for XML 1.0: markup is escaped, and characters that XML does not allow are left out. Line ends are escaped, so that a text cannot
/// begin a line of the output that a build server takes for a command.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML 1.0 allows them as character references.
            unsafe_letter if is_unsafe(unsafe_letter) && unsafe_letter >= '\u{7f}' => {
                for part in ["&#", &u32::from(unsafe_letter).to_string(), ";"] {
                    escaped.push_str(part);
                }
            }
            '\n' => escaped.push_str("&#10;"),
            '\t' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => {
                escaped.push(character);
            }
            _ => {}
        }
    }
    escaped
}
