//! `agentdex validate`: reads one document as the crawler does, and reports its format, its deviations from the
//! specification and how to fix them. Nothing is stored. From a site it requests only robots.txt, the document and the parts
//! that complete it, and checks how they are served.

mod fetch;
mod junit;
mod sarif;
mod text;

use std::io::{ErrorKind, Read as _, Write};
use std::path::Path;

use anyhow::{Context as _, bail};
use crawler::cli::UsageError;
use crawler::output::OutputFormat;
use indexer::ExampleCheck;
use manifest::model::Served;
use manifest::{Discovery, Finding, Format, Host, Manifest, ManifestUrl, Severity};
use runtime::OwnedDocument;
use serde_json::json;

pub(crate) use fetch::fetch;

/// Maximum length of a document from a file or standard input; the same as for the crawler.
const DOCUMENT_BYTES_MAX: u64 = manifest::DOCUMENT_BYTES_MAX as u64;

/// Check a document: its format, and every deviation from the specification with a fix
///
/// Exits with 0 if every finding is less severe than --fail-on, with 1 if one is at least as severe, with 2 if the command line
/// is invalid, with 3 if the document is not recognised as a manifest, such as broken JSON, and with 4 if it is missing or cannot
/// be read.
#[derive(Debug, clap::Args)]
pub(crate) struct ValidateArgs {
    /// A file, an https URL, or `-` for standard input
    ///
    /// A URL is fetched as by the crawler: robots.txt first, and only if it allows the path. The options about requests (--hosts,
    /// --ca-file, --allow-addresses, --delay, --contact-url, --contact-email) apply.
    #[arg(value_name = "FILE|URL|-")]
    document: String,
    /// Read the document as this format
    #[arg(long = "as", value_name = "FORMAT", value_parser = format_of_a_manifest)]
    pub(crate) force: Option<Format>,
    /// URL at which a file is (to be) published; relative URLs are resolved against it
    #[arg(long, value_name = "URL")]
    url: Option<ManifestUrl>,
    /// How to print the findings [default: text]
    #[arg(long, value_enum)]
    output: Option<Output>,
    /// Exit with 1 if a finding is at least this severe
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

/// The result of a check, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Conforms,
    /// A finding is at least as severe as `--fail-on`.
    Findings,
    /// The document is not a manifest of any known format.
    NotRecognised,
}

impl Verdict {
    fn of(manifest: &Manifest, fail_on: FailOn) -> Self {
        if !is_recognised(manifest) {
            Self::NotRecognised
        } else if fail_on.is_reached(manifest.worst()) {
            Self::Findings
        } else {
            Self::Conforms
        }
    }

    /// The exit code. `settings::exit` contains the codes of errors.
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Conforms => 0,
            Self::Findings => settings::exit::FAILURE,
            Self::NotRecognised => settings::exit::NOT_RECOGNISED,
        }
    }
}

/// Whether the document is a manifest or a file that belongs to one.
const fn is_recognised(manifest: &Manifest) -> bool {
    !matches!(manifest.detection.format, Format::Unrelated | Format::Opaque | Format::Malformed)
}

/// A document with its findings, as the printers need it.
struct Checked<'a> {
    /// The name on the command line.
    name: &'a str,
    manifest: &'a Manifest,
    /// The positions of the findings, in their order.
    positions: Vec<Option<(usize, usize)>>,
    /// `None`: how the document is served was not checked.
    served: Option<&'a Served>,
    /// Whether the example requests of the document find its capabilities.
    examples: ExampleCheck,
}

impl Checked<'_> {
    /// 1-based line and column of a finding; the start of the document if the position is unknown.
    fn position(&self, finding: &Finding) -> (usize, usize) {
        let index = self.manifest.findings.iter().position(|known| std::ptr::eq(known, finding));
        index.and_then(|index| self.positions.get(index).copied().flatten()).unwrap_or((1, 1))
    }
}

impl ValidateArgs {
    /// Uses `--format`, the flag of other commands, if `--output` is not given.
    pub(crate) fn take_format(&mut self, format: Option<OutputFormat>) {
        let output = format.map(|format| match format {
            OutputFormat::Text => Output::Text,
            OutputFormat::Json => Output::Json,
        });
        self.output = self.output.or(output);
    }

    /// The URL, if one was given instead of a file.
    pub(crate) fn document_url(&self) -> Result<Option<ManifestUrl>, UsageError> {
        if !self.document.contains("://") {
            return Ok(None);
        }
        if self.url.is_some() {
            return Err(UsageError("--url is for files only: a URL is given already".to_owned()));
        }
        ManifestUrl::parse(&self.document).map(Some).map_err(|error| UsageError(error.to_string()))
    }

    /// The bytes of the file, with its assumed URL.
    pub(crate) fn open(&self) -> anyhow::Result<OwnedDocument> {
        let bytes = read_document(&self.document)?;
        let url = self.url.clone().map_or_else(|| assumed_url(&self.document), Ok)?;
        // how a file is served is not checked
        let (final_url, served, linked) = (None, None, Vec::new());
        let discovery = Discovery::Submitted;
        Ok(OwnedDocument { bytes, url, final_url, discovery, served, linked, force: self.force })
    }
}

/// Extensions of document files.
const FILE_ENDINGS: [&str; 8] = ["json", "txt", "md", "yaml", "yml", "xml", "toml", "html"];

/// Placeholder for the host of a document that is given as a file. No site has this name, so nothing is compared with the site that serves
/// the document.
const ASSUMED_HOST: &str = "site.invalid";

/// Checks the manifest of a document, and prints the result.
pub(crate) fn run(
    args: &ValidateArgs,
    source: &OwnedDocument,
    manifest: &Manifest,
    out: &mut impl Write,
) -> anyhow::Result<Verdict> {
    let checked = Checked {
        name: &args.document,
        manifest,
        positions: manifest::finding_positions(&source.bytes, &manifest.findings),
        served: source.served.as_ref(),
        examples: indexer::check_examples(manifest),
    };
    match args.output.unwrap_or(Output::Text) {
        Output::Text => text::print(&checked, out)?,
        Output::Json => print_json(&checked, out)?,
        Output::Sarif => sarif::print(&checked, out)?,
        Output::Junit => junit::print(&checked, out)?,
    }
    Ok(Verdict::of(manifest, args.fail_on))
}

fn read_document(name: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if name.is_empty() {
        bail!("the name of the document is empty: name a file, a URL, or - for standard input");
    }
    if name == "-" {
        std::io::stdin()
            .take(DOCUMENT_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
    } else {
        let file = match std::fs::File::open(name) {
            Err(error) if error.kind() == ErrorKind::NotFound && is_like_a_site(name) => bail!(
                "there is no file {name}; for the site, write `agentdex check {name}`, or the URL of a document, such as \
                 https://{name}/.well-known/agent.json"
            ),
            Err(error) if error.kind() == ErrorKind::NotFound && begins_with_a_site(name) => {
                bail!("there is no file {name}; for the document of a site, write its URL: https://{name}")
            }
            Ok(_) if Path::new(name).is_dir() => bail!("{}", directory_advice(name)),
            opened => opened.with_context(|| format!("cannot read {name}"))?,
        };
        file.take(DOCUMENT_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .with_context(|| format!("cannot read {name}"))?;
    }
    if bytes.len() as u64 > DOCUMENT_BYTES_MAX {
        bail!("{name} is longer than {DOCUMENT_BYTES_MAX} bytes, the maximum size of a document");
    }
    Ok(bytes)
}

/// Names of documents besides `*.json`.
const OTHER_DOCUMENTS: [&str; 6] = ["agents.txt", "llms.txt", "ai.txt", "api-catalog", "'*.yaml'", "'*.yml'"];

/// What to write to check the documents in a directory. `xargs` fails if one of the checks fails, and runs none if there is no document.
fn directory_advice(name: &str) -> String {
    let dir = settings::escape::shell_word(name);
    let others = OTHER_DOCUMENTS.map(|name| format!(" -o -name {name}")).concat();
    format!(
        "{name} is a directory, and one document is checked at a time; for each document in it: \
         find {dir} -type f '(' -name '*.json'{others} ')' -print0 | xargs -0 -r -n 1 agentdex validate"
    )
}

/// Whether the name of a missing file looks like a site: `example.org`, not `agent.json`.
fn is_like_a_site(name: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap_or_default();
    Host::parse(name).is_ok() && !FILE_ENDINGS.iter().any(|file| ending.eq_ignore_ascii_case(file))
}

/// Whether the path of a missing file looks like a URL without its scheme: `example.org/agent.json`.
fn begins_with_a_site(name: &str) -> bool {
    name.split_once('/').is_some_and(|(first, _)| is_like_a_site(first) && !Path::new(first).exists())
}

/// The URL of a file whose directory is the root of a site: the path is weak evidence for the format.
fn assumed_url(name: &str) -> anyhow::Result<ManifestUrl> {
    let file =
        Path::new(name).file_name().map_or_else(|| "document.json".into(), |file| file.to_string_lossy());
    let folder = if name.contains(".well-known/") { "/.well-known/" } else { "/" };
    let mut url = url::Url::parse(&format!("https://{ASSUMED_HOST}/"))?;
    url.set_path(&format!("{folder}{file}"));
    ManifestUrl::try_from(url).with_context(|| format!("cannot build a URL from {name}; give it with --url"))
}

/// Prints the members of the response of `POST /validate`, and how the document is served.
fn print_json(checked: &Checked<'_>, out: &mut impl Write) -> anyhow::Result<()> {
    let manifest = checked.manifest;
    let findings: Vec<_> = manifest
        .findings
        .iter()
        .map(|finding| {
            let (line, column) = checked.position(finding);
            json!({"code": finding.code, "severity": finding.severity, "spec": finding.spec, "pointer": finding.pointer,
                   "pointer_document": finding.pointer_document, "line": line, "column": column, "text": finding.text, "fix": finding.fix})
        })
        .collect();
    let is_indexable = manifest.format().is_indexable();
    let indexed: Vec<_> = manifest.capabilities.iter().filter(|_| is_indexable).collect();
    let invocable = indexed.iter().filter(|capability| capability.is_invocable()).count();
    let report = json!({
        "document": checked.name,
        "format": manifest.format(),
        "level": manifest.level(),
        "indexed": {"capabilities": indexed.len(), "invocable": invocable},
        "detection": manifest.detection,
        "conformance": manifest.conformance,
        "findings": findings,
        "capabilities": manifest.capabilities.len(),
        "served": checked.served,
        "examples": checked.examples,
        "manifest": Manifest { findings: Vec::new(), ..manifest.clone() },
    });
    writeln!(out, "{}", settings::escape::json(&serde_json::to_string_pretty(&report)?))?;
    Ok(())
}

/// Parses a format in which a document can be read: the others are results of detection.
fn format_of_a_manifest(text: &str) -> Result<Format, String> {
    let known = || Format::ALL.iter().copied().filter(|format| format.is_indexable());
    known().find(|format| format.as_str() == text).ok_or_else(|| {
        let known: Vec<&str> = known().map(Format::as_str).collect();
        format!("the formats are {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests;
