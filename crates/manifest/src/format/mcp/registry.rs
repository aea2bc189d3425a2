//! Requirements of server cards and of the MCP registry's server.json for the objects below their roots.

use super::rules;
use crate::check::is_semver;
use crate::draft::Draft;
use crate::object::Object;
use crate::rule::Shape;
use crate::walk::List;

/// Maximum number of elements of one list that are checked.
const ITEMS_MAX: usize = 200;

/// Checks the parts of an entry of the registry.
pub(super) fn check(root: &Object<'_>, draft: &mut Draft<'_>) {
    check_parts(root, &rules::ICON, draft);
    draft.each(root, "packages", &list(), check_package);
}

/// Checks version, repository, icons and remotes. `Remote` itself is checked where remotes are read.
pub(super) fn check_parts(root: &Object<'_>, icon: &Shape, draft: &mut Draft<'_>) {
    if root.text("version").is_some_and(|version| !is_semver(version)) {
        draft.report_rule(&rules::VERSION, root.at("version"));
    }
    draft.checked(root, "repository", &rules::REPOSITORY);
    draft.each(root, "icons", &list(), |found, draft| check_icon(found, icon, draft));
    draft.each(root, "remotes", &list(), |remote, draft| {
        let url = remote.text("url");
        let absolute = |url: &str| ["https://", "http://", "{"].iter().any(|start| url.starts_with(start));
        if url.is_some_and(|url| !absolute(url)) {
            draft.report_rule(&rules::REMOTE_URL, remote.at("url"));
        }
        draft.check(remote, &rules::REMOTE_INPUTS);
        check_inputs(remote, "headers", draft);
        let variables = remote.object("variables");
        if let Some(variables) = &variables {
            check_variables(variables, draft);
        }
        let is_known = |name: &str| variables.as_ref().is_some_and(|known| known.has(name));
        if let Some(name) = url.and_then(|url| placeholders(url).find(|name| !is_known(name))) {
            let text = format!("`{{{name}}}` is not in `variables`");
            draft.report(&rules::UNKNOWN_VARIABLE, remote.at("url"), text);
        }
    });
}

const fn list() -> List {
    List::UNCHECKED.mistyped(&rules::NOT_OBJECT).at_most(ITEMS_MAX)
}

/// The names in the braces of a template.
fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}

fn check_icon(icon: &Object<'_>, shape: &Shape, draft: &mut Draft<'_>) {
    draft.check(icon, shape);
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
    if package.text("registryType") == Some("mcpb") && !package.has("fileSha256") {
        draft.report_rule(&rules::NO_HASH, package.pointer.clone());
    }
    if package.has("runtimeArguments") && !package.has("runtimeHint") {
        draft.report_rule(&rules::NO_RUNTIME, package.pointer.clone());
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
    check_value(input, draft);
    if let Some(variables) = input.object("variables") {
        check_variables(&variables, draft);
    }
}

fn check_variables(variables: &Object<'_>, draft: &mut Draft<'_>) {
    for (name, variable) in variables.map.iter().take(ITEMS_MAX) {
        if let Some(variable) = draft.object(variable, variables.at(name), &rules::NOT_OBJECT) {
            check_value(&variable, draft);
        }
    }
}

fn check_value(input: &Object<'_>, draft: &mut Draft<'_>) {
    draft.check(input, &rules::INPUT);
    let (choices, default) = (input.texts("choices"), input.text("default"));
    if !choices.is_empty() && default.is_some_and(|default| !choices.contains(&default)) {
        draft.report_rule(&rules::DEFAULT, input.at("default"));
    }
    let published = ["value", "default"].into_iter().find(|key| input.text(key).is_some_and(is_literal));
    if let Some(key) = published.filter(|_| input.flag("isSecret") == Some(true)) {
        draft.report_rule(&rules::PUBLISHED_SECRET, input.at(key));
    }
}

/// Whether a value is complete without variables.
fn is_literal(value: &str) -> bool {
    !value.contains('{')
}
