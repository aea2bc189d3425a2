//! How a document was served, against what its specification demands: media type, path, CORS, caching, redirects.
//!
//! Checked only when it is known: a document read from a file has no such findings, which is not the same as none broken.

use crate::draft::Draft;
use crate::model::Severity::{Must, Should};
use crate::model::{Format, Served};
use crate::rule::{Dialect, Rule, rule};

/// The tables, for the catalogue.
pub(crate) const DIALECT: Dialect = Dialect {
    title: "How documents are served",
    shapes: &[],
    rules: &[
        &AWP_PATH,
        &AWP_TYPE,
        &ATP_PATH,
        &ATP_TYPE,
        &ATP_CORS,
        &ATP_CACHE,
        &ATP_ETAG,
        &WOA_PATH,
        &WOA_TYPE,
        &WOA_CACHE,
        &AGENTS_JSON_PATH,
        &AGENTS_JSON_TYPE,
        &AGENTS_TXT_TYPE,
        &ARWS_PATH,
    ],
};

const AWP_PATH: Rule = rule(
    "awp.served.path",
    Must,
    "AWP 0.1 §3",
    "the manifest is not at /agent.json of its host",
    "Publish it at /agent.json as well.",
);
const AWP_TYPE: Rule = rule(
    "awp.served.content_type",
    Must,
    "AWP 0.1 §3",
    "the content type is not application/json",
    "Serve it as application/json.",
);
const ATP_PATH: Rule = rule(
    "atp.served.path",
    Must,
    "ATP 0.1 §2.1",
    "the manifest is not at /.well-known/agent.json",
    "Publish it at /.well-known/agent.json.",
);
const ATP_TYPE: Rule = rule(
    "atp.served.content_type",
    Must,
    "ATP 0.1 §2.2",
    "the content type is not application/json",
    "Serve it as application/json.",
);
const ATP_CORS: Rule = rule(
    "atp.served.cors",
    Must,
    "ATP 0.1 §2.2",
    "agents of other origins may not read the manifest",
    "Send Access-Control-Allow-Origin: *.",
);
const ATP_CACHE: Rule = rule(
    "atp.served.cache_control",
    Should,
    "ATP 0.1 §2.2",
    "no Cache-Control says how long the manifest stays fresh",
    "Send Cache-Control: max-age=3600.",
);
const ATP_ETAG: Rule =
    rule("atp.served.etag", Should, "ATP 0.1 §2.2", "no ETag allows conditional requests", "Send an ETag.");
const WOA_PATH: Rule = rule(
    "woa.served.path",
    Should,
    "draft-gaikwad-woa-00 §9.1",
    "the document is not at /.well-known/woa.json",
    "Publish it at /.well-known/woa.json.",
);
const WOA_TYPE: Rule = rule(
    "woa.served.content_type",
    Should,
    "draft-gaikwad-woa-00 §9.2",
    "the media type is neither application/woa+json nor JSON",
    "Serve it as application/woa+json.",
);
const WOA_CACHE: Rule = rule(
    "woa.served.caching",
    Should,
    "draft-gaikwad-woa-00 §7",
    "neither ETag, Last-Modified nor Cache-Control is sent",
    "Send an ETag and a Cache-Control.",
);
const AGENTS_JSON_PATH: Rule = rule(
    "agents_json.served.path",
    Must,
    "agents.json 0.1.0",
    "the manifest is not at /.well-known/agents.json",
    "Publish it at /.well-known/agents.json.",
);
const AGENTS_JSON_TYPE: Rule = rule(
    "agents_json.served.content_type",
    Must,
    "agents.json 0.1.0",
    "the content type is not application/json in UTF-8",
    "Serve it as application/json; charset=utf-8.",
);
const AGENTS_TXT_TYPE: Rule = rule(
    "agents_txt_0.served.content_type",
    Should,
    "agents.txt 0.1",
    "the content type is not text/plain",
    "Serve it as text/plain; charset=utf-8.",
);
const ARWS_PATH: Rule = rule(
    "arws.served.path",
    Should,
    "ARWS layer 1",
    "the manifest is at neither of the two paths of ARWS",
    "Publish it at /.well-known/llms.txt or /.well-known/agent-manifest.json.",
);

/// Checks the HTTP-level rules of the document's dialect.
pub(crate) fn examine(draft: &mut Draft<'_>) {
    let Some(served) = draft.document.served else { return };
    let path = draft.document.url.path();
    let media = media_type(served);
    let is_json = media.is_none_or(|media| media == "application/json");
    let broken: Vec<&Rule> = match draft.format() {
        Format::Awp => only([(path != "/agent.json", &AWP_PATH), (!is_json || media.is_none(), &AWP_TYPE)]),
        Format::Atp => only([
            (path != "/.well-known/agent.json", &ATP_PATH),
            (!is_json || media.is_none(), &ATP_TYPE),
            (served.cors_allow_origin.as_deref() != Some("*"), &ATP_CORS),
            (served.cache_control.is_none(), &ATP_CACHE),
            (served.etag.is_none(), &ATP_ETAG),
        ]),
        Format::Woa => only([
            (path != "/.well-known/woa.json", &WOA_PATH),
            (!is_json && media != Some("application/woa+json"), &WOA_TYPE),
            (
                served.etag.is_none() && served.last_modified.is_none() && served.cache_control.is_none(),
                &WOA_CACHE,
            ),
        ]),
        Format::AgentsJson => only([
            (path != "/.well-known/agents.json", &AGENTS_JSON_PATH),
            (!is_json || media.is_none() || !is_utf8(served), &AGENTS_JSON_TYPE),
        ]),
        Format::AgentsTxt if draft.manifest.detection.version.as_deref() == Some("0.1") => {
            only([(media != Some("text/plain"), &AGENTS_TXT_TYPE)])
        }
        Format::Arws => {
            let named = ["/.well-known/llms.txt", "/.well-known/agent-manifest.json"].contains(&path);
            only([(!named, &ARWS_PATH)])
        }
        _ => Vec::new(),
    };
    let seen = served.content_type.clone().unwrap_or_else(|| "no content type".to_owned());
    for rule in broken {
        let detail = if rule.code.ends_with("content_type") { format!(" ({seen})") } else { String::new() };
        draft.report(rule, String::new(), format!("{}{detail}", rule.wrong));
    }
}

fn only<const N: usize>(rules: [(bool, &'static Rule); N]) -> Vec<&'static Rule> {
    rules.into_iter().filter_map(|(broken, rule)| broken.then_some(rule)).collect()
}

/// The media type without parameters.
fn media_type(served: &Served) -> Option<&str> {
    served.content_type.as_deref()?.split(';').next().map(str::trim)
}

/// Whether the character set is stated as UTF-8.
fn is_utf8(served: &Served) -> bool {
    let stated = served.content_type.as_deref().unwrap_or_default().to_ascii_lowercase();
    stated.replace(['"', ' '], "").contains("charset=utf-8")
}
