//! The markers of every dialect, in the order in which they are believed.
//!
//! Rulings that the order encodes: AWP before ATP before everything else at agent.json; ERC-8004 before A2A, since
//! registrations are served as cards; Wildcard before anything with `flows`; an MCP client configuration only without
//! skills. A path alone never decides: rows of [`BY_PATH`] still need their body.

use serde_json::Value;

use super::Candidate;
use crate::model::{Format, Strength};

/// One row: the test returns its evidence in words.
pub(super) struct Row {
    pub(super) format: Format,
    pub(super) strength: Strength,
    pub(super) test: fn(&Candidate<'_>) -> Option<String>,
}

const fn strong(format: Format, test: fn(&Candidate<'_>) -> Option<String>) -> Row {
    Row { format, strength: Strength::Strong, test }
}

const fn medium(format: Format, test: fn(&Candidate<'_>) -> Option<String>) -> Row {
    Row { format, strength: Strength::Medium, test }
}

/// Markers in the body. First hit wins.
pub(super) const TABLE: &[Row] = &[
    strong(Format::OpenApi, |c| {
        let (key, version) = ["openapi", "swagger"].iter().find_map(|key| Some((key, c.text(key)?)))?;
        (c.has("paths") || c.has("info")).then(|| format!("`{key}` is \"{version}\" beside paths or info"))
    }),
    strong(Format::ApiCatalog, |c| c.list("linkset").map(|_| "`linkset` is an array".to_owned())),
    strong(Format::Ard, |c| {
        let entry = c.list("entries")?.iter().find_map(Value::as_object)?;
        let shaped = ["identifier", "type", "mediaType"].iter().any(|key| entry.contains_key(*key));
        let named = c.has("specVersion") || c.is_file(&["/ard.json", "/ai-catalog.json"]);
        (shaped && named).then(|| "`entries` holds objects with identifier or type".to_owned())
    }),
    strong(Format::Ard, |c| {
        let named = c.list("entries")?.is_empty() && c.has("specVersion");
        named.then(|| "`specVersion` beside an empty `entries`".to_owned())
    }),
    strong(Format::Wildcard, |c| c.has("agentsJson").then(|| "`agentsJson` is present".to_owned())),
    strong(Format::Awp, |c| {
        let version = c.text("awp_version")?;
        let workstate = c.has("workstate_id") || c.has("modules");
        (!workstate).then(|| format!("`awp_version` is \"{version}\""))
    }),
    strong(Format::Awp, |c| {
        // The version mistyped as a number is still nobody else's member.
        let version = c.value("awp_version").filter(|value| value.is_number())?;
        c.list("actions").map(|_| format!("`awp_version` is the number {version}, beside `actions`"))
    }),
    strong(Format::Atp, |c| {
        (c.text("@type")? == "AgentManifest").then(|| "`@type` is AgentManifest".to_owned())
    }),
    Row {
        format: Format::Atp,
        strength: Strength::Strong,
        test: |c| {
            let context = c.text("@context").filter(|context| is_atp_context(context))?;
            c.list("capabilities").map(|_| format!("`@context` is {context}, `capabilities` is an array"))
        },
    },
    medium(Format::Atp, |c| {
        let context = c.text("@context").filter(|context| is_atp_context(context))?;
        Some(format!("`@context` is {context}, without a list of capabilities"))
    }),
    strong(Format::Woa, |c| c.value("woa_version").map(|version| format!("`woa_version` is {version}"))),
    strong(Format::Ahp, |c| c.value("ahp").map(|version| format!("`ahp` is {version}"))),
    strong(Format::W2a, |c| c.value("w2a").map(|version| format!("`w2a` is {version}"))),
    strong(Format::AgentsJson, |c| with_site(c, "protocol_version")),
    strong(Format::AgentsJson, |c| with_site(c, "schema_version")),
    strong(Format::AgentsTxt, |c| with_site(c, "specVersion")),
    strong(Format::AgentsTxt, |c| {
        let marker = ["$schema", "standard"]
            .iter()
            .find_map(|key| c.text(key).filter(|v| v.contains("agents-txt.com")))?;
        Some(format!("it names {marker}"))
    }),
    strong(Format::Facts, |c| {
        let dated = c.object("subject").is_some() && c.has("last_reviewed");
        dated.then(|| "`subject` beside `last_reviewed`".to_owned())
    }),
    strong(Format::Air, |c| {
        let paid = c.text("origin").is_some() && c.has("payout_address");
        paid.then(|| "`origin` beside `payout_address`".to_owned())
    }),
    strong(Format::Ucp, |c| c.object("ucp").map(|_| "`ucp` is an object".to_owned())),
    strong(Format::X402, |c| c.value("x402Version").map(|version| format!("`x402Version` is {version}"))),
    strong(Format::Erc8004, |c| {
        let kind = c.text("type").filter(|kind| kind.to_ascii_lowercase().contains("eip-8004"))?;
        Some(format!("`type` is {kind}"))
    }),
    strong(Format::AiPlugin, |c| {
        let api = c.has("name_for_model") && c.object("api").is_some();
        api.then(|| "`name_for_model` beside `api`".to_owned())
    }),
    medium(Format::AiPlugin, |c| {
        let named = c.has("name_for_model") && c.has("description_for_model");
        named.then(|| "`name_for_model` beside `description_for_model`, without `api`".to_owned())
    }),
    strong(Format::Anp, |c| {
        let collection = c.text("@type") == Some("CollectionPage") && c.list("items").is_some();
        let protocol = c.text("protocolType") == Some("ANP");
        (collection || protocol).then(|| "a CollectionPage with items, or protocolType ANP".to_owned())
    }),
    strong(Format::ManifestV1, |c| {
        let app = c.has("manifest_version") && c.object("app").is_some();
        app.then(|| "`manifest_version` beside `app`".to_owned())
    }),
    strong(Format::McpConfig, |c| {
        let servers = c.object("mcpServers").is_some() && c.list("skills").is_none();
        servers.then(|| "`mcpServers` without skills".to_owned())
    }),
    strong(Format::McpCard, |c| schema_ends(c, "server-card.schema.json")),
    strong(Format::McpRegistry, |c| schema_ends(c, "server.schema.json")),
    strong(Format::McpCard, |c| {
        let name = c.text("name").filter(|name| name.contains('/'))?;
        c.list("remotes").map(|_| format!("`remotes` beside the name {name}"))
    }),
    medium(Format::McpCard, |c| {
        let name = c.text("name").filter(|name| name.split('/').count() == 2 && !name.contains("://"))?;
        let described = c.text("version").is_some() && c.text("description").is_some() && c.size() <= 6;
        described.then(|| format!("little more than the namespaced name {name}, a version and a description"))
    }),
    strong(Format::McpCard, |c| c.object("serverInfo").map(|_| "`serverInfo` is an object".to_owned())),
    strong(Format::WebBotAuth, |c| {
        let key = c.list("keys")?.first()?.as_object()?;
        key.contains_key("kty").then(|| "`keys` holds JSON Web Keys".to_owned())
    }),
    strong(Format::SkillsIndex, |c| {
        let schema = c.text("$schema").filter(|schema| schema.contains("agentskills"))?;
        Some(format!("`$schema` is {schema}"))
    }),
    strong(Format::SkillsIndex, |c| {
        let skills = c.list("skills").is_some() && c.is_file(&["skills/index.json"]);
        skills.then(|| "`skills` in an index below /skills/".to_owned())
    }),
    strong(Format::WebMcp, |c| {
        let spec = c.text("spec").filter(|spec| spec.to_ascii_lowercase().starts_with("webmcp"))?;
        Some(format!("`spec` is {spec}"))
    }),
    strong(Format::A2a, |c| {
        c.objects("supportedInterfaces").map(|_| "`supportedInterfaces` is a list of objects".to_owned())
    }),
    strong(Format::Acp, |c| {
        let name = c.object("protocol")?.get("name")?.as_str()?;
        name.eq_ignore_ascii_case("acp").then(|| "`protocol.name` is acp".to_owned())
    }),
    strong(Format::Awas, |c| {
        let schema = c.text("$schema").filter(|schema| schema.contains("awas.dev"))?;
        Some(format!("`$schema` is {schema}"))
    }),
    medium(Format::Awas, |c| {
        let named = c
            .object("endpoints")?
            .values()
            .find_map(|value| value.as_str().filter(|v| v.ends_with("/awas.json")))?;
        Some(format!("`endpoints` leads to {named}"))
    }),
    strong(Format::AgentsJsonJm, |c| {
        let site = c.object("site_info").is_some() && c.has("intents");
        site.then(|| "`site_info` beside `intents`".to_owned())
    }),
    medium(Format::Arws, |c| {
        let tools =
            c.text("tools").filter(|tools| tools.starts_with("https://") || tools.starts_with('/'))?;
        let described = c.has("name") || c.has("description");
        described.then(|| format!("`tools` is the address {tools}"))
    }),
];

/// Markers that count only where the path agrees.
pub(super) const BY_PATH: &[Row] = &[
    medium(Format::Atp, |c| {
        // ATP's capabilities are a list with endpoint and method where A2A's are an object of switches.
        let first = c.list("capabilities")?.first()?.as_object()?;
        let atp = first.contains_key("endpoint") && first.contains_key("method") && first.contains_key("id");
        let like =
            c.is_file(&["/agent.json"]) && (c.has("provider") || c.has("rateLimit") || c.has("policies"));
        (atp && like)
            .then(|| "`capabilities` lists id, endpoint and method; `@context` is missing".to_owned())
    }),
    medium(Format::AgentsJsonLt, |c| {
        let listed = c.objects("data").is_some() || c.objects("actions").is_some();
        let named = c.is_file(&["/agents.json"]) && c.text("version") == Some("1.0");
        (named && listed).then(|| "`version` 1.0 beside `data` or `actions` in agents.json".to_owned())
    }),
    medium(Format::Ucp, |c| {
        at(c, &["/ucp", "/ucp.json"], &["ucp", "services", "capabilities", "ucp_version", "protocol"])
    }),
    medium(Format::X402, |c| {
        at(c, &["/x402", "/x402.json"], &["resources", "items", "version", "x402_version", "payment"])
    }),
    medium(Format::Acp, |c| {
        at(c, &["/acp.json", "/acp"], &["protocol", "capabilities", "version", "acp_version"])
    }),
    medium(Format::WebMcp, |c| at(c, &["/webmcp", "/webmcp.json"], &["tools"])),
    medium(Format::Awas, |c| at(c, &["/ai-actions.json"], &["actions"])),
    medium(Format::McpFreeform, |c| at(c, MCP_FILES, MCP_KEYS)),
];

/// Names under which servers of tools are described in shapes of their own.
const MCP_FILES: &[&str] =
    &["/mcp.json", "server-card.json", "/mcp/manifest.json", "/mcp-server.json", "/mcp-manifest.json"];
/// What a description of a server has at least one of.
const MCP_KEYS: &[&str] = &[
    "tools",
    "transport",
    "transports",
    "endpoint",
    "url",
    "server",
    "servers",
    "mcp",
    "protocol",
    "serverUrl",
    "mcpVersion",
    "protocol_version",
    "packages",
    "remotes",
    "endpoints",
];

/// The path agrees with one of the members.
fn at(candidate: &Candidate<'_>, files: &[&str], keys: &[&str]) -> Option<String> {
    let key = keys.iter().find(|key| candidate.has(key)).filter(|_| candidate.is_file(files))?;
    Some(format!("`{key}` and the path {} agree", candidate.path))
}

fn is_atp_context(context: &str) -> bool {
    context.strip_prefix("https://").or_else(|| context.strip_prefix("http://")).is_some_and(|rest| {
        rest.strip_prefix("atp.dev").is_some_and(|path| path.is_empty() || path.starts_with('/'))
    })
}

fn with_site(candidate: &Candidate<'_>, version_key: &str) -> Option<String> {
    let version = candidate.value(version_key)?;
    let listed = candidate.object("site").is_some() && candidate.list("capabilities").is_some();
    listed.then(|| format!("`site` and `capabilities` beside `{version_key}` {version}"))
}

fn schema_ends(candidate: &Candidate<'_>, ending: &str) -> Option<String> {
    let schema = candidate.text("$schema").filter(|schema| schema.ends_with(ending))?;
    Some(format!("`$schema` is {schema}"))
}
