//! Calls whose method and path are on two lines below one heading: `- Endpoint: /rooms` and `- Method: GET`, in any order.

use url::Url;

use super::{call_prices, listed_calls};
use crate::address::{self, Address};
use crate::draft::{self, Draft};
use crate::model::Capability;
use crate::text;

/// Maximum bytes of a line that is one part of a call.
const LINE_BYTES_MAX: usize = 400;

/// Joins the parts of calls, line by line.
#[derive(Debug, Default)]
pub(crate) struct PairedCalls {
    /// The last heading, if it has a single subject: it is the name of the call below it.
    title: Option<String>,
    method: Option<String>,
    path: Option<String>,
    /// Whether the last two parts form a call.
    is_complete: bool,
    is_code: bool,
}

impl PairedCalls {
    /// Reads a line, and returns whether it is a part of a call.
    pub(crate) fn read_line(&mut self, line: &str, base: Option<&Url>, draft: &mut Draft<'_>) -> bool {
        if line.starts_with("```") {
            self.is_code = !self.is_code;
        }
        if line.starts_with('#') && !self.is_code {
            let title = call_prices::title_of_heading(line).map(str::to_owned);
            *self = Self { title, ..Self::default() };
            return false;
        }
        if self.is_code || line.len() > LINE_BYTES_MAX {
            return false;
        }
        let Some((label, value)) = line.trim_start_matches(['-', '*', '+', ' ']).split_once(':') else {
            return false;
        };
        let label = label.trim_matches(['*', '`', ' ']);
        let value = value.trim_matches(['*', '`', ' ']);
        let is = |known: &[&str]| known.iter().any(|known| label.eq_ignore_ascii_case(known));
        if is(&["description"]) && self.is_complete {
            return self.describe(value, draft);
        }
        if is(&["method", "http method", "verb"]) && address::is_method(value) {
            self.method = Some(value.to_owned());
        } else if is(&["endpoint", "path", "route", "url"]) && is_address(value) {
            self.path = Some(value.to_owned());
        } else {
            return false;
        }
        // An address without a method may be the address of a page.
        self.is_complete = self.join(base, draft);
        self.is_complete
    }

    /// Adds the call if both of its parts are known.
    fn join(&mut self, base: Option<&Url>, draft: &mut Draft<'_>) -> bool {
        let (Some(method), Some(path)) = (&self.method, &self.path) else { return false };
        let call = [method, " ", path].concat();
        let address = listed_calls::resolve(path, base, draft);
        // Below a heading about endpoints, the address alone was already read as a call.
        let is_same =
            |known: &&mut Capability| known.invocation.endpoint() == address.as_ref().map(Address::as_str);
        let is_open = |known: &&mut Capability| known.invocation.method.is_none();
        if let Some(known) = draft.manifest.capabilities.last_mut().filter(is_same).filter(is_open) {
            known.invocation.method.clone_from(&self.method);
            (self.method, self.path) = (None, None);
            return true;
        }
        (self.method, self.path) = (None, None);
        let title = self.title.take().filter(|title| !title.contains([':', '/', '[']));
        let item = title.map_or_else(|| ["- ", &call].concat(), |title| ["- ", &title, ": ", &call].concat());
        listed_calls::read(&item, base, draft)
    }

    fn describe(&mut self, value: &str, draft: &mut Draft<'_>) -> bool {
        self.is_complete = false;
        let last: Option<&mut Capability> = draft.manifest.capabilities.last_mut();
        if let Some(call) = last {
            let described = text::capped(value, draft::DESCRIPTION_CHARS_MAX);
            call.description = call.description.take().or_else(|| draft::description(Some(described)));
        }
        true
    }
}

fn is_address(value: &str) -> bool {
    (value.starts_with('/') || value.starts_with("https://")) && !value.contains(char::is_whitespace)
}
