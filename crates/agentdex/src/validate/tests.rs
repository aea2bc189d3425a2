//! The four outputs for a document that breaks a requirement, and the exit by severity.

use clap::Parser as _;
use serde_json::Value;

use super::*;

#[derive(clap::Parser)]
struct TestCommand {
    #[command(flatten)]
    args: ValidateArgs,
}

/// Validates text in a file of this name. Returns whether it passes, and the output.
fn validate(name: &str, text: &str, flags: &[&str]) -> (bool, String) {
    let (verdict, output) = judge(name, text, flags);
    (verdict == Verdict::Conforms, output)
}

fn judge(name: &str, text: &str, flags: &[&str]) -> (Verdict, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    let words = ["validate", path.to_str().unwrap()].into_iter().chain(flags.iter().copied());
    let mut out = Vec::new();
    let args = TestCommand::parse_from(words).args;
    let document = args.open().unwrap();
    let verdict = run(&args, &document, &document.read(), &mut out).unwrap();
    (verdict, String::from_utf8(out).unwrap())
}

#[test]
fn a_missing_file_with_the_name_of_a_site_suggests_how_to_check_the_site() {
    let error = |name| TestCommand::parse_from(["validate", name]).args.open().unwrap_err().to_string();
    let site = error("nobody.example.org");
    for part in ["agentdex check nobody.example.org", "https://nobody.example.org/.well-known/agent.json"] {
        assert!(site.contains(part), "{site}");
    }
    assert!(
        error("nobody.example.org/agent.json").ends_with("its URL: https://nobody.example.org/agent.json")
    );
    for name in ["missing.json", "missing/agent.json", "llms.txt", "Cargo.toml/x"] {
        assert_eq!(error(name), format!("cannot read {name}"));
    }
}

#[test]
fn a_directory_is_refused_with_the_command_for_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let args = TestCommand::parse_from(["validate", dir.path().to_str().unwrap()]).args;
    let error = args.open().unwrap_err().to_string();
    let (_, command) = error.split_once("is a directory, and one document is checked at a time; ").unwrap();
    let (_, command) = command.split_once(": ").unwrap();
    let command = command.replace("agentdex validate", "grep -c valid");
    let run = || std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
    assert!(run().status.success() && run().stdout.is_empty(), "a directory without documents");
    let paths = policy::plan::PATHS.iter().map(|slot| slot.path).filter(|path| *path != "/");
    let names = paths.map(|path| path.rsplit('/').next().unwrap());
    let names: std::collections::BTreeSet<&str> = names.collect();
    let names: Vec<&str> = names.into_iter().chain(["openapi.yaml", "api.yml"]).collect();
    for name in &names {
        std::fs::write(dir.path().join(name), "valid").unwrap();
    }
    std::fs::write(dir.path().join("README.md"), "no document").unwrap();
    let checked = run();
    assert!(checked.status.success(), "{command}: {checked:?}");
    assert_eq!(checked.stdout.split(|byte| *byte == b'\n').count() - 1, names.len(), "{checked:?}");
    std::fs::write(dir.path().join("agents.txt"), "broken").unwrap();
    assert!(!run().status.success(), "one check fails");
}

#[test]
fn json_has_what_would_be_indexed() {
    let (_, json) = judge("agent.json", VALID, &["--output", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["indexed"], serde_json::json!({"capabilities": 1, "invocable": 1}), "{json}");
    assert_eq!(
        (&json["format"], &json["manifest"]["capabilities"][0]["native_id"]),
        (&"awp".into(), &"list_papers".into())
    );
    let (_, json) = judge("agent.json", "{\"a\": 1}", &["--output", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["indexed"], serde_json::json!({"capabilities": 0, "invocable": 0}), "{json}");
}

const BROKEN: &str = "{\n  \"awp_version\": \"0.1\",\n  \"domain\": \"kiosk.example\",\n  \"actions\": [\n    {\"id\": \"<buy>\"}\n  ]\n}\n";
const VALID: &str = r#"{"awp_version": "0.1", "domain": "site.invalid", "intent": "Sells newspapers.",
  "actions": [{"id": "list_papers", "description": "Lists the papers on sale today", "auth_required": false, "inputs": {},
               "outputs": {"papers": "array[string]"}, "endpoint": "/api/papers", "method": "GET"}]}"#;

#[test]
fn text_names_the_dialect_the_position_and_the_fix() {
    let (passes, output) = validate("agent.json", BROKEN, &[]);
    assert!(!passes);
    assert!(output.contains("awp 0.1 (strong evidence)"), "{output}");
    assert!(output.contains("awp.intent.missing"), "{output}");
    assert!(output.contains("agent.json:5:5: must"), "{output}");
}

/// A document whose strings clear a screen and forge lines of output.
#[test]
fn escapes_terminal_controls_and_line_breaks_of_documents() {
    let hostile = "\\u001b[2J\\u009b31m\\u202e\\nagent.json:1:1: must: forged";
    let text =
        BROKEN.replace("<buy>", hostile).replace("\"actions\"", &format!("\"{hostile}\": 1, \"actions\""));
    for format in ["text", "json", "sarif", "junit"] {
        let (_, output) = validate("agent.json", &text, &["--output", format]);
        assert!(
            !output.chars().any(|letter| letter != '\n' && settings::escape::is_unsafe(letter)),
            "{output:?}"
        );
        assert!(!output.lines().any(|line| line.starts_with("agent.json:1:1: must: forged")), "{output}");
        let (_, output) = validate("x\n::error::forged.json", &text, &["--output", format]);
        assert!(!output.lines().any(|line| line.starts_with("::error::")), "{output}");
    }
}

#[test]
fn reports_examples_that_do_not_find_their_capability() {
    let card = r#"{"name": "Tidy", "description": "Cleans homes.", "url": "https://tidy.example/a2a", "version": "1",
        "capabilities": {}, "defaultInputModes": ["text"], "defaultOutputModes": ["text"], "skills": [
        {"id": "clean", "name": "Clean a home", "description": "Cleans rooms and windows.", "tags": ["cleaning"],
         "examples": ["clean my windows", "the dog was here"]}]}"#;
    let (_, output) = judge("agent-card.json", card, &[]);
    assert!(output.contains("1 of 2 example requests find their capability first"), "{output}");
    assert!(output.contains("\"the dog was here\": no word of it"), "{output}");
    let (_, json) = judge("agent-card.json", card, &["--output", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["examples"]["unfound"][0]["example"], "the dog was here", "{json}");
}

#[test]
fn exits_by_the_severity_threshold() {
    assert!(validate("agent.json", VALID, &[]).0);
    assert!(validate("agent.json", BROKEN, &["--fail-on", "never"]).0);
}

#[test]
fn a_document_that_is_not_a_manifest_fails_validation() {
    let yaml = "awp_version: \"0.1\"\ndomain: kiosk.example\n";
    let toml = "[server]\nport = 80\n";
    for (name, text) in [
        ("agent.json", yaml),
        ("config.toml", toml),
        ("document.json", "{\"a\": 1}"),
        ("agent.json", "{\"a\": 1}"),
        ("-.txt", "hello\n"),
        ("agent.json", "hello\n"),
        ("agent.json", "1"),
    ] {
        let (verdict, output) = judge(name, text, &["--fail-on", "never"]);
        assert_eq!(verdict, Verdict::NotRecognised, "{name}: {output}");
        assert_ne!(judge(name, text, &[]).0, Verdict::Conforms, "{name}");
        let (_, junit) = judge(name, text, &["--output", "junit"]);
        assert!(junit.contains("<failure>") && !junit.contains("failures=\"0\""), "{junit}");
    }
    let (verdict, output) = judge("agent.json", &["// hi\n", VALID].concat(), &[]);
    assert_ne!(verdict, Verdict::Conforms, "{output}");
}

#[test]
fn each_verdict_has_its_exit_code() {
    for (text, flags, code) in [
        (VALID, &[][..], 0),
        (BROKEN, &["--fail-on", "never"], 0),
        (BROKEN, &[], 1),
        ("{\"awp_version\": ", &[], 3),
        ("{\"awp_version\": ", &["--fail-on", "never"], 3),
        ("{\"a\": 1}", &[], 3),
    ] {
        assert_eq!(judge("agent.json", text, flags).0.exit_code(), code, "{text}");
    }
}

#[test]
fn checks_the_origin_only_with_a_url() {
    assert!(!validate("agent.json", BROKEN, &[]).1.contains("origin."));
    assert!(
        validate("agent.json", BROKEN, &["--url", "https://other.example/agent.json"])
            .1
            .contains("origin.mismatch")
    );
}

/// A document without an address has no site that serves it.
#[test]
fn names_no_foreign_publisher_without_a_url() {
    let catalog = r#"{"entries": [{"identifier": "urn:air:shop.example:agent:a", "displayName": "A", "description": "Sells newspapers",
      "type": "application/a2a-agent-card+json", "url": "https://shop.example/.well-known/agent-card.json",
      "representativeQueries": ["which newspapers are there", "buy a newspaper"],
      "trustManifest": {"identity": "did:web:shop.example", "identityType": "did"}}]}"#;
    let (verdict, output) = judge("ard.json", catalog, &[]);
    assert!(!output.contains("foreign") && !output.contains("origin."), "{output}");
    assert_eq!(verdict.exit_code(), 0, "{output}");
    let elsewhere = validate("ard.json", catalog, &["--url", "https://other.example/.well-known/ard.json"]);
    assert!(elsewhere.1.contains("ard.entry.publisher.foreign"), "{}", elsewhere.1);
}

#[test]
fn suggests_a_flag_for_an_unknown_format() {
    let output = validate("notes.txt", "Milk, eggs, bread.\n", &[]).1;
    assert!(output.contains("unrelated") && output.contains("--as names the format"), "{output}");
}

#[test]
fn locates_a_syntax_error_where_the_parser_stopped() {
    let output =
        validate("agent.json", "{\n  \"awp_version\": \"0.1\",\n  \"domain\" \"kiosk.example\"\n}\n", &[]).1;
    assert!(
        output.contains(
            "agent.json:3:12: must: there is no `:` after a name at line 3, column 12: `\"domain\" "
        ),
        "{output}"
    );
}

#[test]
fn accepts_format_as_other_commands_do() {
    let mut args = TestCommand::parse_from(["validate", "x.json"]).args;
    args.take_format(Some(OutputFormat::Json));
    assert!(matches!(args.output, Some(Output::Json)));
    let mut args = TestCommand::parse_from(["validate", "x.json", "--output", "sarif"]).args;
    args.take_format(Some(OutputFormat::Text));
    assert!(matches!(args.output, Some(Output::Sarif)));
}

#[test]
fn json_has_lines_and_columns() {
    let (_, output) = validate("agent.json", BROKEN, &["--output", "json"]);
    let report: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(report["detection"]["format"], "awp");
    let findings = report["findings"].as_array().unwrap();
    assert!(
        findings.iter().any(|finding| finding["pointer"] == "/actions/0" && finding["line"] == 5),
        "{output}"
    );
}

#[test]
fn sarif_lists_each_rule_once_and_every_result() {
    let (_, output) = validate("agent.json", BROKEN, &["--output", "sarif"]);
    let log: Value = serde_json::from_str(&output).unwrap();
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
    let (_, output) = validate("agent.json", BROKEN, &["--output", "junit"]);
    assert!(output.starts_with("<?xml") && output.trim_end().ends_with("</testsuite>"), "{output}");
    assert!(!output.contains("<buy>"));
    assert_eq!(
        output.matches("<testcase").count(),
        output.matches("tests=\"").count()
            * output.split("tests=\"").nth(1).unwrap().split('"').next().unwrap().parse::<usize>().unwrap()
    );
}

#[test]
fn reports_that_serving_of_a_file_is_not_checked() {
    let (_, output) = validate("agent.json", VALID, &[]);
    assert!(output.contains("how it is served is not checked"), "{output}");
    let (_, output) = validate("agent.json", VALID, &["--output", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap()["served"], Value::Null);
}

#[test]
fn distinguishes_urls_from_files() {
    let address =
        |words: &[&str]| TestCommand::parse_from(["validate"].iter().chain(words)).args.document_url();
    assert!(address(&["agent.json"]).unwrap().is_none());
    assert_eq!(address(&["https://a.example/x"]).unwrap().unwrap().as_str(), "https://a.example/x");
    assert!(address(&["http://a.example/x"]).unwrap_err().to_string().contains("only https"));
    assert!(address(&["https://a.example/x", "--url", "https://b.example/"]).is_err());
}

#[test]
fn reads_as_the_forced_format() {
    let (_, output) = validate("agent.json", VALID, &["--as", "atp"]);
    assert!(output.contains(": atp"), "{output}");
}

#[test]
fn a_document_can_be_read_as_the_formats_of_manifests_alone() {
    assert_eq!(format_of_a_manifest("awp"), Ok(Format::Awp));
    for text in ["malformed", "opaque", "unrelated", "nonsense"] {
        let known = format_of_a_manifest(text).unwrap_err();
        assert!(known.contains("awp") && !known.contains("malformed"), "{known}");
    }
}
