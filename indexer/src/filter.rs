//! The search filters, one row each.
//!
//! A row defines every use of the filter: the field of the schema, the values of a document, the query, the operator inside a phrasing, the
//! parameter of `GET /search` and its documentation, the path of a catalog filter, the argument of the tool `find_capability`, and the
//! facet of the dashboard. Values of one filter are combined with OR, different filters with AND.
//!
//! Closed vocabularies are parsed here, and an unknown value is an error that lists the known ones. Open vocabularies (sites, types,
//! namespaces, languages) accept any text in any case and may simply match nothing.

mod values;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use manifest::declaration::payment_schemes;
use manifest::entry::{Entry, publisher_of};
use manifest::model::{
    AuthScheme, Capability, CapabilityAuth, CapabilityKind, Cost, Format, NamedBy, Payment, Protocol,
    SafetyClass, SourceKind, Tristate, UnknownValue,
};
use manifest::{CapabilityId, IdentityMark, ManifestUrl, semantic_namespace};
use policy::Status;
use store::{StoredDeclaration, StoredManifest};

pub use self::values::Filters;

use crate::agent_endpoints::declared_endpoints;

manifest::string_enum! {
    /// The HTTP verb of a capability (RFC 9110 §9, RFC 5789).
    Method, "method" {
        Get = "GET",
        Head = "HEAD",
        Post = "POST",
        Put = "PUT",
        Patch = "PATCH",
        Delete = "DELETE",
        Options = "OPTIONS",
        Trace = "TRACE",
        Connect = "CONNECT",
    }
}

manifest::string_enum! {
    /// Whether the publisher declares a capability impaired.
    Degraded, "value of degraded" {
        Yes = "true",
        No = "false",
    }
}

manifest::string_enum! {
    /// Whether the publisher is verified.
    Verified, "value of verified" {
        Yes = "true",
        No = "false",
    }
}

manifest::string_enum! {
    /// The protocol of an endpoint that agents connect to as a whole.
    AgentEndpoint, "agent endpoint" {
        Mcp = "mcp",
        A2a = "a2a",
    }
}

/// One filter, and the facet that counts by it.
#[derive(Debug)]
pub struct Filter {
    /// Names the field of the index, the parameter of `GET /search` and the facet.
    pub key: FacetKey,
    /// Heading of the facet in the dashboard.
    pub label: &'static str,
    /// Position of the facet next to the results in the dashboard, which shows only facets that have one.
    pub dashboard_position: Option<u8>,
    /// Name of the operator in a phrasing: `type` in `type:travel:*`.
    pub operator: Option<&'static str>,
    /// Description of the parameter of `GET /search`, which may be empty; `None` if there is no such parameter.
    pub parameter: Option<&'static str>,
    /// Path into a catalog entry that the filter compares (ARD 0.9 §7.1).
    pub entry_path: &'static str,
    /// Description of the argument of `find_capability`; `None` if there is no such argument.
    pub tool_argument: Option<&'static str>,
    /// The known values; `None` if any text is one.
    pub vocabulary: Option<fn() -> Vec<&'static str>>,
    /// Whether publishers choose the values freely. Such values are listed by the number of their sites, without long values and URLs.
    pub(crate) is_free_text: bool,
    parse: fn(&str) -> Result<String, UnknownValue>,
    values_of: fn(&FilterSource<'_>) -> Vec<String>,
}

/// Source of the filter values and exact names of a document.
pub(crate) struct FilterSource<'a> {
    pub(crate) id: &'a CapabilityId,
    pub(crate) key: &'a str,
    pub(crate) native_id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) title: Option<&'a str>,
    pub(crate) manifest_name: Option<&'a str>,
    /// URL of the manifest.
    pub(crate) url: &'a ManifestUrl,
    format: Format,
    status: Status,
    source: SourceKind,
    semantic_types: Vec<&'a str>,
    method: Option<&'a str>,
    safety: SafetyClass,
    auth: &'a CapabilityAuth,
    degraded: bool,
    /// Protocols of the agent endpoints that the manifest declares; other declarations add none.
    agent_endpoints: BTreeSet<Protocol>,
    pub(crate) named_by: NamedBy,
    pub(crate) published_by: manifest::Publisher,
    /// Identity of the publisher of the leading declaration; other declarations are not evidence of it.
    identity: Vec<IdentityMark>,
    price: Option<&'a Payment>,
    payment_schemes: Vec<String>,
    kind: CapabilityKind,
    tags: &'a [String],
    /// Identifier of the declaration as an entry of a catalog.
    pub(crate) urn: &'a str,
    media_type: &'a str,
    publisher: &'a str,
    /// Primary subtag of BCP 47.
    language: &'a str,
}

impl<'a> FilterSource<'a> {
    pub(crate) fn of_capability(
        stored: &'a StoredManifest,
        capability: &'a Capability,
        entry: &'a Entry<'a>,
        language: &'a str,
    ) -> Self {
        let manifest = &stored.manifest;
        Self {
            id: &capability.id,
            key: &capability.key,
            native_id: &capability.native_id,
            name: &capability.name,
            title: capability.title.as_deref(),
            manifest_name: manifest.name.as_deref(),
            url: &manifest.url,
            format: manifest.format(),
            status: stored.status,
            source: manifest.source.kind,
            semantic_types: capability.semantic_types.iter().map(|kind| kind.name.as_str()).collect(),
            method: capability.invocation.method.as_deref(),
            safety: capability.safety.class,
            auth: &capability.auth,
            degraded: capability.degraded,
            agent_endpoints: declared_endpoints(manifest, capability),
            named_by: stored.named_by,
            published_by: stored.publisher,
            identity: manifest.identity_of(capability, stored.named_by).marks(),
            price: capability.price.as_ref(),
            payment_schemes: payment_schemes(manifest, capability),
            kind: capability.kind,
            tags: &capability.tags,
            urn: &entry.identifier.urn,
            media_type: &entry.media_type,
            publisher: entry.identifier.publisher(),
            language,
        }
    }

    /// The source for a declaration whose manifest is not read.
    pub(crate) fn of_declaration(stored: &'a StoredDeclaration, language: &'a str) -> Self {
        let excerpt = &stored.excerpt;
        let statement = &excerpt.statement;
        let urn = excerpt.urn(stored.publisher);
        Self {
            id: &statement.id,
            key: &excerpt.key,
            native_id: &statement.native_id,
            name: &excerpt.name,
            title: excerpt.title.as_deref(),
            manifest_name: excerpt.manifest_name.as_deref(),
            url: &statement.url,
            format: statement.format,
            status: stored.status,
            source: excerpt.source,
            semantic_types: excerpt.semantic_types.iter().map(String::as_str).collect(),
            method: excerpt.method.as_deref(),
            safety: statement.safety.class,
            auth: &statement.auth,
            degraded: statement.degraded,
            agent_endpoints: BTreeSet::new(),
            named_by: stored.named_by,
            published_by: stored.publisher,
            identity: Vec::new(),
            price: statement.price.as_ref(),
            payment_schemes: excerpt.payment_schemes.clone(),
            kind: excerpt.kind,
            tags: &excerpt.tags,
            urn,
            media_type: &excerpt.media_type,
            publisher: publisher_of(urn),
            language,
        }
    }
}

impl Filter {
    /// The default row: an open vocabulary without operator, parameter and argument.
    const DEFAULT: Self = Self {
        key: FacetKey::Format,
        label: "",
        dashboard_position: None,
        operator: None,
        parameter: None,
        entry_path: "",
        tool_argument: None,
        vocabulary: None,
        is_free_text: false,
        parse: |text| Ok(text.to_lowercase()),
        values_of: |_| Vec::new(),
    };

    /// The distinct values of a document.
    pub(crate) fn values_of(&self, source: &FilterSource<'_>) -> BTreeSet<String> {
        (self.values_of)(source).into_iter().collect()
    }
}

/// Declares the facet keys and the row of each.
macro_rules! filters {
    ($($variant:ident = $key:literal { $($member:ident: $value:expr),+ $(,)? })+) => {
        manifest::string_enum! {
            /// The keys by which results are filtered and counted.
            FacetKey, "facet" { $($variant = $key),+ }
        }

        impl FacetKey {
            pub fn filter(self) -> &'static Filter {
                match self {
                    $(Self::$variant => {
                        const ROW: Filter = {
                            let mut row = Filter::DEFAULT;
                            row.key = FacetKey::$variant;
                            $(row.$member = $value;)+
                            row
                        };
                        &ROW
                    })+
                }
            }
        }
    };
}

/// The known values of a closed vocabulary.
macro_rules! vocabulary {
    ($of:ty) => {
        Some(|| <$of>::ALL.iter().map(|value| value.as_str()).collect())
    };
}

fn closed<T: FromStr<Err = UnknownValue> + Display>(text: &str) -> Result<String, UnknownValue> {
    Ok(text.parse::<T>()?.to_string())
}

/// The schemes; without any, `none` if authentication is declared as not required, and `unknown` otherwise.
fn auth_values(auth: &CapabilityAuth) -> Vec<String> {
    let known = auth.schemes.iter().filter(|scheme| **scheme != AuthScheme::Unknown);
    let known: Vec<String> = known.map(ToString::to_string).collect();
    match (known.is_empty(), auth.required) {
        (false, _) => known,
        (true, Tristate::No) => vec![AuthScheme::None.to_string()],
        (true, _) => vec![AuthScheme::Unknown.to_string()],
    }
}

filters! {
    Format = "format" {
        label: "Format",
        dashboard_position: Some(3),
        operator: Some("format"),
        parameter: Some(""),
        entry_path: "metadata.format",
        tool_argument: Some("Only capabilities declared in one of these dialects."),
        vocabulary: vocabulary!(Format),
        parse: closed::<Format>,
        values_of: |source| vec![source.format.to_string()],
    }
    SemanticType = "semantic_type" {
        label: "What it does",
        dashboard_position: Some(1),
        operator: Some("type"),
        parameter: Some("`namespace:type`; a `*` at the end stands for any continuation."),
        entry_path: "metadata.semanticType",
        tool_argument: Some("Only these types, like travel:flight-booking or travel:*."),
        values_of: |source| source.semantic_types.iter().map(|name| name.to_lowercase()).collect(),
    }
    Namespace = "namespace" {
        label: "Field",
        parameter: Some(""),
        values_of: |source| {
            let names = source.semantic_types.iter();
            names.filter_map(|name| Some(semantic_namespace(name)?.to_lowercase())).collect()
        },
    }
    Method = "method" {
        label: "Method",
        dashboard_position: Some(6),
        operator: Some("method"),
        parameter: Some(""),
        entry_path: "metadata.method",
        tool_argument: Some("Only capabilities called by one of these HTTP verbs."),
        vocabulary: vocabulary!(Method),
        parse: |text| closed::<Method>(&text.to_ascii_uppercase()),
        values_of: |source| source.method.iter().map(|method| (*method).to_owned()).collect(),
    }
    Safety = "safety" {
        label: "Safety",
        dashboard_position: Some(4),
        operator: Some("safety"),
        parameter: Some(""),
        entry_path: "metadata.safety",
        tool_argument: Some("Only capabilities of one of these classes."),
        vocabulary: vocabulary!(SafetyClass),
        parse: closed::<SafetyClass>,
        values_of: |source| vec![source.safety.to_string()],
    }
    Auth = "auth" {
        label: "Authentication",
        dashboard_position: Some(5),
        operator: Some("auth"),
        parameter: Some(""),
        entry_path: "metadata.auth",
        tool_argument: Some(
            "Only capabilities that accept one of these schemes; none for those without authentication.",
        ),
        vocabulary: vocabulary!(AuthScheme),
        parse: closed::<AuthScheme>,
        values_of: |source| auth_values(source.auth),
    }
    Site = "site" {
        label: "Site",
        dashboard_position: Some(8),
        operator: Some("site"),
        parameter: Some("Sites or hosts."),
        entry_path: "metadata.site",
        tool_argument: Some("Only capabilities of these domains."),
        values_of: |source| vec![source.url.site().to_string()],
    }
    Status = "status" {
        label: "Freshness",
        dashboard_position: Some(7),
        parameter: Some(""),
        entry_path: "metadata.status",
        vocabulary: vocabulary!(Status),
        parse: closed::<Status>,
        values_of: |source| vec![source.status.to_string()],
    }
    AgentEndpoint = "agent_endpoint" {
        label: "Agents connect by",
        dashboard_position: Some(2),
        parameter: Some("Only capabilities of sites with an MCP server or an A2A agent, declared in a document that speaks for the site."),
        tool_argument: Some("Only capabilities of sites with such an endpoint: an MCP server, an A2A agent."),
        vocabulary: vocabulary!(AgentEndpoint),
        parse: closed::<AgentEndpoint>,
        // A document has its own values; searches filter and count by those of its site.
        values_of: |source| source.agent_endpoints.iter().map(ToString::to_string).collect(),
    }
    Source = "source" {
        label: "Source",
        parameter: Some(""),
        entry_path: "metadata.source",
        vocabulary: vocabulary!(SourceKind),
        parse: closed::<SourceKind>,
        values_of: |source| vec![source.source.to_string()],
    }
    Degraded = "degraded" {
        label: "Degraded",
        parameter: Some("Whether the publisher declares it impaired."),
        vocabulary: vocabulary!(Degraded),
        parse: closed::<Degraded>,
        values_of: |source| vec![source.degraded.to_string()],
    }
    Identity = "identity" {
        label: "Identity",
        dashboard_position: Some(9),
        parameter: Some(
            "`bound` leaves out what names another publisher than the site that serves it, and what only others name; `verified` is bound and signed.",
        ),
        tool_argument: Some("Only capabilities with one of these: bound to the site that serves them, verified by a signature."),
        vocabulary: vocabulary!(IdentityMark),
        parse: closed::<IdentityMark>,
        values_of: |source| source.identity.iter().map(ToString::to_string).collect(),
    }
    Verified = "verified" {
        label: "Verified",
        parameter: Some("Whether a signature by a key of the publisher's own site proves who published it."),
        vocabulary: vocabulary!(Verified),
        parse: closed::<Verified>,
        values_of: |source| match source.identity.as_slice() {
            [] => Vec::new(),
            marks => vec![marks.contains(&IdentityMark::Verified).to_string()],
        },
    }
    NamedBy = "named_by" {
        label: "Named by",
        parameter: Some("`site` leaves out documents that only other sites and clients name, such as files of a site's users."),
        vocabulary: vocabulary!(NamedBy),
        parse: closed::<NamedBy>,
        values_of: |source| vec![source.named_by.to_string()],
    }
    Price = "price" {
        label: "Price",
        dashboard_position: Some(10),
        parameter: Some("Whether its publisher declares that a call is free or costs something. Most declare neither."),
        tool_argument: Some("Only capabilities whose publisher declares that a call is free, or that it is paid."),
        vocabulary: vocabulary!(Cost),
        parse: closed::<Cost>,
        values_of: |source| source.price.and_then(Payment::cost).iter().map(ToString::to_string).collect(),
    }
    Payment = "payment" {
        label: "Payment",
        is_free_text: true,
        parameter: Some("Schemes of payment that a publisher declares, as `x402`."),
        tool_argument: Some("Only capabilities that are paid by one of these schemes, like x402."),
        values_of: |source| source.payment_schemes.clone(),
    }
    Kind = "kind" {
        label: "Kind",
        entry_path: "metadata.kind",
        vocabulary: vocabulary!(CapabilityKind),
        parse: closed::<CapabilityKind>,
        values_of: |source| vec![source.kind.to_string()],
    }
    Language = "language" {
        label: "Language",
        parameter: Some("Primary subtags, as `en`."),
        values_of: |source| vec![source.language.to_owned()],
    }
    MediaType = "media_type" {
        label: "Media type",
        is_free_text: true,
        entry_path: "type",
        values_of: |source| vec![source.media_type.to_lowercase()],
    }
    Publisher = "publisher" {
        label: "Publisher",
        entry_path: "publisher",
        // The publisher of a document that only others name is unknown.
        values_of: |source| match source.named_by {
            NamedBy::Site => vec![source.publisher.to_lowercase()],
            NamedBy::Others => Vec::new(),
        },
    }
    Tag = "tag" {
        label: "Tag",
        is_free_text: true,
        entry_path: "tags",
        values_of: |source| source.tags.iter().map(|tag| tag.to_lowercase()).collect(),
    }
}

impl FacetKey {
    /// The filter of an operator in a phrasing.
    pub(crate) fn of_operator(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|key| key.filter().operator == Some(name))
    }

    /// The operator that a name misspells by one letter.
    pub(crate) fn operator_near(name: &str) -> Option<&'static str> {
        settings::nearest(name, Self::ALL.iter().filter_map(|key| key.filter().operator), 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_have_distinct_operators_paths_and_positions() {
        let filters: Vec<&Filter> = FacetKey::ALL.iter().map(|key| key.filter()).collect();
        let operators: Vec<&str> = filters.iter().filter_map(|filter| filter.operator).collect();
        let paths: Vec<&str> =
            filters.iter().map(|filter| filter.entry_path).filter(|path| !path.is_empty()).collect();
        let positions: Vec<u8> = filters.iter().filter_map(|filter| filter.dashboard_position).collect();
        assert_eq!(operators.iter().collect::<BTreeSet<_>>().len(), operators.len());
        assert_eq!(paths.iter().collect::<BTreeSet<_>>().len(), paths.len());
        assert_eq!(positions.iter().collect::<BTreeSet<_>>().len(), positions.len());
    }

    #[test]
    fn values_of_authentication_agree_with_what_pages_say() {
        use AuthScheme::{None, OAuth2, Unknown};
        for (schemes, required, values) in [
            (vec![], Tristate::No, vec!["none"]),
            (vec![Unknown], Tristate::No, vec!["none"]),
            (vec![None], Tristate::Unknown, vec!["none"]),
            (vec![], Tristate::Unknown, vec!["unknown"]),
            (vec![], Tristate::Yes, vec!["unknown"]),
            (vec![OAuth2, Unknown], Tristate::Yes, vec!["oauth2"]),
            (vec![OAuth2], Tristate::No, vec!["oauth2"]),
        ] {
            let auth = CapabilityAuth { schemes, required, ..CapabilityAuth::default() };
            assert_eq!(auth_values(&auth), values, "{auth:?}");
        }
    }

    #[test]
    fn accepts_every_known_value_and_lists_them_for_an_unknown_one() {
        for key in FacetKey::ALL {
            let mut filters = Filters::default();
            let Some(vocabulary) = key.filter().vocabulary else {
                filters.add(*key, "Any").unwrap();
                assert!(filters.values(*key).eq(["any"]));
                continue;
            };
            for value in vocabulary() {
                filters.add(*key, value).unwrap();
            }
            assert!(filters.values(*key).eq(vocabulary().into_iter().collect::<BTreeSet<_>>()));
            assert_eq!(filters.add(*key, "?").unwrap_err().known, vocabulary().join(", "));
        }
    }
}
