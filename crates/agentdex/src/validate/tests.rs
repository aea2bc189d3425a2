//! The four outputs on a document with a broken demand, and the exit by severity.

use clap::Parser as _;
use serde_json::Value;

use super::*;

#[derive(clap::Parser)]
struct Typed {
    #[command(flatten)]
    args: ValidateArgs,
}

/// Validates text in a file of this name; whether it passes and what was printed.
fn validate(name: &str, text: &str, flags: &[&str]) -> (bool, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    let words = ["validate", path.to_str().unwrap()].into_iter().chain(flags.iter().copied());
    let mut out = Vec::new();
    let args = Typed::parse_from(words).args;
    let passes = run(&args, &args.read().unwrap(), &mut out).unwrap();
    (passes, String::from_utf8(out).unwrap())
}

const BROKEN: &str = "{\n  \"awp_version\": \"0.1\",\n  \"domain\": \"kiosk.example\",\n  \"actions\": [\n    {\"id\": \"<buy>\"}\n  ]\n}\n";
const SOUND: &str = r#"{"awp_version": "0.1", "domain": "site.invalid", "intent": "Sells newspapers.",
  "actions": [{"id": "list_papers", "description": "Lists the papers on sale today", "auth_required": false, "inputs": {},
               "outputs": {"papers": "array[string]"}, "endpoint": "/api/papers", "method": "GET"}]}"#;

#[test]
fn text_names_the_dialect_the_place_and_the_cure() {
    let (passes, said) = validate("agent.json", BROKEN, &[]);
    assert!(!passes);
    assert!(said.contains("awp 0.1 (strong)"), "{said}");
    assert!(said.contains("awp.intent.missing"), "{said}");
    assert!(said.contains("agent.json:5:5: must"), "{said}");
}

/// A document whose words clear a screen and pretend to be lines of ours.
#[test]
fn words_of_a_document_steer_no_terminal_and_begin_no_line() {
    let hostile = "\\u001b[2J\\u009b31m\\u202e\\nagent.json:1:1: must: forged";
    let text =
        BROKEN.replace("<buy>", hostile).replace("\"actions\"", &format!("\"{hostile}\": 1, \"actions\""));
    for format in ["text", "json", "sarif", "junit"] {
        let (_, said) = validate("agent.json", &text, &["--output", format]);
        assert!(
            !said.chars().any(|letter| letter != '\n' && settings::escape::is_unsafe(letter)),
            "{said:?}"
        );
        if format == "text" {
            assert!(!said.lines().any(|line| line.starts_with("agent.json:1:1: must: forged")), "{said}");
        }
    }
}

#[test]
fn a_sound_document_passes_and_the_threshold_counts() {
    assert!(validate("agent.json", SOUND, &[]).0);
    assert!(validate("agent.json", BROKEN, &["--fail-on", "never"]).0);
}

#[test]
fn where_a_file_is_served_is_not_judged_unless_it_is_said() {
    assert!(!validate("agent.json", BROKEN, &[]).1.contains("origin."));
    assert!(
        validate("agent.json", BROKEN, &["--url", "https://other.example/agent.json"])
            .1
            .contains("origin.mismatch")
    );
}

#[test]
fn what_no_reader_knows_is_said_to_be_so() {
    let said = validate("notes.txt", "Milk, eggs, bread.\n", &[]).1;
    assert!(said.contains("unrelated") && said.contains("--as names the one that is meant"), "{said}");
}

#[test]
fn a_syntax_error_is_placed_where_the_parser_stopped() {
    let said =
        validate("agent.json", "{\n  \"awp_version\": \"0.1\",\n  \"domain\" \"kiosk.example\"\n}\n", &[]).1;
    assert!(said.contains("agent.json:3:12: must: expected `:` at byte"), "{said}");
}

#[test]
fn the_format_that_other_commands_take_is_taken() {
    let mut args = Typed::parse_from(["validate", "x.json"]).args;
    args.take_format(Some(OutputFormat::Json));
    assert!(matches!(args.output, Some(Output::Json)));
    let mut args = Typed::parse_from(["validate", "x.json", "--output", "sarif"]).args;
    args.take_format(Some(OutputFormat::Text));
    assert!(matches!(args.output, Some(Output::Sarif)));
}

#[test]
fn json_has_lines_and_columns() {
    let (_, said) = validate("agent.json", BROKEN, &["--output", "json"]);
    let report: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["detection"]["format"], "awp");
    let findings = report["findings"].as_array().unwrap();
    assert!(
        findings.iter().any(|finding| finding["pointer"] == "/actions/0" && finding["line"] == 5),
        "{said}"
    );
}

#[test]
fn sarif_lists_each_rule_once_and_every_result() {
    let (_, said) = validate("agent.json", BROKEN, &["--output", "sarif"]);
    let log: Value = serde_json::from_str(&said).unwrap();
    let run = &log["runs"][0];
    let rules: Vec<&Value> =
        run["tool"]["driver"]["rules"].as_array().unwrap().iter().map(|rule| &rule["id"]).collect();
    let results = run["results"].as_array().unwrap();
    assert!(results.len() >= rules.len() && !rules.is_empty());
    assert!(results.iter().all(|result| rules.contains(&&result["ruleId"])));
    assert!(results.iter().any(|result| result["level"] == "error"));
}

#[test]
fn junit_is_escaped_and_counts_failures() {
    let (_, said) = validate("agent.json", BROKEN, &["--output", "junit"]);
    assert!(said.starts_with("<?xml") && said.trim_end().ends_with("</testsuite>"), "{said}");
    assert!(!said.contains("<buy>"));
    assert_eq!(
        said.matches("<testcase").count(),
        said.matches("tests=\"").count()
            * said.split("tests=\"").nth(1).unwrap().split('"').next().unwrap().parse::<usize>().unwrap()
    );
}

#[test]
fn how_a_file_is_served_is_not_checked_and_that_is_said() {
    let (_, said) = validate("agent.json", SOUND, &[]);
    assert!(said.contains("how it is served is not checked"), "{said}");
    let (_, said) = validate("agent.json", SOUND, &["--output", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["served"], Value::Null);
}

#[test]
fn an_address_is_told_from_a_file() {
    let address = |words: &[&str]| Typed::parse_from(["validate"].iter().chain(words)).args.address();
    assert!(address(&["agent.json"]).unwrap().is_none());
    assert_eq!(address(&["https://a.example/x"]).unwrap().unwrap().as_str(), "https://a.example/x");
    assert!(address(&["http://a.example/x"]).unwrap_err().to_string().contains("only https"));
    assert!(address(&["https://a.example/x", "--url", "https://b.example/"]).is_err());
}

#[test]
fn a_forced_format_is_obeyed() {
    let (_, said) = validate("agent.json", SOUND, &["--as", "atp"]);
    assert!(said.contains(": atp"), "{said}");
}
