//! Checks how a document was served against its specification: media type, path, CORS, caching.
//!
//! A document without HTTP metadata, such as a file, is not checked.

use crate::draft::Draft;
use crate::format::dialects::dialect;
use crate::model::{Format, Served};
use crate::rule::{Rule, findings};

findings! {
    rule AWP_PATH: Must("awp.served.path", "AWP 0.1 §3")
        "the manifest is not at /agent.json of its host" => "Publish it at /agent.json as well.";
    rule AWP_TYPE: Must("awp.served.content_type", "AWP 0.1 §3")
        "the content type is not application/json" => "Serve it as application/json.";
    rule ATP_PATH: Must("atp.served.path", "ATP 0.1 §2.1")
        "the manifest is not at /.well-known/agent.json" => "Publish it at /.well-known/agent.json.";
    rule ATP_TYPE: Must("atp.served.content_type", "ATP 0.1 §2.2")
        "the content type is not application/json" => "Serve it as application/json.";
    rule ATP_CORS: Must("atp.served.cors", "ATP 0.1 §2.2")
        "agents of other origins may not read the manifest" => "Send Access-Control-Allow-Origin: *.";
    rule ATP_CORS_METHODS: Should("atp.served.cors_methods", "ATP 0.1 §2.2")
        "Access-Control-Allow-Methods does not list GET and OPTIONS"
            => "Send Access-Control-Allow-Methods: GET, OPTIONS with the manifest.";
    rule ATP_CORS_HEADERS: Should("atp.served.cors_headers", "ATP 0.1 §2.2")
        "Access-Control-Allow-Headers does not list Accept and Authorization"
            => "Send Access-Control-Allow-Headers: Accept, Authorization with the manifest.";
    rule ATP_CACHE: Should("atp.served.cache_control", "ATP 0.1 §2.2")
        "no Cache-Control says how long the manifest stays fresh" => "Send Cache-Control: max-age=3600.";
    rule ATP_ETAG: Should("atp.served.etag", "ATP 0.1 §2.2")
        "no ETag allows conditional requests" => "Send an ETag.";
    rule WOA_PATH: Should("woa.served.path", "draft-gaikwad-woa-00 §9.1")
        "the document is not at /.well-known/woa.json" => "Publish it at /.well-known/woa.json.";
    rule WOA_TYPE: Should("woa.served.content_type", "draft-gaikwad-woa-00 §9.2")
        "the media type is neither application/woa+json nor JSON" => "Serve it as application/woa+json.";
    rule WOA_CACHE: Should("woa.served.caching", "draft-gaikwad-woa-00 §7")
        "neither ETag, Last-Modified nor Cache-Control is sent" => "Send an ETag and a Cache-Control.";
    rule AGENTS_JSON_PATH: Must("agents_json.served.path", "agents.json 0.1.0")
        "the manifest is not at /.well-known/agents.json" => "Publish it at /.well-known/agents.json.";
    rule AGENTS_JSON_TYPE: Must("agents_json.served.content_type", "agents.json 0.1.0")
        "the content type is not application/json with charset=utf-8" => "Serve it as application/json; charset=utf-8.";
    rule AGENTS_TXT_TYPE: Should("agents_txt_0.served.content_type", "agents.txt 0.1")
        "the content type is not text/plain" => "Serve it as text/plain; charset=utf-8.";
    rule ARWS_PATH: Should("arws.served.path", "ARWS layer 1")
        "the manifest is at neither of the two paths of ARWS"
            => "Publish it at /.well-known/llms.txt or /.well-known/agent-manifest.json.";
    rule A2A_CACHE: Should("a2a.served.cache_control", "A2A 1.0 §8.6.1")
        "no Cache-Control with max-age says how long the card stays fresh" => "Send Cache-Control: max-age=3600.";
    rule A2A_ETAG: Should("a2a.served.etag", "A2A 1.0 §8.6.1")
        "no ETag allows conditional requests" => "Send an ETag.";
    rule MCP_TYPE: Should("mcp.served.content_type", "SEP-2127 discovery, Hosted Server Card Location")
        "the media type is not application/mcp-server-card+json" => "Serve it as application/mcp-server-card+json.";
    rule MCP_CORS: Must("mcp.served.cors", "SEP-2127 discovery, CORS Requirements")
        "clients in browsers may not read the card" => "Send Access-Control-Allow-Origin: *.";
    rule MCP_CACHE: Should("mcp.served.cache_control", "SEP-2127 discovery, Caching")
        "no Cache-Control says how long the card stays fresh" => "Send Cache-Control: public, max-age=3600.";
    rule MCP_ETAG: Should("mcp.served.etag", "SEP-2127 discovery, Caching")
        "no ETag allows conditional requests" => "Send an ETag.";
}

/// Checks the HTTP-level rules of the document's dialect.
pub(crate) fn check(draft: &mut Draft<'_>) {
    let Some(served) = draft.document.served else { return };
    let moved = !dialect(draft.format()).paths.contains(&draft.document.url.path());
    let media = media_type(served);
    let is_json = media.is_none_or(|media| media == "application/json");
    let has_max_age = served.cache_control.as_deref().is_some_and(|control| control.contains("max-age"));
    let detection = &draft.manifest.detection;
    let broken: Vec<&Rule> = match draft.format() {
        Format::Awp => broken_rules([(moved, &AWP_PATH), (!is_json || media.is_none(), &AWP_TYPE)]),
        Format::Atp => broken_rules([
            (moved, &ATP_PATH),
            (!is_json || media.is_none(), &ATP_TYPE),
            (served.cors_allow_origin.as_deref() != Some("*"), &ATP_CORS),
            (!lists(served.cors_allow_methods.as_deref(), &["GET", "OPTIONS"]), &ATP_CORS_METHODS),
            (!lists(served.cors_allow_headers.as_deref(), &["Accept", "Authorization"]), &ATP_CORS_HEADERS),
            (served.cache_control.is_none(), &ATP_CACHE),
            (served.etag.is_none(), &ATP_ETAG),
        ]),
        Format::Woa => broken_rules([
            (moved, &WOA_PATH),
            (!is_json && media != Some("application/woa+json"), &WOA_TYPE),
            (
                served.etag.is_none() && served.last_modified.is_none() && served.cache_control.is_none(),
                &WOA_CACHE,
            ),
        ]),
        Format::AgentsJson => broken_rules([
            (moved, &AGENTS_JSON_PATH),
            (!is_json || media.is_none() || !is_utf8(served), &AGENTS_JSON_TYPE),
        ]),
        Format::AgentsTxt if detection.version.as_deref() == Some("0.1") => {
            broken_rules([(media != Some("text/plain"), &AGENTS_TXT_TYPE)])
        }
        Format::Arws => broken_rules([(moved, &ARWS_PATH)]),
        Format::A2a if detection.version.as_deref().is_some_and(|version| version.starts_with("1.")) => {
            broken_rules([(!has_max_age, &A2A_CACHE), (served.etag.is_none(), &A2A_ETAG)])
        }
        Format::McpCard if detection.dialect.as_deref() == Some("sep-2127") => broken_rules([
            (media != Some("application/mcp-server-card+json"), &MCP_TYPE),
            (served.cors_allow_origin.as_deref() != Some("*"), &MCP_CORS),
            (served.cache_control.is_none(), &MCP_CACHE),
            (served.etag.is_none(), &MCP_ETAG),
        ]),
        _ => Vec::new(),
    };
    let seen = served.content_type.clone().unwrap_or_else(|| "no content type".to_owned());
    for rule in broken {
        let detail = if rule.code.ends_with("content_type") { format!(" ({seen})") } else { String::new() };
        draft.report(rule, String::new(), format!("{}{detail}", rule.wrong));
    }
}

fn broken_rules<const N: usize>(rules: [(bool, &'static Rule); N]) -> Vec<&'static Rule> {
    rules.into_iter().filter_map(|(broken, rule)| broken.then_some(rule)).collect()
}

/// Whether a header lists every value. A `*` does not cover Authorization (Fetch §3.2.5).
fn lists(header: Option<&str>, values: &[&str]) -> bool {
    let listed: Vec<&str> = header.unwrap_or_default().split(',').map(str::trim).collect();
    let has = |value: &str| listed.iter().any(|listed| listed.eq_ignore_ascii_case(value));
    values.iter().all(|value| has(value) || (has("*") && *value != "Authorization"))
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
