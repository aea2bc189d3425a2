//! The closed vocabularies of the model: every value that a client may filter by, spelled once.

use serde::{Deserialize, Serialize};

/// A word that is not in a closed vocabulary; the text lists the words that are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{value}\" is not a known {what}: one of {known}")]
pub struct UnknownValue {
    pub what: &'static str,
    pub value: String,
    pub known: String,
}

/// Declares a closed vocabulary: variants with their spelling in JSON, in the database and in URLs. Other crates
/// declare theirs with it too, so that every vocabulary parses, prints and refuses alike; they need `serde`.
#[doc(hidden)]
#[macro_export]
macro_rules! closed {
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

closed! {
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
        /// Service-like JSON that follows no known specification.
        Generic = "generic",
        /// A document whose only content is where other manifests are.
        Pointer = "pointer",
        /// An array of documents.
        List = "list",
        /// A file that merely bears the name: a list of people called agents.json.
        Unrelated = "unrelated",
        /// Parsed, but nothing in it is a capability.
        Opaque = "opaque",
        /// Not parseable in the syntax its kind demands.
        Malformed = "malformed",
    }
}

impl Format {
    /// The five dialects that agentdex exists for, agents.json with its agents.txt.
    pub const fn is_core(self) -> bool {
        matches!(self, Self::Awp | Self::Atp | Self::Woa | Self::AgentsJson | Self::AgentsTxt | Self::Arws)
    }

    /// Whether a document of this format may carry capabilities that are worth keeping in the index.
    pub const fn is_indexable(self) -> bool {
        !matches!(self, Self::Unrelated | Self::Opaque | Self::Malformed | Self::WebBotAuth)
    }
}

closed! {
    /// How sure the detection is: a strong marker in the body, a medium one bound to a path, or a guess from the shape.
    Strength, "detection strength" { Strong = "strong", Medium = "medium", Weak = "weak" }
}

closed! {
    /// How a resource came to be known.
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

closed! {
    /// What kind of thing a capability is.
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
        /// Only a name was published.
        Unknown = "unknown",
    }
}

closed! {
    /// What calling a capability may do to the world.
    SafetyClass, "safety class" {
        Read = "read",
        Write = "write",
        Destructive = "destructive",
        Irreversible = "irreversible",
        Unknown = "unknown",
    }
}

closed! {
    /// Whether a person should agree before the call.
    Confirmation, "confirmation" { None = "none", Recommended = "recommended", Required = "required" }
}

closed! {
    /// How a caller authenticates.
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
        Unknown = "unknown",
    }
}

closed! {
    /// The protocol an interface or an invocation speaks.
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

closed! {
    /// Where the declaration comes from.
    SourceKind, "source" {
        Native = "native",
        Synthetic = "synthetic",
        Derived = "derived",
        /// Every endpoint lies on another site: likely a fork that republishes somebody's manifest.
        CopySuspected = "copy_suspected",
    }
}

closed! {
    /// What a publisher allows.
    PolicyChoice, "policy" { Allow = "allow", Deny = "deny", Conditional = "conditional", Unset = "unset" }
}

closed! {
    /// The publisher's own word on how alive the service is.
    Lifecycle, "lifecycle" { Live = "live", Draft = "draft", Deprecated = "deprecated" }
}

closed! {
    /// Yes, no, or nothing was said.
    Tristate, "truth value" { Yes = "yes", No = "no", Unknown = "unknown" }
}

impl Tristate {
    pub const fn from_option(value: Option<bool>) -> Self {
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

/// Who wrote the declaration, and how far it may be trusted (AWP synthetic declarations).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

impl Default for Source {
    fn default() -> Self {
        Self { kind: SourceKind::Native, generator: None, confidence: None, last_verified: None }
    }
}
