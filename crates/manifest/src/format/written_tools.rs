//! Tools in plain text: a name with arguments or a price, such as `find_room(city)` or `book ($2)`.

use serde_json::{Map, Value};

use crate::draft::Draft;
use crate::format::lenient;
use crate::model::{Capability, CapabilityKind, Invocation, Payment, Protocol};
use crate::schema::{Location, Parameters, Presence};

/// Maximum bytes of the name of a tool or an argument: twice the longest published tool name.
const NAME_BYTES_MAX: usize = 64;
/// Maximum number of arguments that are read from one signature.
pub(super) const ARGUMENTS_MAX: usize = 32;

#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) arguments: Vec<String>,
    pub(super) price: Option<Payment>,
    /// The address of the server, if the line or the heading of the list names it.
    pub(super) server: Option<String>,
}

impl Tool {
    pub(super) fn capability(self, url: Option<String>, draft: &mut Draft<'_>) -> Capability {
        let mut capability = draft.capability(CapabilityKind::Tool, &self.name, "", String::new());
        capability.description = self.description;
        capability.price = self.price;
        let mut parameters = Parameters::default();
        for name in &self.arguments {
            let schema = Map::from_iter([("type".to_owned(), Value::from("string"))]);
            let location = Location::of(&Invocation::default(), name);
            parameters.add(name, schema, location, Presence::Optional);
        }
        capability.parameters = parameters.finish();
        capability.invocation.protocol = Some(Protocol::Mcp);
        capability.invocation.native = Some(self.name);
        capability.invocation.url = url;
        capability
    }
}

/// `name`, `name $2 USDC` or `name (1 USDC)`.
pub(super) fn listed_tool(part: &str) -> Option<Tool> {
    let (mut tool, rest) = named_tool(part, true)?;
    let price = rest.trim();
    if !price.is_empty() {
        tool.price = Some(price_of(price)?);
    }
    Some(tool)
}

/// The tool that a text begins with, if its name cannot be a word of a sentence.
pub(super) fn tool_of(text: &str) -> Option<(Tool, &str)> {
    named_tool(text, false)
}

/// The tool that a text begins with, with its arguments or its price in brackets, and the rest of the text.
pub(super) fn named_tool(text: &str, may_be_word: bool) -> Option<(Tool, &str)> {
    let marked = text.trim_start();
    let bare = marked.trim_start_matches(['`', '*']);
    let is_marked = bare.len() < marked.len();
    let is_plain = |letter: char| {
        letter.is_ascii_lowercase()
            || letter.is_ascii_digit()
            || "_-".contains(letter)
            || (is_marked && letter.is_ascii_uppercase())
    };
    let end = bare.find(|letter: char| !is_plain(letter)).unwrap_or(bare.len());
    let (name, rest) = bare.split_at_checked(end)?;
    // A word of a sentence is not a name. A name has an underscore, or is marked as code.
    let is_name = may_be_word || name.contains('_') || marked.starts_with('`');
    let begins = name.starts_with(|letter: char| letter.is_ascii_lowercase());
    if !is_name || !begins || name.len() > NAME_BYTES_MAX {
        return None;
    }
    let mut tool =
        Tool { name: name.to_owned(), description: None, arguments: Vec::new(), price: None, server: None };
    let rest = rest.trim_start_matches(['`', '*']);
    let bracket = rest.trim_start().strip_prefix('(').and_then(|inner| inner.split_once(')'));
    let Some((inner, after)) = bracket else { return Some((tool, rest)) };
    tool.price = price_of(inner);
    if tool.price.is_none() {
        tool.arguments = arguments(inner);
    }
    Some((tool, after.trim_start_matches(['`', '*'])))
}

/// The names of the arguments of a signature; empty if the brackets contain anything else.
pub(super) fn arguments(inner: &str) -> Vec<String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let names = inner.split(',').take(ARGUMENTS_MAX).map(|argument| {
        let name = argument.split([':', '=']).next().unwrap_or_default().trim().trim_end_matches('?');
        let is_name = !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain);
        is_name.then(|| name.to_owned())
    });
    names.collect::<Option<Vec<String>>>().unwrap_or_default()
}

/// Parses a price: an amount, with a currency before or after it.
fn price_of(text: &str) -> Option<Payment> {
    let text = text.trim_matches(['(', ')', ' ']);
    let has_amount =
        text.trim_start_matches(['$', '\u{20ac}', '\u{a3}']).starts_with(|l: char| l.is_ascii_digit());
    let has_currency = text.starts_with(['$', '\u{20ac}', '\u{a3}'])
        || text
            .split_whitespace()
            .nth(1)
            .is_some_and(|unit| unit.bytes().all(|byte| byte.is_ascii_uppercase()));
    (has_amount && has_currency).then(|| lenient::price(&Value::from(text))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_arguments_and_prices_of_tools() {
        let of = |text| tool_of(text).map(|(tool, _)| (tool.arguments, tool.price.is_some()));
        assert_eq!(
            of("`get_quote(room, nights?)`"),
            Some((vec!["room".to_owned(), "nights".to_owned()], false))
        );
        assert_eq!(of("get_quote ($2 USDC): quotes"), Some((Vec::new(), true)));
        assert_eq!(of("get_quote (for members only)"), Some((Vec::new(), false)));
        assert_eq!(of("quotes a room"), None);
    }
}
