//! Detects documents that are not JSON: agents.txt in its grammars, llms.txt, ai.txt, OpenAPI in YAML.

use crate::json::is_comment;
use crate::model::{Detection, Format, Strength};

use super::candidate::detected;

/// Maximum number of lines that are inspected. Every grammar can be recognised at the start of a text.
const LINES_MAX: usize = 400;

/// Detects the dialect of a text.
pub(crate) fn text(text: &str, path: &str) -> Detection {
    let lines: Vec<&str> = text.lines().take(LINES_MAX).map(str::trim_end).collect();
    if let Some(line) = lines.iter().find(|line| is_openapi_line(line)) {
        return detected(Format::OpenApi, Strength::Strong, format!("the YAML line \"{line}\""));
    }
    if let Some(line) = late_openapi_line(text, path) {
        return detected(Format::OpenApi, Strength::Strong, format!("the YAML line \"{line}\""));
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    match name {
        "agents.txt" | "agent.txt" => agents_txt(&lines),
        "llms.txt" | "llms-full.txt" => {
            detected(Format::LlmsTxt, Strength::Medium, format!("Markdown or prose at {path}"))
        }
        "ai.txt" => detected(Format::AiTxt, Strength::Medium, format!("a text at {path}")),
        _ if has_grammar(&lines) => agents_txt(&lines),
        _ if is_llms_txt(&lines) => {
            detected(Format::LlmsTxt, Strength::Weak, "a Markdown title and lists of links".to_owned())
        }
        _ if expects_json(name) => {
            let evidence = if text.contains('\0') {
                format!("binary data where {name} has to be JSON")
            } else if is_comment(text.trim_start()) {
                "the document begins with a comment, and JSON has no comments".to_owned()
            } else {
                format!("plain text where {name} has to be JSON")
            };
            detected(Format::Malformed, Strength::Strong, evidence)
        }
        _ => detected(Format::Unrelated, Strength::Weak, "a text of no known kind".to_owned()),
    }
}

/// The line with the version of a long YAML file, at any position: in alphabetical order, `components` comes before it.
fn late_openapi_line<'t>(text: &'t str, path: &str) -> Option<&'t str> {
    let is_yaml = [".yaml", ".yml"].iter().any(|ending| path.ends_with(ending));
    let keys = ["\nopenapi:", "\nswagger:"].iter().filter(|_| is_yaml);
    let rest = keys.filter_map(|key| text.find(key)).filter_map(|at| text.get(at + 1..));
    rest.filter_map(|rest| rest.lines().next()).map(str::trim_end).find(|line| is_openapi_line(line))
}

fn is_openapi_line(line: &str) -> bool {
    ["openapi:", "swagger:"].iter().any(|key| {
        line.strip_prefix(key).is_some_and(|version| {
            version.trim().trim_matches(['"', '\'']).starts_with(|letter: char| letter.is_ascii_digit())
        })
    })
}

fn expects_json(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("json"))
        || matches!(name, "api-catalog" | "ucp" | "x402" | "agent-descriptions")
}

/// Keys that begin a line in one of the agents.txt grammars.
const KEYS: &[&str] = &[
    "site",
    "site-name",
    "site-url",
    "spec-version",
    "capabilities",
    "capabilities-url",
    "agents-json",
    "agent-api",
    "session-endpoint",
    "session-ttl",
    "capability",
    "protocols",
    "authorization",
    "mcp",
    "skills",
    "a2a",
    "webmcp",
    "declaration-type",
];

fn keys<'l>(lines: &'l [&'l str]) -> impl Iterator<Item = String> + 'l {
    lines.iter().filter(|line| !line.starts_with([' ', '\t', '#'])).filter_map(|line| {
        let (key, _) = line.split_once(':')?;
        let plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        plain.then(|| key.to_ascii_lowercase())
    })
}

fn has_grammar(lines: &[&str]) -> bool {
    keys(lines).filter(|key| KEYS.contains(&key.as_str())).take(2).count() == 2
}

/// Detects agents.txt by name. The strength states whether a grammar was recognised.
fn agents_txt(lines: &[&str]) -> Detection {
    let known: Vec<String> = keys(lines).filter(|key| KEYS.contains(&key.as_str())).take(3).collect();
    match known.as_slice() {
        [] => detected(
            Format::AgentsTxt,
            Strength::Weak,
            "the name agents.txt; no line of a known grammar".to_owned(),
        ),
        keys => detected(
            Format::AgentsTxt,
            Strength::Strong,
            format!("lines that begin with {}", keys.join(", ")),
        ),
    }
}

fn is_llms_txt(lines: &[&str]) -> bool {
    let titled = lines.iter().find(|line| !line.is_empty()).is_some_and(|line| line.starts_with("# "));
    titled && lines.iter().filter(|line| line.starts_with("- [") && line.contains("](")).take(2).count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_version_of_yaml_on_any_line() {
        let long = format!("components:\n{}", "  a: {}\n".repeat(2 * LINES_MAX));
        for (text, path, expected) in [
            (format!("{long}openapi: 3.0.2\npaths: {{}}\n"), "/openapi.yaml", Format::OpenApi),
            (format!("{long}swagger: '2.0'\n"), "/api.yml", Format::OpenApi),
            (format!("{long}openapi: yes\n"), "/openapi.yaml", Format::Unrelated),
            (format!("{long}  openapi: 3.0.2\n"), "/openapi.yaml", Format::Unrelated),
            (format!("{long}openapi: 3.0.2\n"), "/notes", Format::Unrelated),
        ] {
            assert_eq!(super::text(&text, path).format, expected, "{path}");
        }
    }
}
