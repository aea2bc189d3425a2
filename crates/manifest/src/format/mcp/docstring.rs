//! Parameters of tools whose schema is not published, from the docstring in their description.
//!
//! Servers in Python put the docstring of a function into the description of its tool, with a block `Args:` that has a line
//! for each parameter (Google style).

use serde_json::{Map, Value};

use crate::model::Invocation;
use crate::schema;
use crate::text;

/// Maximum number of lines of one docstring that are read; published ones have up to 60.
const LINES_MAX: usize = 500;
/// Maximum number of parameters of one docstring that are read.
const PARAMETERS_MAX: usize = 100;
/// Maximum number of characters of the first line of the description of one parameter.
const DESCRIPTION_CHARS_MAX: usize = 2_000;
/// Maximum length in bytes of the description of one parameter with its further lines.
const DESCRIPTION_BYTES_MAX: usize = 2_000;

/// The parameters in the block `Args:` of a docstring.
pub(super) fn parameters(docstring: &str, invocation: &Invocation) -> Option<Value> {
    // Docstrings have several lines.
    if !docstring.contains('\n') {
        return None;
    }
    let is_head = |line: &str| matches!(line.trim(), "Args:" | "Arguments:" | "Parameters:");
    let lines = docstring.lines().take(LINES_MAX).skip_while(|line| !is_head(line)).skip(1);
    let mut found = Map::new();
    let mut indent = None;
    let mut last = None;
    for line in lines {
        let own = line.len() - line.trim_start().len();
        // The block ends at an empty line and at the next heading.
        if line.trim().is_empty() || own == 0 || found.len() >= PARAMETERS_MAX {
            break;
        }
        let first = *indent.get_or_insert(own);
        if own < first {
            break;
        }
        if own > first {
            continue_description(last.as_deref(), line, &mut found);
        } else if let Some((name, described)) = parameter(line) {
            found.insert(name.to_owned(), described);
            last = Some(name.to_owned());
        }
    }
    schema::lenient(&Value::Object(found), invocation)
}

/// The parameters in a sentence such as "Takes `project`, optional `days` (default 7) and `sort`." Words of any other kind mean that it does
/// not list parameters.
pub(super) fn named(description: &str, invocation: &Invocation) -> Option<Value> {
    let start = description.find("Takes ").filter(|_| description.contains('`'))?;
    let sentence = description.get(start + "Takes ".len()..)?.split(". ").next()?.lines().next()?;
    let mut found = Map::new();
    let mut is_optional = false;
    let mut rest = sentence.trim_end_matches('.');
    while let Some((before, behind)) = rest.split_once('`') {
        let (name, behind) = behind.split_once('`')?;
        is_optional |= is_between(before)?;
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name || found.len() >= PARAMETERS_MAX {
            return None;
        }
        let default =
            behind.trim_start().strip_prefix("(default ").and_then(|default| default.split_once(')'));
        let mut described = Map::new();
        if let Some((default, _)) = default {
            let default = text::capped(default.trim_matches(['`', '"']), DESCRIPTION_CHARS_MAX);
            let value = serde_json::from_str(default)
                .ok()
                .filter(|value: &Value| value.is_number() || value.is_boolean());
            described.insert("default".to_owned(), value.unwrap_or_else(|| Value::from(default)));
        }
        described.insert("required".to_owned(), Value::from(!is_optional && default.is_none()));
        found.insert(name.to_owned(), Value::Object(described));
        rest = default.map_or(behind, |(_, behind)| behind);
    }
    is_between(rest)?;
    schema::lenient(&Value::Object(found), invocation)
}

/// Whether the words between two names say that the parameters that follow are optional; `None` if there are other words.
fn is_between(words: &str) -> Option<bool> {
    let mut is_optional = false;
    for word in words.split([' ', ',']).filter(|word| !word.is_empty()) {
        match word {
            "a" | "an" | "the" | "and" | "or" | "required" => {}
            "optional" | "optionally" => is_optional = true,
            _ => return None,
        }
    }
    Some(is_optional)
}

/// A line such as `limit (int, optional): Results per page`.
fn parameter(line: &str) -> Option<(&str, Value)> {
    let (head, description) = line.trim().split_once(':')?;
    let (name, kind) = head.split_once('(').map_or((head, ""), |(name, kind)| (name, kind));
    let name = name.trim();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let mut described = Map::new();
    described.insert(
        "description".to_owned(),
        Value::from(text::capped(description.trim(), DESCRIPTION_CHARS_MAX)),
    );
    let kind = kind.split([',', ')', '[']).next().unwrap_or_default().trim();
    described.extend(json_type(kind).map(|kind| ("type".to_owned(), Value::from(kind))));
    is_name.then_some((name, Value::Object(described)))
}

/// Appends a line to the description of the parameter above it.
fn continue_description(name: Option<&str>, line: &str, found: &mut Map<String, Value>) {
    let described = name.and_then(|name| found.get_mut(name)?.get_mut("description"));
    if let Some(Value::String(text)) = described
        && text.len() + line.len() <= DESCRIPTION_BYTES_MAX
    {
        text.push(' ');
        text.push_str(line.trim());
    }
}

/// The JSON Schema type of a Python type.
fn json_type(python: &str) -> Option<&'static str> {
    match python {
        "str" | "string" => Some("string"),
        "int" | "integer" => Some("integer"),
        "float" | "number" => Some("number"),
        "bool" | "boolean" => Some("boolean"),
        "list" | "tuple" | "array" => Some("array"),
        "dict" | "object" => Some("object"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_a_sentence_that_lists_parameters() {
        let of = |text: &str| named(text, &Invocation::default());
        let found =
            of("Makes it. Takes `project`, optional `days` (default 7) and `compare` (default true). Fast.")
                .unwrap();
        assert_eq!(found["required"], json!(["project"]));
        assert_eq!(found["properties"]["days"]["default"], json!(7));
        assert_eq!(found["properties"]["compare"]["default"], json!(true));
        for text in [
            "Takes `days` to weeks.",
            "Takes time.",
            "Takes the value of `project`.",
            "Takes `a b`.",
            "Takes `.",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn reads_the_block_of_arguments() {
        let docstring = "Finds halls.\n\nArgs:\n    query: Words,\n        in any order\n    limit (int, optional): At most 50\n\nReturns:\n    JSON: a list";
        let found = parameters(docstring, &Invocation::default()).unwrap();
        assert_eq!(found["properties"]["query"]["description"], json!("Words, in any order"));
        assert_eq!(found["properties"]["limit"]["type"], json!("integer"));
        assert_eq!(found["properties"].as_object().unwrap().len(), 2);
        assert_eq!(found.get("required"), None);
        for other in ["Args: a, b", "Finds halls.\nReturns:\n    x: y", "Args:\nquery: no block"] {
            assert_eq!(parameters(other, &Invocation::default()), None, "{other}");
        }
    }
}
