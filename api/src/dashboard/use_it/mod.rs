//! "Use it": text to copy and run for a capability, generated only from its declaration.
//!
//! A request is built once (`call`) from examples (`examples`) or from the form input, and written in several languages (`snippets`).
//! Nothing here sends a request. All publisher text is quoted for the language of its snippet.

mod call;
pub(crate) mod clients;
pub(crate) mod credentials;
mod examples;
pub(crate) mod mcp;
mod snippets;

use manifest::model::{Confirmation, Protocol};
use manifest::{Capability, Manifest, SafetyClass};
use serde_json::{Map, Value};
use store::StoredManifest;

use self::call::Call;
use self::clients::{Client, McpServer};
use self::credentials::Credential;
use super::capability::CapabilityRequest;
use super::schema::{self, Row};
use super::{labels, links};
use crate::answers::caution::{Elsewhere, Money};
use crate::parameters::QueryPairs;
use crate::text;
use crate::tool_export::{self, Refused, ToolShape};

/// Maximum length of the text of one tab, in bytes; a longer definition is linked instead.
const TEXT_BYTES_MAX: usize = 32 * 1_024;
/// Maximum number of fields of the form. A capability with more parameters should be called from a program.
const FIELDS_MAX: usize = 30;
/// Maximum length of a label or an example of the form, in characters.
const LABEL_CHARS_MAX: usize = 40;
/// Prefix of the form's fields in the address of the request.
const FIELD_PREFIX: &str = "v.";

/// One text to copy.
pub(crate) struct Snippet {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) text: Option<String>,
    /// The sentence shown instead of a missing or too long text.
    pub(crate) instead: String,
    /// A note about the text.
    pub(crate) note: String,
    /// Link to the text alone.
    pub(crate) href: Option<String>,
}

/// A field of the form that builds the request.
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) kind: String,
    pub(crate) required: bool,
    pub(crate) example: String,
    pub(crate) value: String,
    pub(crate) choices: Vec<String>,
    /// Whether the value is JSON of an object.
    pub(crate) is_json: bool,
}

pub(crate) struct UseIt {
    /// A sentence that names the other site to which the call is sent.
    pub(crate) elsewhere: Option<String>,
    /// Sentences that a person should read before the call.
    pub(crate) warning: Option<String>,
    pub(crate) credentials_heading: &'static str,
    pub(crate) credentials: Vec<Credential>,
    /// The credentials that are needed but not described.
    pub(crate) credentials_words: Option<String>,
    pub(crate) snippets: Vec<Snippet>,
    /// The tab that is open at first.
    pub(crate) first_tab: &'static str,
    /// A sentence about the MCP server that the document declares; without one, the clients are connected to the one of this registry.
    pub(crate) mcp_words: Option<String>,
    pub(crate) clients: Vec<Client>,
    pub(crate) fields: Vec<Field>,
    /// A sentence about parameters without a field.
    pub(crate) more_fields: Option<String>,
    pub(crate) form_href: String,
    /// Whether values were typed into the form.
    pub(crate) is_filled: bool,
}

/// All that a person needs to use a capability.
pub(crate) fn use_it(
    stored: &StoredManifest,
    capability: &Capability,
    request: &CapabilityRequest<'_>,
    base: &str,
) -> UseIt {
    let typed = request.typed;
    let manifest = &stored.manifest;
    // a larger schema is read as JSON; its examples would be names only
    let parameters = capability.parameters.as_ref().filter(|schema| tool_export::is_small(schema));
    let parameters = parameters.map(tool_export::inlined);
    let rows = parameters.as_ref().or(capability.parameters.as_ref()).map(schema::rows).unwrap_or_default();
    let given = given(&rows, parameters.as_ref(), typed);
    let call = Call::of(manifest, capability, &rows, parameters.as_ref(), &given);
    let (mcp, mcp_words) = match mcp::of_capability(stored, capability) {
        Some((server, words)) => (server, Some(words)),
        None => (McpServer::of_this_registry(base), None),
    };
    let (fields, covered) =
        if call.is_ok() { fields(&rows, parameters.as_ref(), typed) } else { (Vec::new(), 0) };
    UseIt {
        elsewhere: elsewhere(manifest, capability),
        warning: warning(capability),
        credentials_heading: credentials::heading(capability),
        credentials: credentials::of(manifest, capability),
        credentials_words: credentials::undescribed(manifest, capability),
        snippets: all_snippets(stored, capability, &call, request.entry, mcp_words.is_some()),
        first_tab: first_tab(capability),
        clients: clients::of(&mcp),
        mcp_words,
        more_fields: more_fields(rows.get(covered..).unwrap_or_default()),
        fields,
        form_href: format!("{}/try", links::capability(&capability.id)),
        is_filled: !given.is_empty(),
    }
}

/// A warning about the effects of a call; nothing for a call that only reads and moves no money.
fn warning(capability: &Capability) -> Option<String> {
    let safety = &capability.safety;
    let money = Money::of(&capability.name, &capability.semantic_types, safety.class);
    let effect = match safety.class {
        SafetyClass::Read => "",
        SafetyClass::Write => "This call changes data.",
        SafetyClass::Destructive if money.is_some() => "This call may delete or overwrite something.",
        SafetyClass::Destructive => "This call may delete or overwrite something, or spend money.",
        SafetyClass::Irreversible => "This call cannot be undone.",
        SafetyClass::Unknown => {
            "The publisher does not say what this call changes. Assume that it changes data."
        }
    };
    let ask = match (money, safety.confirmation, safety.class) {
        (Some(money), ..) => format!(" {}", money.warning()),
        (None, Confirmation::Required, _) => " Ask the person for permission before each call.".to_owned(),
        (None, _, SafetyClass::Destructive | SafetyClass::Irreversible) => {
            " Ask the person for permission first, although the publisher does not require it.".to_owned()
        }
        (None, Confirmation::Recommended, _) => {
            " The publisher recommends to ask the person first.".to_owned()
        }
        (None, Confirmation::None, _) => String::new(),
    };
    let words = format!("{effect}{ask}");
    (!words.is_empty()).then(|| words.trim_start().to_owned())
}

/// Where the call goes, if not to the site that declares it.
fn elsewhere(manifest: &Manifest, capability: &Capability) -> Option<String> {
    let site = manifest.url.site();
    let address = capability.invocation.endpoint();
    Some(match Elsewhere::of(manifest.format(), &capability.native_id, address, &site)? {
        Elsewhere::Calls(other) => format!("This call goes to {other}, not to {site}."),
        Elsewhere::Lists(other) => format!("This is an entry about {other} in a catalog of {site}."),
    })
}

/// The way to connect a server for its tools, whose requests need a session; else a request.
fn first_tab(capability: &Capability) -> &'static str {
    if capability.invocation.protocol == Some(Protocol::Mcp) { "mcp" } else { "curl" }
}

fn all_snippets(
    stored: &StoredManifest,
    capability: &Capability,
    call: &Result<Call, String>,
    entry: &Value,
    is_own_mcp: bool,
) -> Vec<Snippet> {
    let of_mcp = if is_own_mcp {
        "For programs that take definitions of tools. A client that is connected to the server of the site reads the server's own \
         definitions instead, and asks you to sign in if it needs to."
    } else {
        "For an MCP server of your own. The server of agentdex does not list this tool; its tool get_capability returns this \
         definition."
    };

    let mut all = vec![
        code("curl", "curl", call, snippets::curl),
        code("python", "Python", call, snippets::python),
        code("typescript", "TypeScript", call, snippets::typescript),
    ];
    for (shape, id, name, note) in [
        (ToolShape::Mcp, "mcp", "MCP", of_mcp),
        (ToolShape::OpenAi, "openai", "OpenAI", "For \"tools\" of the chat completions and responses API."),
        (ToolShape::Anthropic, "anthropic", "Anthropic", "For \"tools\" of the messages API."),
        (ToolShape::OpenApi, "openapi", "OpenAPI", "A whole OpenAPI 3.1 document with this one operation."),
    ] {
        all.push(definition(stored, capability, shape, (id, name, note)));
    }
    all.push(ard(entry));
    all
}

fn code(
    id: &'static str,
    name: &'static str,
    call: &Result<Call, String>,
    write: fn(&Call) -> String,
) -> Snippet {
    let snippet = |text, instead| Snippet { id, name, text, instead, note: String::new(), href: None };
    match call {
        Ok(call) => {
            let text = Some(copyable(&write(call))).filter(|text| text.len() <= TEXT_BYTES_MAX);
            snippet(text, call::TOO_LONG.to_owned())
        }
        Err(why) => snippet(None, why.clone()),
    }
}

/// Makes a text safe to paste into a terminal or an editor: control characters and characters that reorder text are escaped as in JSON. The
/// string literals of the languages decode them to the same characters. Line breaks are kept.
fn copyable(text: &str) -> String {
    settings::escape::json(text).into_owned()
}

fn definition(
    stored: &StoredManifest,
    capability: &Capability,
    shape: ToolShape,
    (id, name, note): (&'static str, &'static str, &'static str),
) -> Snippet {
    let href = format!("{}/tool?as={}", links::capability(&capability.id), shape.as_str());
    let snippet = |text, instead, href| Snippet { id, name, text, instead, note: note.to_owned(), href };
    match tool_export::compile(stored.into(), capability, shape) {
        Ok(tool) => {
            let text = serde_json::to_string_pretty(&tool.definition).ok().map(|text| copyable(&text));
            let text = text.filter(|text| text.len() <= TEXT_BYTES_MAX);
            snippet(text, "The definition is too long for this page.".to_owned(), Some(href))
        }
        Err(refused) => snippet(None, no_definition(&refused), None),
    }
}

/// Why a tab has no definition, and which tab has one.
fn no_definition(refused: &Refused) -> String {
    match refused {
        Refused::NotHttp { protocol } => format!(
            "It is called over {protocol}, which an OpenAPI document cannot express. Use the tab MCP, OpenAI or Anthropic."
        ),
        other => format!("There is no tool definition: {other}."),
    }
}

fn ard(entry: &Value) -> Snippet {
    let text = serde_json::to_string_pretty(entry)
        .ok()
        .map(|text| copyable(&text))
        .filter(|text| text.len() <= TEXT_BYTES_MAX);
    Snippet {
        id: "ard",
        name: "ARD",
        text,
        instead: "The entry is too long for this page.".to_owned(),
        note: "An entry for the \"entries\" of an ard.json (Agentic Resource Discovery 0.91).".to_owned(),
        href: None,
    }
}

fn property<'a>(parameters: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    parameters?.get("properties")?.get(name)
}

/// The members of an object parameter, which have a field each.
fn members(row: &Row, parameters: Option<&Value>) -> Vec<Row> {
    property(parameters, &row.name).map(schema::rows).unwrap_or_default()
}

/// The typed values, in the types that the schema states.
fn given(rows: &[Row], parameters: Option<&Value>, typed: &QueryPairs) -> Map<String, Value> {
    let typed = |name: &str| {
        let text = typed.raw(&format!("{FIELD_PREFIX}{name}"));
        text.filter(|text| !text.trim().is_empty())
    };
    let values = rows.iter().take(FIELDS_MAX).filter_map(|row| {
        let schema = property(parameters, &row.name);
        if let Some(text) = typed(&row.name) {
            return Some((row.name.clone(), examples::typed(schema, text)));
        }
        let of_member = |member: &Row| {
            let text = typed(&format!("{}.{}", row.name, member.name))?;
            Some((member.name.clone(), examples::typed(property(schema, &member.name), text)))
        };
        let given: Map<String, Value> =
            members(row, parameters).iter().take(FIELDS_MAX).filter_map(of_member).collect();
        if given.is_empty() {
            return None;
        }
        // the other required members keep their examples
        let mut value = examples::of(&row.name, schema);
        value.as_object_mut()?.extend(given);
        Some((row.name.clone(), value))
    });
    values.collect()
}

/// A field for each parameter, and for each member of an object; and the number of parameters that have one.
fn fields(rows: &[Row], parameters: Option<&Value>, typed: &QueryPairs) -> (Vec<Field>, usize) {
    let field = |path: &str, row: &Row, schema: Option<&Value>| {
        let example = examples::of(&row.name, schema);
        let name = format!("{FIELD_PREFIX}{path}");
        Field {
            value: typed.raw(&name).unwrap_or_default().to_owned(),
            name,
            label: text::one_line(path, LABEL_CHARS_MAX),
            kind: row.kind.clone(),
            required: row.required,
            is_json: example.is_object(),
            example: text::one_line(&examples::plain(&example), LABEL_CHARS_MAX),
            choices: row.choices.clone(),
        }
    };
    let (mut fields, mut covered) = (Vec::new(), 0);
    for row in rows {
        let schema = property(parameters, &row.name);
        let members = members(row, parameters);
        if fields.len() + members.len().max(1) > FIELDS_MAX {
            break;
        }
        if members.is_empty() {
            fields.push(field(&row.name, row, schema));
        }
        fields.extend(members.iter().map(|member| {
            let shown = Row { required: row.required && member.required, ..member.clone() };
            field(&format!("{}.{}", row.name, member.name), &shown, property(schema, &member.name))
        }));
        covered += 1;
    }
    (fields, covered)
}

/// The request contains the required parameters without a field, with their examples.
fn more_fields(rows: &[Row]) -> Option<String> {
    let required = rows.iter().filter(|row| row.required).count() as u64;
    let more = labels::counted(rows.len() as u64, "more parameter has", "more parameters have");
    let of_required = match required {
        0 => String::new(),
        1 => " The request contains the required one with its example.".to_owned(),
        many => format!(" The request contains the {many} required ones with their examples."),
    };
    (!rows.is_empty()).then(|| format!("{more} no field here.{of_required}"))
}

#[cfg(test)]
mod tests;
