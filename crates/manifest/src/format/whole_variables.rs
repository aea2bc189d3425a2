//! Replaces spaces in the names of address variables.

use std::borrow::Cow;

/// Replaces the spaces in the names of address variables of a text: `?q={error text}` becomes `?q={error_text}`.
pub(crate) fn with_whole_variables(text: &str) -> Cow<'_, str> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((at, inner, after)) = next_variable(rest) {
        whole.push_str(rest.get(..at).unwrap_or_default());
        whole.push_str(&inner.replace(' ', "_"));
        rest = after;
    }
    if whole.is_empty() { Cow::Borrowed(text) } else { Cow::Owned([&whole, rest].concat()) }
}

/// The next variable with spaces: its position, the text between the braces, and the rest from the closing brace on.
fn next_variable(text: &str) -> Option<(usize, &str, &str)> {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || "_- ".contains(letter);
    text.match_indices('{').find_map(|(open, _)| {
        let leads = text.get(..open)?.ends_with(['=', '/']);
        let near = text.get(open + 1..)?;
        let end = near.bytes().take(VARIABLE_BYTES_MAX).position(|byte| byte == b'}').filter(|_| leads)?;
        let inner = near.get(..end)?;
        (inner.contains(' ') && inner.chars().all(is_word))
            .then(|| (open + 1, inner, near.get(end..).unwrap_or_default()))
    })
}

/// Maximum bytes of the name of a variable in an address.
const VARIABLE_BYTES_MAX: usize = 40;
