//! Findings for a person at a terminal.

use std::io::Write;

use manifest::Severity;
use settings::escape;

use super::Checked;

pub(super) fn print(checked: &Checked<'_>, out: &mut impl Write) -> anyhow::Result<()> {
    let manifest = checked.manifest;
    let detection = &manifest.detection;
    let version = detection.version.as_deref().map_or_else(String::new, |version| format!(" {version}"));
    say(out, &format!("{}: {}{version} ({})", checked.name, detection.format, detection.strength))?;
    for evidence in &detection.evidence {
        say(out, &format!("  because {evidence}"))?;
    }
    if !detection.format.is_indexable() {
        say(
            out,
            "  which is no dialect that declares anything: --as names the one that is meant, --url where it is served",
        )?;
    }
    for conformance in &manifest.conformance {
        say(out, &format!("  {}: {}", conformance.spec, conformance.level.as_str()))?;
    }
    say(out, &format!("  {} capabilities", manifest.capabilities.len()))?;
    match checked.served {
        Some(served) => {
            let media_type = served.content_type.as_deref().unwrap_or("no content type");
            say(out, &format!("  served with {}, {} bytes, as {media_type}", served.status, served.bytes))?;
        }
        None => say(out, "  how it is served is not checked: give its address for that")?,
    }
    for finding in &manifest.findings {
        let (line, column) = checked.place(finding);
        writeln!(out)?;
        say(
            out,
            &format!("{}:{line}:{column}: {}: {}", checked.name, finding.severity.as_str(), finding.text),
        )?;
        say(out, &format!("  {} ({}) at {}", finding.code, finding.spec, shown(&finding.pointer)))?;
        say(out, &format!("  {}", finding.fix))?;
    }
    writeln!(out)?;
    say(out, &tally(checked))?;
    Ok(())
}

/// One line; names, pointers and texts of the document can neither begin another one nor steer the terminal.
fn say(out: &mut impl Write, text: &str) -> std::io::Result<()> {
    writeln!(out, "{}", escape::line(text))
}

fn shown(pointer: &str) -> &str {
    if pointer.is_empty() { "the whole document" } else { pointer }
}

fn tally(checked: &Checked<'_>) -> String {
    let count =
        |severity| checked.manifest.findings.iter().filter(|finding| finding.severity == severity).count();
    let counts = [Severity::Must, Severity::Should, Severity::May, Severity::Note]
        .map(|severity| (severity.as_str(), count(severity)));
    let told: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(severity, count)| format!("{count} {severity}"))
        .collect();
    if told.is_empty() { "no findings".to_owned() } else { format!("findings: {}", told.join(", ")) }
}
