//! Conversion of YAML values, and refused documents.

use serde_json::json;

use super::*;

fn over(text: &str) -> OverBudget {
    match parse(text) {
        Err(YamlError::OverBudget(over)) => over,
        other => panic!("{other:?}"),
    }
}

fn refused(text: &str) -> String {
    match parse(text) {
        Err(YamlError::Syntax(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn converts_bare_keys_and_tags_to_json() {
    let text = "openapi: 3.1.0\nresponses:\n  200: {a: !x y, b: .nan, c: ~}\n  on: true\n";
    assert_eq!(
        parse(text).unwrap(),
        json!({"openapi": "3.1.0", "responses": {"200": {"a": "y", "b": null, "c": null}, "on": true}})
    );
}

#[test]
fn scalars_follow_the_core_schema() {
    for (text, value) in [
        ("12", json!(12)),
        ("-12", json!(-12)),
        ("+7", json!(7)),
        ("0x1F", json!(31)),
        ("0o17", json!(15)),
        ("0b101", json!(5)),
        ("-0x10", json!(-16)),
        ("007", json!("007")),
        ("1.50", json!(1.5)),
        ("1e3", json!(1000.0)),
        ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
        (".inf", json!(null)),
        ("yes", json!("yes")),
        ("TRUE", json!(true)),
        ("Null", json!(null)),
        ("''", json!("")),
        ("'12'", json!("12")),
        ("!!str 12", json!("12")),
        ("!!int '12'", json!(12)),
        ("! 12", json!(12)),
        ("2024-01-02", json!("2024-01-02")),
        ("3.0.0", json!("3.0.0")),
        ("nan", json!("nan")),
        ("+-1", json!("+-1")),
    ] {
        assert_eq!(parse(&format!("a: {text}")).unwrap(), json!({ "a": value }), "{text}");
    }
    assert!(refused("a: !!int x").contains("!!int"));
}

#[test]
fn keeps_merge_keys_as_names_and_the_first_duplicate() {
    let text = "base: &base {x: 1}\nuse:\n  <<: *base\n  y: 2\n  y: 3\n";
    assert_eq!(parse(text).unwrap(), json!({"base": {"x": 1}, "use": {"<<": {"x": 1}, "y": 2}}));
}

#[test]
fn block_scalars_and_folded_lines_keep_their_text() {
    let text = "a: |\n  one\n   two\nb: >-\n  one\n  two\nc: \"x\\u00e9\\n\"\nd: plain\n  goes on\n";
    assert_eq!(
        parse(text).unwrap(),
        json!({"a": "one\n two\n", "b": "one two", "c": "xé\n", "d": "plain goes on"})
    );
}

#[test]
fn expands_aliases_and_refuses_exponential_expansion() {
    assert_eq!(parse("a: &x [1, 2]\nb: *x\n").unwrap(), json!({"a": [1, 2], "b": [1, 2]}));
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let below = format!("*a{}", level - 1);
        let aliases = vec![below; 9].join(", ");
        bomb = format!("{bomb}a{level}: &a{level} [{aliases}]\n");
    }
    assert_eq!(over(&bomb).measure, Measure::Repeated);
    assert!(refused("a: *nothing").contains("anchor"));
    assert!(refused("a: &x [*x]").contains("alias"));
}

#[test]
fn limits_the_depth_of_aliases() {
    let mut text = String::from("a0: &a0 [x]\n");
    for level in 1..80 {
        text = format!("{text}a{level}: &a{level} [*a{}]\n", level - 1);
    }
    assert_eq!(over(&text).measure, Measure::Depth);
}

#[test]
fn refuses_deep_nesting_in_every_syntax() {
    for text in [
        "[".repeat(200_000),
        format!("openapi: 3.0.0\nx: {}", "[".repeat(200_000)),
        format!("x: {}", "{a: ".repeat(100_000)),
        "- ".repeat(100_000),
        "? ".repeat(100_000),
        (0..2_000).map(|level| format!("{}a:\n", " ".repeat(level))).collect::<Vec<_>>().concat(),
    ] {
        let over = over(&text);
        assert_eq!(over.measure, Measure::Depth, "{over}");
    }
}

#[test]
fn bounds_the_lookahead() {
    assert_eq!(over(&format!("- [{}", "a, ".repeat(300_000))).measure, Measure::Lookahead);
    assert_eq!(over(&format!("x: '{}'", "a".repeat(1_100_000))).measure, Measure::Lookahead);
    assert_eq!(over(&format!("{}x: 1", "# a comment\n".repeat(100_000))).measure, Measure::Lookahead);
    assert_eq!(over(&"x".repeat(YAML_BYTES_MAX + 1)).measure, Measure::YamlBytes);
}

#[test]
fn limits_the_length_of_keys_that_are_collections() {
    let nested = format!("{}'\"'{}: 1\n", "{".repeat(40), ": 1}".repeat(40));
    assert!(refused(&nested).contains("64 KiB"));
}

#[test]
fn refuses_tag_directives_and_further_documents() {
    assert!(refused("%TAG !e! tag:example.com,2000:\n---\na: 1\n").contains("%TAG"));
    assert!(refused("a: 1\n---\nb: 2\n").contains("more than one"));
    assert!(refused("a: \0").contains("null character"));
    assert_eq!(parse("%YAML 1.2\n---\na: 1\n").unwrap(), json!({"a": 1}));
}

#[test]
fn syntax_errors_name_the_line() {
    assert!(refused("a: 1\n b: 2\n").contains("line 2"), "{}", refused("a: 1\n b: 2\n"));
}
