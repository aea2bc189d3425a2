//! ATP parameters (§3.5.1): their schema, and the values that contradict it.

use serde_json::Value;

use super::rules;
use crate::draft::Draft;
use crate::json::push_index;
use crate::model::Capability;
use crate::object::Object;
use crate::pattern;
use crate::schema::{self, Location, Parameters, is_of_type, object_descriptor};
use crate::walk::List;

/// Maximum number of capabilities of one document, and parameters of each, whose default is matched with the pattern: a pattern takes up to
/// 0.1 ms to compile. Published manifests have up to 30 of either.
const MATCHED_CAPABILITIES_MAX: usize = 50;
const MATCHED_PARAMETERS_MAX: usize = 50;

pub(super) fn read(published: &Object<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    let mut parameters = Parameters::default();
    let list = List::of(&rules::PARAMETER)
        .mistyped(&rules::PARAMETER_MISTYPED)
        .unique("name", &rules::PARAMETER_DUPLICATE);
    let is_early = draft.manifest.capabilities.len() < MATCHED_CAPABILITIES_MAX;
    let mut matches_left = if is_early { MATCHED_PARAMETERS_MAX } else { 0 };
    draft.each(published, "parameters", &list, |parameter, draft| {
        if let Some(name) = parameter.text("name") {
            let (schema, presence) = object_descriptor(parameter.map);
            parameters.add(name, schema, Location::of(&capability.invocation, name), presence);
        }
        check_range(parameter, draft);
        check_enum(parameter, draft);
        check_default(parameter, matches_left > 0, draft);
        matches_left = matches_left.saturating_sub(1);
    });
    capability.parameters = parameters.finish();
    if published.list("parameters").is_some_and(<[_]>::is_empty) {
        capability.parameters = schema::without_parameters(&capability.invocation);
    }
}

fn check_range(parameter: &Object<'_>, draft: &mut Draft<'_>) {
    let is_other =
        parameter.text("type").is_some_and(|kind| matches!(kind, "string" | "boolean" | "array" | "object"));
    let limit = ["minimum", "maximum"].into_iter().find(|key| number(parameter, key).is_some());
    if let Some(key) = limit.filter(|_| is_other) {
        draft.report_rule(&rules::PARAMETER_RANGE_UNUSED, parameter.at(key));
    }
    if let (Some(low), Some(high)) = (number(parameter, "minimum"), number(parameter, "maximum"))
        && low > high
    {
        let text = format!("`minimum` {low} is above `maximum` {high}");
        draft.report(&rules::PARAMETER_RANGE, parameter.pointer.clone(), text);
    }
}

fn check_enum(parameter: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(values) = parameter.list("enum") else { return };
    if values.is_empty() {
        draft.report(&rules::PARAMETER_ENUM, parameter.at("enum"), "`enum` is empty: no value is allowed");
    }
    let Some(name) = parameter.text("type") else { return };
    for (index, _) in values.iter().enumerate().filter(|(_, value)| !is_of_type(value, name)) {
        let mut pointer = parameter.at("enum");
        push_index(&mut pointer, index);
        draft.report(&rules::PARAMETER_ENUM, pointer, format!("the value is not of the type {name}"));
    }
}

fn check_default(parameter: &Object<'_>, with_pattern: bool, draft: &mut Draft<'_>) {
    let Some(default) = parameter.map.get("default") else { return };
    let wrong_type = parameter.text("type").filter(|name| !is_of_type(default, name));
    let is_outside = |key: &str, compare: fn(f64, f64) -> bool| {
        let limit = number(parameter, key).zip(default.as_f64());
        limit.is_some_and(|(limit, default)| compare(default, limit))
    };
    let text = if let Some(name) = wrong_type {
        format!("`default` is not of the type {name}")
    } else if parameter.list("enum").is_some_and(|values| !values.contains(default)) {
        "`default` is not in `enum`".to_owned()
    } else if is_outside("minimum", |default, limit| default < limit) {
        "`default` is below `minimum`".to_owned()
    } else if is_outside("maximum", |default, limit| default > limit) {
        "`default` is above `maximum`".to_owned()
    } else if with_pattern && mismatches(parameter, default) {
        "`default` does not match `pattern`".to_owned()
    } else {
        return;
    };
    draft.report(&rules::PARAMETER_DEFAULT, parameter.at("default"), text);
}

fn mismatches(parameter: &Object<'_>, default: &Value) -> bool {
    let text = default.as_str();
    let admitted =
        parameter.text("pattern").zip(text).and_then(|(pattern, text)| pattern::admits(pattern, text));
    admitted == Some(false)
}

fn number(parameter: &Object<'_>, key: &str) -> Option<f64> {
    parameter.value(key).and_then(Value::as_f64)
}
