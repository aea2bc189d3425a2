//! Names of parameters in lists and texts.

use super::Presence;

/// Whether the names of a list without a question mark are required: beside names that have one, they are.
pub(super) fn presence_of_names<'n>(mut names: impl Iterator<Item = &'n str>) -> Presence {
    if names.any(|name| name.ends_with('?')) { Presence::Required } else { Presence::Optional }
}

/// The names in a text that lists two or more, or that states types: `q, limit`, `orders: Order[]`.
pub(super) fn names_in(text: &str) -> Vec<(&str, Option<&str>)> {
    let is_name = |name: &&str| {
        let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '[' | ']');
        let bare = name.trim_end_matches('?');
        !bare.is_empty() && bare.chars().all(plain)
    };
    let names = text.split(',').take(NAMES_MAX).map(str::trim);
    let names: Vec<(&str, Option<&str>)> = names
        .map(|entry| match entry.split_once(": ") {
            Some((name, type_name)) => (name, Some(type_name.trim_start())),
            None => (entry, None),
        })
        .collect();
    let are_names =
        names.iter().all(|(name, type_name)| is_name(name) && type_name.is_none_or(|it| is_name(&it)));
    let is_list = names.len() > 1 || names.iter().any(|(_, type_name)| type_name.is_some());
    if is_list && are_names { names } else { Vec::new() }
}

/// Maximum number of names of parameters in one text that are read.
const NAMES_MAX: usize = 100;
