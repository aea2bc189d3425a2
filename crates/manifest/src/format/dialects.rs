//! The table of dialects: one row for each format. A new dialect needs a folder, fixtures and a row in this table.
//!
//! Detection tries the markers in the order of the rows, and the first hit decides. The order has these reasons: at agent.json, AWP comes
//! before ATP, and ATP before all others; ERC-8004 comes before A2A because registrations are served as cards; Wildcard comes before other
//! formats with `flows`; an MCP client configuration must not have skills.

use super::detect::candidate::Marker;
use super::{
    a2a, acp, agents_json, agents_json_jm, agents_json_lt, agents_txt, ahp, ai_plugin, ai_txt, air, anp,
    api_catalog, ard, arws, atp, awas, awp, erc8004, facts, generic, list, llms_txt, manifest_v1, mcp,
    openapi, pointer, skills_index, ucp, w2a, web_bot_auth, webmcp, wildcard, woa, x402,
};
use crate::document::Body;
use crate::draft::Draft;
use crate::model::Format;
use crate::object::Object;
use crate::rule::FindingTable;

/// One dialect.
pub(crate) struct Dialect {
    pub(crate) format: Format,
    /// The name for people.
    pub(crate) label: &'static str,
    pub(crate) read: Read,
    /// Paths that the specification defines, the default first.
    pub(crate) paths: &'static [&'static str],
    pub(crate) markers: &'static [Marker],
    pub(crate) findings: &'static [&'static FindingTable],
    /// The registered media type, or the syntax of a text. Dialects without one get a vendor type.
    pub(crate) media_type: Option<&'static str>,
}

/// How a document of the dialect is read.
#[derive(Clone, Copy)]
pub(crate) enum Read {
    /// From the object at the root; a document without one declares nothing.
    Object(fn(&Object<'_>, &mut Draft<'_>)),
    /// From text alone.
    Text(fn(&str, &mut Draft<'_>)),
    /// From either syntax.
    Body(fn(&Body<'_>, &mut Draft<'_>)),
    /// Not read.
    Nothing,
}

/// Declares the rows: the lookup is a match over all formats, so that the compiler names one without a row.
macro_rules! dialects {
    ($($format:ident = $label:literal, $read:expr, { $($field:ident: $value:expr),* $(,)? };)*) => {
        /// Every dialect in the order in which detection tries them.
        pub(crate) const DIALECTS: [&Dialect; Format::ALL.len()] = [$(dialect(Format::$format)),*];

        /// The row of a format.
        #[expect(clippy::needless_update, reason = "a row may state every field")]
        pub(crate) const fn dialect(format: Format) -> &'static Dialect {
            match format {
                $(Format::$format => const {
                    &Dialect { format: Format::$format, label: $label, read: $read, $($field: $value,)* ..EMPTY }
                },)*
            }
        }
    };
}

const EMPTY: Dialect = Dialect {
    format: Format::Opaque,
    label: "",
    read: Read::Nothing,
    paths: &[],
    markers: &[],
    findings: &[],
    media_type: None,
};

dialects! {
    OpenApi = "OpenAPI", Read::Body(openapi::read), {
        paths: &["/openapi.json"], markers: openapi::MARKERS, findings: &[&openapi::FINDINGS],
        media_type: Some("application/vnd.oai.openapi+json"),
    };
    ApiCatalog = "API catalog", Read::Object(api_catalog::read), {
        markers: api_catalog::MARKERS, findings: &[&api_catalog::FINDINGS],
        media_type: Some("application/linkset+json"),
    };
    Ard = "ARD catalog", Read::Object(ard::read), {
        paths: &["/.well-known/ai-catalog.json"], markers: ard::MARKERS, findings: &[&ard::FINDINGS],
        media_type: Some("application/ai-catalog+json"),
    };
    Wildcard = "Wildcard agents.json", Read::Object(wildcard::read), {
        markers: wildcard::MARKERS, findings: &[&wildcard::FINDINGS],
    };
    Awp = "AWP", Read::Object(awp::read), {
        paths: &["/agent.json"], markers: awp::MARKERS, findings: &[&awp::FINDINGS],
    };
    Atp = "ATP", Read::Object(atp::read), {
        paths: &["/.well-known/agent.json"], markers: atp::MARKERS, findings: &[&atp::FINDINGS],
    };
    Woa = "WoA", Read::Object(woa::read), {
        paths: &["/.well-known/woa.json"], markers: woa::MARKERS, findings: &[&woa::FINDINGS],
        media_type: Some("application/woa+json"),
    };
    Ahp = "AHP", Read::Object(ahp::read), { markers: ahp::MARKERS, findings: &[&ahp::FINDINGS] };
    W2a = "W2A", Read::Object(w2a::read), { markers: w2a::MARKERS, findings: &[&w2a::FINDINGS] };
    AgentsJson = "agents.json", Read::Object(agents_json::read), {
        paths: &["/.well-known/agents.json"], markers: agents_json::MARKERS, findings: &[&agents_json::FINDINGS],
    };
    AgentsTxt = "agents.txt", Read::Body(agents_txt::read), {
        paths: &["/agents.txt"], markers: agents_txt::MARKERS, findings: agents_txt::FINDING_TABLES,
        media_type: Some("text/vnd.agentdex.agents-txt"),
    };
    Facts = "Agent facts", Read::Object(facts::read), { markers: facts::MARKERS, findings: &[&facts::FINDINGS] };
    Air = "AIR", Read::Object(air::read), { markers: air::MARKERS, findings: &[&air::FINDINGS] };
    Ucp = "UCP", Read::Object(ucp::read), { markers: ucp::MARKERS, findings: &[&ucp::FINDINGS] };
    X402 = "x402", Read::Object(x402::read), { markers: x402::MARKERS, findings: &[&x402::FINDINGS] };
    Erc8004 = "ERC-8004", Read::Object(erc8004::read), {
        markers: erc8004::MARKERS, findings: &[&erc8004::FINDINGS],
    };
    AiPlugin = "AI plugin", Read::Object(ai_plugin::read), {
        paths: &["/.well-known/ai-plugin.json"], markers: ai_plugin::MARKERS, findings: &[&ai_plugin::FINDINGS],
    };
    Anp = "ANP", Read::Object(anp::read), { markers: anp::MARKERS, findings: &[&anp::FINDINGS] };
    ManifestV1 = "Agent manifest v1", Read::Object(manifest_v1::read), {
        markers: manifest_v1::MARKERS, findings: &[&manifest_v1::FINDINGS],
    };
    McpConfig = "MCP client config", Read::Object(mcp::read_config), { markers: mcp::CONFIG_MARKERS };
    McpRegistry = "MCP registry entry", Read::Object(mcp::read), { markers: mcp::REGISTRY_MARKERS };
    McpCard = "MCP server card", Read::Object(mcp::read), {
        paths: &["/.well-known/mcp/server-card.json"], markers: mcp::CARD_MARKERS, findings: &[&mcp::FINDINGS],
        media_type: Some("application/mcp-server-card+json"),
    };
    WebBotAuth = "Web Bot Auth", Read::Object(web_bot_auth::read), {
        markers: web_bot_auth::MARKERS, findings: &[&web_bot_auth::FINDINGS],
    };
    SkillsIndex = "Skills index", Read::Object(skills_index::read), {
        paths: &["/.well-known/agent-skills/index.json"], markers: skills_index::MARKERS,
        findings: &[&skills_index::FINDINGS],
    };
    WebMcp = "WebMCP", Read::Object(webmcp::read), { markers: webmcp::MARKERS, findings: &[&webmcp::FINDINGS] };
    A2a = "A2A card", Read::Object(a2a::read), {
        paths: &["/.well-known/agent-card.json"], markers: a2a::MARKERS, findings: a2a::FINDING_TABLES,
        media_type: Some("application/a2a-agent-card+json"),
    };
    Acp = "ACP", Read::Object(acp::read), { markers: acp::MARKERS, findings: &[&acp::FINDINGS] };
    Awas = "AWAS", Read::Object(awas::read), { markers: awas::MARKERS, findings: &[&awas::FINDINGS] };
    AgentsJsonJm = "agents.json (JM)", Read::Object(agents_json_jm::read), {
        markers: agents_json_jm::MARKERS, findings: &[&agents_json_jm::FINDINGS],
    };
    Arws = "ARWS", Read::Object(arws::read), {
        paths: &["/.well-known/agent-manifest.json", "/.well-known/llms.txt"], markers: arws::MARKERS,
        findings: &[&arws::FINDINGS],
    };
    AgentsJsonLt = "agents.json (LT)", Read::Object(agents_json_lt::read), {
        markers: agents_json_lt::MARKERS, findings: &[&agents_json_lt::FINDINGS],
    };
    McpFreeform = "MCP (free form)", Read::Object(mcp::read), { markers: mcp::FREEFORM_MARKERS };
    LlmsTxt = "llms.txt", Read::Text(llms_txt::read), {
        findings: &[&llms_txt::FINDINGS], media_type: Some("text/markdown"),
    };
    AiTxt = "ai.txt", Read::Text(ai_txt::read), { media_type: Some("text/vnd.agentdex.ai-txt") };
    Generic = "no known dialect", Read::Object(generic::read), {};
    Pointer = "pointer", Read::Object(pointer::read), {};
    List = "list of documents", Read::Body(list::read), {};
    Unrelated = "unrelated file", Read::Nothing, {};
    Opaque = "nothing to call", Read::Body(pointer::read_opaque), {};
    Malformed = "not readable", Read::Nothing, {};
}

impl Format {
    /// The name for people.
    pub const fn label(self) -> &'static str {
        dialect(self).label
    }

    /// Whether this is one of the five core dialects, whose specifications define every member that is read.
    pub(crate) const fn is_core(self) -> bool {
        matches!(self, Self::Awp | Self::Atp | Self::Woa | Self::AgentsJson | Self::Arws)
    }
}
