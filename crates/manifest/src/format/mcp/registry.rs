//! Requirements of the MCP registry's server.json for the objects below its root.

use super::rules;
use crate::draft::Draft;
use crate::object::Object;
use crate::walk::List;

/// Elements of one list that are checked.
const ITEMS_MAX: usize = 200;

/// Checks repository, icons, packages and remotes. `Remote` itself is checked where remotes are read.
pub(super) fn check(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.checked(root, "repository", &rules::REPOSITORY);
    draft.each(root, "icons", &list(), check_icon);
    draft.each(root, "packages", &list(), check_package);
    draft.each(root, "remotes", &list(), |remote, draft| {
        let url = remote.text("url");
        let absolute = |url: &str| ["https://", "http://", "{"].iter().any(|start| url.starts_with(start));
        if url.is_some_and(|url| !absolute(url)) {
            draft.report_rule(&rules::REMOTE_URL, remote.at("url"));
        }
        check_inputs(remote, "headers", draft);
        if let Some(variables) = remote.object("variables") {
            check_variables(&variables, draft);
        }
    });
}

const fn list() -> List {
    List::UNCHECKED.mistyped(&rules::NOT_OBJECT).at_most(ITEMS_MAX)
}

fn check_icon(icon: &Object<'_>, draft: &mut Draft<'_>) {
    draft.check(icon, &rules::ICON);
    let is_size = |size: &&str| {
        let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        *size == "any" || size.split_once('x').is_some_and(|(width, height)| number(width) && number(height))
    };
    if !icon.texts("sizes").iter().all(is_size) {
        draft.report_rule(&rules::ICON_SIZE, icon.at("sizes"));
    }
}

fn check_package(package: &Object<'_>, draft: &mut Draft<'_>) {
    draft.check(package, &rules::PACKAGE);
    if let Some(transport) = draft.checked(package, "transport", &rules::TRANSPORT) {
        let is_http = matches!(transport.text("type"), Some("streamable-http" | "sse"));
        if is_http && !transport.has("url") {
            draft.report_rule(&rules::NO_TRANSPORT_URL, transport.pointer.clone());
        }
        check_inputs(&transport, "headers", draft);
    }
    for key in ["runtimeArguments", "packageArguments"] {
        draft.each(package, key, &list(), check_argument);
    }
    check_inputs(package, "environmentVariables", draft);
}

fn check_argument(argument: &Object<'_>, draft: &mut Draft<'_>) {
    draft.check(argument, &rules::ARGUMENT);
    check_input(argument, draft);
    match argument.text("type") {
        Some("named") if !argument.has("name") => {
            draft.report_rule(&rules::ARGUMENT_NAME, argument.pointer.clone());
        }
        Some("positional") if !argument.has("value") && !argument.has("valueHint") => {
            draft.report_rule(&rules::ARGUMENT_VALUE, argument.pointer.clone());
        }
        _ => {}
    }
}

/// Checks the named inputs of a list.
fn check_inputs(object: &Object<'_>, key: &str, draft: &mut Draft<'_>) {
    draft.each(object, key, &list(), |input, draft| {
        draft.check(input, &rules::KEY_VALUE);
        check_input(input, draft);
    });
}

fn check_input(input: &Object<'_>, draft: &mut Draft<'_>) {
    draft.check(input, &rules::INPUT);
    if let Some(variables) = input.object("variables") {
        check_variables(&variables, draft);
    }
}

fn check_variables(variables: &Object<'_>, draft: &mut Draft<'_>) {
    for (_, variable) in variables.members().take(ITEMS_MAX) {
        draft.check(&variable, &rules::INPUT);
    }
}
