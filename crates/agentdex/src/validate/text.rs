//! Findings as text for a terminal.

use std::io::Write;

use indexer::{ExampleCheck, UnfoundExample};
use manifest::{Finding, Format, Severity};
use settings::escape;

use super::Checked;

pub(super) fn print(checked: &Checked<'_>, out: &mut impl Write) -> anyhow::Result<()> {
    let manifest = checked.manifest;
    let detection = &manifest.detection;
    let version = detection.version.as_deref().map_or_else(String::new, |version| format!(" {version}"));
    let strength = if detection.format.is_indexable() {
        format!(" ({} evidence)", detection.strength)
    } else {
        String::new()
    };
    write_line(out, &format!("{}: {}{version}{strength}", checked.name, detection.format))?;
    for evidence in &detection.evidence {
        write_line(out, &format!("  because {evidence}"))?;
    }
    if !detection.format.is_indexable() && detection.format != Format::Malformed {
        write_line(
            out,
            "  which is not a format that declares capabilities: --as names the format, --url the address of the file",
        )?;
    }
    for conformance in &manifest.conformance {
        write_line(out, &format!("  {}: {}", conformance.spec, conformance.level.in_words()))?;
    }
    let noun = if manifest.capabilities.len() == 1 { "capability" } else { "capabilities" };
    write_line(out, &format!("  {} {noun}", manifest.capabilities.len()))?;
    match checked.served {
        Some(served) => {
            let media_type = served.content_type.as_deref().unwrap_or("no content type");
            write_line(
                out,
                &format!("  served with {}, {} bytes, as {media_type}", served.status, served.bytes),
            )?;
        }
        None => write_line(
            out,
            "  how it is served is not checked: `agentdex validate URL` fetches a document and checks that",
        )?,
    }
    print_examples(&checked.examples, out)?;
    for finding in &manifest.findings {
        let (line, column) = checked.position(finding);
        writeln!(out)?;
        write_line(
            out,
            &format!("{}:{line}:{column}: {}: {}", checked.name, finding.severity.as_str(), finding.text),
        )?;
        write_line(out, &format!("  {} ({}) at {}", finding.code, finding.spec, location(finding)))?;
        write_line(out, &format!("  {}", finding.fix))?;
    }
    writeln!(out)?;
    write_line(out, &counts(checked))?;
    Ok(())
}

/// The publisher's examples for which another capability is found first.
fn print_examples(check: &ExampleCheck, out: &mut impl Write) -> std::io::Result<()> {
    if check.checked == 0 {
        return Ok(());
    }
    let (found, checked) = (check.checked - check.unfound.len(), check.checked);
    write_line(
        out,
        &format!("  {found} of {checked} example requests find their capability first by its other words"),
    )?;
    for UnfoundExample { example, capability, place, first } in &check.unfound {
        let why = match (place, first) {
            (Some(place), Some(first)) => format!("finds {first} first, {capability} in place {place}"),
            _ => format!("no word of it is in the name, the description or the parameters of {capability}"),
        };
        write_line(out, &format!("    \"{example}\": {why}"))?;
    }
    Ok(())
}

/// Writes one line, with strings of the document escaped.
fn write_line(out: &mut impl Write, text: &str) -> std::io::Result<()> {
    writeln!(out, "{}", escape::line(text))
}

fn location(finding: &Finding) -> String {
    let pointer = if finding.pointer.is_empty() { "the whole document" } else { finding.pointer.as_str() };
    match &finding.pointer_document {
        Some(document) => format!("{pointer} of {document}"),
        None => pointer.to_owned(),
    }
}

fn counts(checked: &Checked<'_>) -> String {
    let count =
        |severity| checked.manifest.findings.iter().filter(|finding| finding.severity == severity).count();
    let counts = [Severity::Must, Severity::Should, Severity::May, Severity::Note]
        .map(|severity| (severity.as_str(), count(severity)));
    let shown: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(severity, count)| format!("{count} {severity}"))
        .collect();
    if shown.is_empty() { "no findings".to_owned() } else { format!("findings: {}", shown.join(", ")) }
}
