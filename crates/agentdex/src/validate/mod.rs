//! `agentdex validate`: reads one document as the crawler would, and says what it is, where it deviates from its
//! specification, and how to mend that. Nothing is stored and nothing is asked of the site besides the document.

mod junit;
mod sarif;
mod text;

use std::io::{Read as _, Write};
use std::path::Path;

use anyhow::{Context as _, bail};
use manifest::{Discovery, Document, Finding, Format, Manifest, ManifestUrl, Severity};
use serde_json::json;

/// Longest document that is read from a file or standard input: what the crawler reads at most.
const DOCUMENT_BYTES_MAX: u64 = 16 * 1_024 * 1_024;

/// Checks a document: its dialect with the evidence, and every deviation with how to mend it.
#[derive(Debug, clap::Args)]
pub(crate) struct ValidateArgs {
    /// A file, or `-` for standard input
    #[arg(value_name = "FILE|-")]
    document: String,
    /// Read it as this format, whatever it looks like
    #[arg(long = "as", value_name = "FORMAT")]
    force: Option<Format>,
    /// Where the document is (to be) published; relative addresses are resolved against it
    #[arg(long, value_name = "URL")]
    url: Option<ManifestUrl>,
    /// How to print the findings
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// End with 1 when a finding is at least this severe
    #[arg(long, value_enum, default_value_t = FailOn::Must)]
    fail_on: FailOn,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Output {
    Text,
    Json,
    Sarif,
    Junit,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum FailOn {
    Must,
    Should,
    May,
    Note,
    Never,
}

impl FailOn {
    fn is_reached(self, worst: Option<Severity>) -> bool {
        let threshold = match self {
            Self::Must => Severity::Must,
            Self::Should => Severity::Should,
            Self::May => Severity::May,
            Self::Note => Severity::Note,
            Self::Never => return false,
        };
        worst.is_some_and(|worst| worst >= threshold)
    }
}

/// A document that was read, with what the printers need.
struct Checked<'a> {
    /// As it was named on the command line.
    name: &'a str,
    bytes: &'a [u8],
    manifest: &'a Manifest,
}

impl Checked<'_> {
    /// 1-based line and column of a finding; the start of the document where the place cannot be told.
    fn place(&self, finding: &Finding) -> (usize, usize) {
        manifest::position(self.bytes, &finding.pointer).unwrap_or((1, 1))
    }
}

/// Validates and prints; whether the document passes.
pub(crate) fn run(args: &ValidateArgs, out: &mut impl Write) -> anyhow::Result<bool> {
    let bytes = read_document(&args.document)?;
    let url = args.url.clone().map_or_else(|| assumed_url(&args.document), Ok)?;
    let document = Document {
        bytes: &bytes,
        url: &url,
        final_url: None,
        discovery: Discovery::Submitted,
        served: None,
        linked: &[],
        force: args.force,
    };
    let manifest = manifest::read(&document);
    let checked = Checked { name: &args.document, bytes: &bytes, manifest: &manifest };
    match args.output {
        Output::Text => text::print(&checked, out)?,
        Output::Json => print_json(&checked, out)?,
        Output::Sarif => sarif::print(&checked, out)?,
        Output::Junit => junit::print(&checked, out)?,
    }
    Ok(!args.fail_on.is_reached(manifest.worst()))
}

fn read_document(name: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if name == "-" {
        std::io::stdin()
            .take(DOCUMENT_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
    } else {
        let file = std::fs::File::open(name).with_context(|| format!("cannot read {name}"))?;
        file.take(DOCUMENT_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .with_context(|| format!("cannot read {name}"))?;
    }
    if bytes.len() as u64 > DOCUMENT_BYTES_MAX {
        bail!(
            "{name} is longer than {DOCUMENT_BYTES_MAX} bytes, which is the most that is read of a document"
        );
    }
    Ok(bytes)
}

/// The URL a file would have if its folder were the root of a site: the path is weak evidence for the dialect.
fn assumed_url(name: &str) -> anyhow::Result<ManifestUrl> {
    let file =
        Path::new(name).file_name().map_or_else(|| "document.json".into(), |file| file.to_string_lossy());
    let folder = if name.contains(".well-known/") { "/.well-known/" } else { "/" };
    let mut url = url::Url::parse("https://site.invalid/")?;
    url.set_path(&format!("{folder}{file}"));
    ManifestUrl::try_from(url).with_context(|| format!("cannot make a URL of {name}; give it with --url"))
}

fn print_json(checked: &Checked<'_>, out: &mut impl Write) -> anyhow::Result<()> {
    let manifest = checked.manifest;
    let findings: Vec<_> = manifest
        .findings
        .iter()
        .map(|finding| {
            let (line, column) = checked.place(finding);
            json!({"code": finding.code, "severity": finding.severity, "spec": finding.spec, "pointer": finding.pointer,
                   "line": line, "column": column, "text": finding.text, "fix": finding.fix})
        })
        .collect();
    let report = json!({
        "document": checked.name,
        "detection": manifest.detection,
        "conformance": manifest.conformance,
        "findings": findings,
        "capabilities": manifest.capabilities.len(),
    });
    serde_json::to_writer_pretty(&mut *out, &report)?;
    writeln!(out)?;
    Ok(())
}

#[cfg(test)]
mod tests;
