//! The names of authentication schemes and protocols in documents.

use crate::model::{Auth, AuthScheme, Protocol};
use crate::text;

/// Maximum number of characters of a scheme's name in a document.
const WORD_CHARS_MAX: usize = 200;

/// The scheme of a name in a document; `Other` for unknown names.
pub(crate) fn scheme(word: &str) -> AuthScheme {
    let folded: String =
        word.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    match folded.as_str() {
        "none" | "no" | "public" | "anonymous" | "open" | "noauth" => AuthScheme::None,
        "apikey" | "apikeys" | "key" | "apitoken" | "xapikey" | "userhttp" | "servicehttp" => {
            AuthScheme::ApiKey
        }
        "bearer" | "bearertoken" | "bearerauth" | "httpbearer" | "token" | "jwt" | "http" => {
            AuthScheme::Bearer
        }
        "oauth2" | "oauth" | "oauth21" | "oauth20" | "clientcredentials" | "oauth2clientcredentials" => {
            AuthScheme::OAuth2
        }
        "openid" | "oidc" | "openidconnect" => AuthScheme::OpenId,
        "mtls" | "mutualtls" => AuthScheme::Mtls,
        "httpsignature" | "httpsignatures" | "httpmessagesignatures" | "webbotauth" => {
            AuthScheme::HttpSignature
        }
        "session" => AuthScheme::Session,
        "payment" | "x402" | "l402" | "mpp" | "ap2" => AuthScheme::Payment,
        "agentidentity" | "agentauth" | "did" | "didweb" => AuthScheme::AgentIdentity,
        "delegated" => AuthScheme::Delegated,
        "cookie" => AuthScheme::Cookie,
        _ if folded.contains("bearer") => AuthScheme::Bearer,
        _ if folded.contains("apikey") => AuthScheme::ApiKey,
        _ => AuthScheme::Other,
    }
}

/// Whether a word names an HTTP scheme without its own [`AuthScheme`] (RFC 7617, RFC 7616).
pub(crate) fn is_scheme_of_http(word: &str) -> bool {
    let folded = word.to_ascii_lowercase();
    matches!(folded.trim_start_matches("http").trim_start_matches(['-', '_', ' ']), "basic" | "digest")
}

/// An entry for a name in a document. The name is kept if it differs from the name of its scheme.
pub(crate) fn of_word(word: &str) -> Auth {
    let scheme = scheme(word);
    let declared = text::plain(word, WORD_CHARS_MAX).filter(|word| word != scheme.as_str());
    Auth { declared, ..Auth::new(scheme) }
}

/// The protocol of a name in a document; `Other` for unknown names.
pub(crate) fn protocol(word: &str) -> Protocol {
    match word.to_ascii_lowercase().as_str() {
        "http" | "https" | "rest" | "http+json" | "openapi" | "http_json" => Protocol::Http,
        "mcp" => Protocol::Mcp,
        "a2a" | "jsonrpc" => Protocol::A2a,
        "graphql" => Protocol::GraphQl,
        "grpc" => Protocol::Grpc,
        "websocket" | "ws" | "wss" => Protocol::WebSocket,
        "woa" => Protocol::Woa,
        "x402" => Protocol::X402,
        "ucp" => Protocol::Ucp,
        "acp" => Protocol::Acp,
        _ => Protocol::Other,
    }
}
