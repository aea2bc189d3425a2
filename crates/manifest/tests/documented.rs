//! docs/FORMATS.md ends with generated tables: the inferred types and every finding code.

#[path = "support/markdown.rs"]
mod markdown;

use std::fs;
use std::path::Path;

#[test]
fn formats_chapter_matches_the_generated_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/FORMATS.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, written) = text.split_once("## Inferred types\n").expect("the generated part is missing");
    assert!(
        written == markdown::tables(),
        "replace what follows \"## Inferred types\" by `cargo run -p manifest --example finding_codes`"
    );
}

/// A text of the chapter for each format; formats without a specification share one.
const CHAPTERS: &[(&str, &[&str])] = &[
    ("## OpenAPI", &["openapi"]),
    ("## A2A", &["a2a"]),
    ("## AI catalog (ARD)", &["ard"]),
    ("## MCP", &["mcp_card", "mcp_registry", "mcp_freeform", "mcp_config"]),
    ("## API catalog, plugin, skills index", &["api_catalog", "ai_plugin", "skills_index"]),
    ("## agents.txt 1.0, llms.txt, ai.txt", &["agents_txt", "llms_txt", "ai_txt"]),
    ("| Wildcard agents.json |", &["wildcard"]),
    ("| AHP |", &["ahp"]),
    ("| AIR agent.json |", &["air"]),
    ("| agent.json facts |", &["facts"]),
    ("| Agent Manifest v1 |", &["manifest_v1"]),
    ("| Web2Agent |", &["w2a"]),
    ("| UCP |", &["ucp"]),
    ("| ACP |", &["acp"]),
    ("| x402 |", &["x402"]),
    ("| ERC-8004 |", &["erc8004"]),
    ("| ANP |", &["anp"]),
    ("| WebMCP file |", &["webmcp"]),
    ("| Web Bot Auth |", &["web_bot_auth"]),
    ("| AWAS |", &["awas"]),
    ("| agents.json with intents, or with data and actions |", &["agents_json_jm", "agents_json_lt"]),
    ("## AWP", &["awp"]),
    ("## ATP", &["atp"]),
    ("## WoA", &["woa"]),
    ("## agents.json and agents.txt 0.1", &["agents_json"]),
    ("## ARWS", &["arws"]),
    ("## Other formats", &["generic", "pointer", "list", "unrelated", "opaque"]),
    ("are `malformed`", &["malformed"]),
];

#[test]
fn every_format_is_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/FORMATS.md");
    let text = fs::read_to_string(path).unwrap();
    for (heading, _) in CHAPTERS {
        assert!(text.contains(heading), "{heading} is missing");
    }
    for format in manifest::Format::ALL {
        let described = CHAPTERS.iter().any(|(_, slugs)| slugs.contains(&format.as_str()));
        assert!(described, "{format} has no place in docs/FORMATS.md");
    }
}
