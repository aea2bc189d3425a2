//! Elements of a list of endpoints whose type says that they are servers, documents or accounts instead of calls:
//! `{"type": "mcp", "url": …, "tools": […]}`, `{"type": "wallet", "address": "0x…"}`.
//!
//! The addresses of servers and documents are read in the same way as in any document.

use super::lists::{self, ListKind};
use super::reader::Reader;
use super::{List, Names};
use crate::model::Payment;
use crate::object::Object;
use crate::text;

/// Maximum bytes of the account, and of the network, that are kept.
const ACCOUNT_BYTES_MAX: usize = 200;

/// The type of an element that is not a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    McpServer,
    /// An agent or a document, whose address is a link or an interface.
    Address,
    Account,
}

impl Typed {
    /// The type of an element without a method, if it names a server, a document or an account.
    pub(super) fn of(kind: ListKind, object: &Object<'_>) -> Option<Self> {
        if names_transport(object) && (object.has("url") || object.has("endpoint")) {
            return Some(Self::McpServer);
        }
        let is_call = ["method", "methods", "path", "parameters", "params"].iter().any(|key| object.has(key));
        if is_call || !matches!(kind.key(), "endpoints" | "interfaces" | "apis") {
            return None;
        }
        let named = object.text_of(&["type", "kind"]).filter(|_| !object.has("name"));
        match text::folded_words(text::capped(named?, ACCOUNT_BYTES_MAX)).as_str() {
            "mcp" | "mcp server" if object.has("url") || object.has("endpoint") => Some(Self::McpServer),
            "a2a" | "openapi" | "swagger" | "docs" | "documentation" | "llms" | "llms txt" | "website" => {
                Some(Self::Address)
            }
            "wallet" | "account" if object.text("address").is_some() => Some(Self::Account),
            _ => None,
        }
    }
}

/// Whether an element has a transport that is specific to MCP, even next to a method: `"transport": "streamable-http"`.
fn names_transport(object: &Object<'_>) -> bool {
    let known = ["streamable-http", "streamable_http", "streamableHttp", "http+sse"];
    object.text("transport").is_some_and(|transport| known.contains(&transport))
}

impl Reader<'_, '_> {
    /// Reads an element whose type says what it is: the tools of a server, or the account.
    pub(super) fn read_typed(&mut self, typed: Typed, list: List<'_>, object: &Object<'_>) {
        match typed {
            Typed::McpServer => {
                let context = list.context.at_server(object, self.draft);
                if let Some(tools) =
                    object.value("tools").filter(|tools| tools.is_array() || tools.is_object())
                {
                    let (kind, depth) = (ListKind::of_tools(), list.depth + 1);
                    let tools_list = List { kind, depth, names: Names::Kept, context: &context };
                    self.read_list(tools_list, tools, &object.at("tools"));
                }
            }
            Typed::Account => {
                let capped = |text: &str| text::capped(text, ACCOUNT_BYTES_MAX).to_owned();
                let chain = ["chainId", "chain_id"].iter().find_map(|key| object.whole(key));
                let network = object.text_of(&["network", "chain"]).map(capped);
                let payment = Payment {
                    network: network.or_else(|| Some(format!("eip155:{}", chain?))),
                    address: object.text("address").map(capped),
                    ..Payment::default()
                };
                if self.draft.manifest.payments.len() < lists::ACCOUNTS_MAX
                    && !self.draft.manifest.payments.contains(&payment)
                {
                    self.draft.keep(payment);
                }
            }
            Typed::Address => {}
        }
    }
}
