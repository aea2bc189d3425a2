//! Reports what a directory is, for operators who choose a model.

use std::path::Path;

use super::embedder::EmbedderError;

/// What a directory is as an embedder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedderReport {
    /// Labels and texts, in the order of printing.
    pub rows: Vec<(&'static str, String)>,
    /// Why the directory cannot be used; `None` if it can.
    pub problem: Option<String>,
}

/// Reads the files in a directory and, if they are a model, measures its speed. Blocking; takes a second with a small model.
#[cfg(feature = "embedder")]
pub fn check_embedder(dir: &Path) -> Result<EmbedderReport, EmbedderError> {
    let found = embedder::inspect(dir);
    let mut rows = described(&found);
    if !found.missing.is_empty() {
        let problem = format!("{} has no {}", dir.display(), found.missing.join(", no "));
        return Ok(EmbedderReport { rows, problem: Some(problem) });
    }
    match embedder::Model::open(dir).and_then(|model| model.speed()) {
        Ok(embedder::Speed { tokens_per_text, ms_per_text, ms_per_request }) => {
            let speed = format!(
                "{ms_per_text:.1} ms per text of {tokens_per_text:.0} tokens in batches, {ms_per_request:.1} ms per \
                 request, on one core"
            );
            rows.push(("speed", speed));
            Ok(EmbedderReport { rows, problem: None })
        }
        Err(error) => Ok(EmbedderReport { rows, problem: Some(error.to_string()) }),
    }
}

#[cfg(not(feature = "embedder"))]
pub fn check_embedder(dir: &Path) -> Result<EmbedderReport, EmbedderError> {
    Err(EmbedderError::NotBuilt { dir: dir.to_owned() })
}

#[cfg(feature = "embedder")]
fn described(found: &embedder::Inspection) -> Vec<(&'static str, String)> {
    let unknown = || "unknown".to_owned();
    let layers = found.layers.map(|layers| format!(", {layers} layers")).unwrap_or_default();
    let kind = found.kind.as_ref().map_or_else(unknown, |kind| format!("{kind}{layers}"));
    let numbers = found.dimension.map_or_else(unknown, |dimension| format!("{dimension} numbers"));
    let tokens = found.tokens_max.map_or_else(unknown, |max| format!("the first {max} tokens are read"));
    let size = found.weights_bytes.map_or_else(unknown, |bytes| format!("{} MB", bytes.div_ceil(1_000_000)));
    let stated = found.licence.as_ref().map(|licence| format!("{licence}, says README.md"));
    let mut licences: Vec<String> = found.licence_files.iter().cloned().chain(stated).collect();
    if licences.is_empty() {
        licences.push("none found: look where the model is published".to_owned());
    }
    let missing = if found.missing.is_empty() { "nothing".to_owned() } else { found.missing.join(", ") };
    vec![
        ("model", kind),
        ("vectors", numbers),
        ("texts", tokens),
        ("weights", size),
        ("licence", licences.join("; ")),
        ("missing", missing),
    ]
}
