//! The enums of the model that have a fixed spelling in JSON, in the database and in URLs.

use serde::{Deserialize, Serialize};

use crate::name::Host;

/// A text that is not a value of an enum; the error lists the values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{value}\" is not a known {what}: one of {known}")]
pub struct UnknownValue {
    pub what: &'static str,
    pub value: String,
    pub known: String,
}

/// Declares an enum with its spelling in JSON, in the database and in URLs, and implements parsing, printing and serde.
/// Crates that use it need `serde`.
#[doc(hidden)]
#[macro_export]
macro_rules! string_enum {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$vmeta:meta])* $variant:ident = $slug:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "&'static str")]
        pub enum $name { $(#[doc = concat!("`", $slug, "`")] $(#[$vmeta])* $variant),+ }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The spelling in JSON, in the database and in URLs.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $slug),+ }
            }
        }

        impl From<$name> for &'static str {
            fn from(value: $name) -> Self {
                value.as_str()
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::model::UnknownValue;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let known = || Self::ALL.iter().map(|value| value.as_str());
                Self::ALL.iter().copied().find(|value| value.as_str() == text).ok_or_else(|| {
                    $crate::model::UnknownValue {
                        what: $what,
                        value: text.chars().take(80).collect(),
                        known: known().collect::<Vec<_>>().join(", "),
                    }
                })
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::model::UnknownValue;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

string_enum! {
    /// The dialect of a document.
    Format, "format" {
        Awp = "awp",
        Atp = "atp",
        Woa = "woa",
        AgentsJson = "agents_json",
        AgentsTxt = "agents_txt",
        Arws = "arws",
        A2a = "a2a",
        Ard = "ard",
        McpCard = "mcp_card",
        McpRegistry = "mcp_registry",
        McpFreeform = "mcp_freeform",
        McpConfig = "mcp_config",
        OpenApi = "openapi",
        ApiCatalog = "api_catalog",
        AiPlugin = "ai_plugin",
        SkillsIndex = "skills_index",
        LlmsTxt = "llms_txt",
        Wildcard = "wildcard",
        Ahp = "ahp",
        Air = "air",
        Facts = "facts",
        ManifestV1 = "manifest_v1",
        W2a = "w2a",
        Ucp = "ucp",
        Acp = "acp",
        X402 = "x402",
        Erc8004 = "erc8004",
        Anp = "anp",
        WebMcp = "webmcp",
        WebBotAuth = "web_bot_auth",
        Awas = "awas",
        AgentsJsonJm = "agents_json_jm",
        AgentsJsonLt = "agents_json_lt",
        AiTxt = "ai_txt",
        /// JSON that describes a service without following a known specification.
        Generic = "generic",
        /// A document that contains only addresses of other manifests.
        Pointer = "pointer",
        /// An array of documents.
        List = "list",
        /// An unrelated file with the name of a manifest, such as a list of people called agents.json.
        Unrelated = "unrelated",
        /// Parsed, but contains no capability.
        Opaque = "opaque",
        /// Cannot be parsed in the syntax of its kind.
        Malformed = "malformed",
    }
}

impl Format {
    /// Whether documents of this format are indexed.
    pub const fn is_indexable(self) -> bool {
        !matches!(self, Self::Unrelated | Self::Opaque | Self::Malformed | Self::WebBotAuth)
    }

    /// Whether a document of this format describes one service, so that its endpoints are those of its publisher. Catalogs, lists and files
    /// of an unknown form may list the services of customers and users.
    pub const fn describes_one_service(self) -> bool {
        let is_list = matches!(
            self,
            Self::Ard
                | Self::ApiCatalog
                | Self::McpConfig
                | Self::SkillsIndex
                | Self::LlmsTxt
                | Self::Anp
                | Self::List
                | Self::Pointer
                | Self::Generic
        );
        self.is_indexable() && !is_list
    }
}

string_enum! {
    /// Certainty of the detection: a strong marker in the body, a medium one at a known path, or a guess from the shape.
    Strength, "detection strength" { Strong = "strong", Medium = "medium", Weak = "weak" }
}

string_enum! {
    /// Whether a call costs something.
    Cost, "cost" { Free = "free", Paid = "paid" }
}

string_enum! {
    /// How a resource was discovered.
    Discovery, "discovery" {
        WellKnown = "well_known",
        Root = "root",
        LinkHeader = "link_header",
        HtmlLink = "html_link",
        Agentmap = "agentmap",
        CatalogEntry = "catalog_entry",
        Pointer = "pointer",
        Dns = "dns",
        Submitted = "submitted",
        Listed = "listed",
    }
}

string_enum! {
    /// The kind of a capability.
    CapabilityKind, "kind" {
        Action = "action",
        Tool = "tool",
        Operation = "operation",
        Skill = "skill",
        Agent = "agent",
        AgentOperation = "agent_operation",
        Flow = "flow",
        Resource = "resource",
        Dataset = "dataset",
        Content = "content",
        Registry = "registry",
        /// Published by name only.
        Unknown = "unknown",
    }
}

string_enum! {
    /// The effect of a call.
    #[derive(Default)]
    SafetyClass, "safety class" {
        Read = "read",
        Write = "write",
        Destructive = "destructive",
        Irreversible = "irreversible",
        #[default]
        Unknown = "unknown",
    }
}

string_enum! {
    /// Whether a person should agree before the call.
    #[derive(Default)]
    Confirmation, "confirmation" { #[default] None = "none", Recommended = "recommended", Required = "required" }
}

string_enum! {
    /// How a caller authenticates.
    #[derive(Default)]
    AuthScheme, "auth scheme" {
        None = "none",
        ApiKey = "api_key",
        Bearer = "bearer",
        OAuth2 = "oauth2",
        OpenId = "openid",
        Mtls = "mtls",
        HttpSignature = "http_signature",
        Session = "session",
        Payment = "payment",
        AgentIdentity = "agent_identity",
        Delegated = "delegated",
        Cookie = "cookie",
        Other = "other",
        #[default]
        Unknown = "unknown",
    }
}

string_enum! {
    /// The protocol of an interface or an invocation.
    Protocol, "protocol" {
        Http = "http",
        Mcp = "mcp",
        A2a = "a2a",
        GraphQl = "graphql",
        Grpc = "grpc",
        WebSocket = "websocket",
        Woa = "woa",
        X402 = "x402",
        Ucp = "ucp",
        Acp = "acp",
        Other = "other",
    }
}

string_enum! {
    /// The source of the declaration.
    #[derive(Default)]
    SourceKind, "source" {
        #[default]
        Native = "native",
        Synthetic = "synthetic",
        Derived = "derived",
        /// Every endpoint is on another site: probably a republished copy of that site's manifest.
        CopySuspected = "copy_suspected",
    }
}

string_enum! {
    /// The choice of a publisher.
    #[derive(Default)]
    PolicyChoice, "policy" { Allow = "allow", Deny = "deny", Conditional = "conditional", #[default] Unset = "unset" }
}

impl PolicyChoice {
    pub fn is_unset(&self) -> bool {
        *self == Self::Unset
    }
}

string_enum! {
    /// Who links to a document of a site, as decided by `policy::naming`.
    NamedBy, "value of named_by" {
        /// The site itself.
        Site = "site",
        /// Only other sites and clients.
        Others = "others",
    }
}

string_enum! {
    /// The publisher of a document of a site, as decided by `policy::naming`.
    Publisher, "publisher" {
        /// The site itself.
        Site = "site",
        /// The owner of another host below the domain, who may be a customer.
        Host = "host",
        /// Unknown: a user of the host may have written the document.
        Unknown = "unknown",
    }
}

string_enum! {
    /// How the server answers a call: at once, later at a poll URL, or as a stream.
    #[derive(Default)]
    ExecutionModel, "execution model" { Sync = "sync", Async = "async", Stream = "stream", #[default] Unknown = "unknown" }
}

string_enum! {
    /// Whether a value was published or derived by an agentdex rule.
    #[derive(Default)]
    TypeSource, "source of a value" { Declared = "declared", #[default] Inferred = "inferred" }
}

string_enum! {
    /// How severe a deviation is, in the words of RFC 2119. A `note` breaks no specification.
    Severity, "severity" { Note = "note", May = "may", Should = "should", Must = "must" }
}

string_enum! {
    /// How well a document conforms to a specification, by its worst finding.
    ConformanceLevel, "conformance level" {
        /// No finding above `may`.
        Conforms = "conforms",
        /// Worst finding `should`.
        Minor = "minor",
        /// Worst finding `must`.
        Major = "major",
        Unparseable = "unparseable",
    }
}

string_enum! {
    /// Yes, no or not declared.
    #[derive(Default)]
    Tristate, "truth value" { Yes = "yes", No = "no", #[default] Unknown = "unknown" }
}

impl Publisher {
    /// Whether the publisher of a document at `host` may use a name: as the publisher of an identifier, or as the namespace of a server.
    /// The site may use the names of the host that serves the document, of its parent hosts and of its subdomains; the customer of a host
    /// only the name of this host and names below it. Users of a host may use none.
    pub fn may_use_name_of(self, host: &Host, name: &Host) -> bool {
        match self {
            Self::Site => host.may_use_name_of(name),
            Self::Host => host.may_use_name_of(name) && !host.is_below(name),
            Self::Unknown => false,
        }
    }
}

impl Discovery {
    /// A short description for the dashboard.
    pub const fn label(self) -> &'static str {
        match self {
            Self::WellKnown => "well-known path",
            Self::Root => "path at the root",
            Self::LinkHeader => "Link header",
            Self::HtmlLink => "link in a page",
            Self::Agentmap => "Agentmap line in robots.txt",
            Self::CatalogEntry => "entry of a catalog",
            Self::Pointer => "pointer in another document",
            Self::Dns => "DNS record",
            Self::Submitted => "submitted",
            Self::Listed => "on a list of the operator",
        }
    }
}

impl ConformanceLevel {
    /// A short explanation for the publisher.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Conforms => "conforms",
            Self::Minor => "ignores a recommendation",
            Self::Major => "breaks a requirement",
            Self::Unparseable => "cannot be read",
        }
    }
}

impl Tristate {
    pub(crate) const fn from_option(value: Option<bool>) -> Self {
        match value {
            Some(true) => Self::Yes,
            Some(false) => Self::No,
            None => Self::Unknown,
        }
    }

    pub const fn as_option(self) -> Option<bool> {
        match self {
            Self::Yes => Some(true),
            Self::No => Some(false),
            Self::Unknown => None,
        }
    }
}

/// The generator of the declaration (AWP synthetic declarations).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Source {
    pub kind: SourceKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<String>,
    /// 0 to 1, as the generator states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// As published; not parsed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_verified: Option<String>,
}
