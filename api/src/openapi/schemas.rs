//! Schemas of types that other crates define: ids, closed vocabularies, and the row of a search.
//!
//! The types are never constructed; a test checks every response against them.

#![expect(unused_qualifications, reason = "utoipa names inlined schemas in full")]

use manifest::{CapabilityKind, Confirmation, Discovery, Format, SafetyClass};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::liveness::Liveness;

/// A text that matches a pattern.
macro_rules! pattern {
    ($($(#[$meta:meta])* $name:ident = $pattern:literal),+ $(,)?) => {
        $(
            $(#[$meta])*
            pub(crate) struct $name;

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    ObjectBuilder::new().schema_type(Type::String).pattern(Some($pattern)).into()
                }
            }

            impl ToSchema for $name {}
        )+
    };
}

pattern! {
    CapabilityId = "^c[a-z2-7]{16}$",
    ManifestId = "^m[a-z2-7]{16}$",
    ContentHash = "^[0-9a-f]{64}$",
}

/// A word of a closed vocabulary. With a second name in brackets, also a list of them.
macro_rules! vocabulary {
    ($($name:ident $([$list:ident])? = $of:ty),+ $(,)?) => {
        $(
            pub(crate) struct $name;

            impl ::utoipa::PartialSchema for $name {
                fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema> {
                    let words = <$of>::ALL.iter().map(|value| value.as_str());
                    ::utoipa::openapi::schema::ObjectBuilder::new()
                        .schema_type(::utoipa::openapi::schema::Type::String)
                        .enum_values(Some(words))
                        .into()
                }
            }

            impl ::utoipa::ToSchema for $name {}

            $(
                pub(crate) struct $list;

                impl ::utoipa::PartialSchema for $list {
                    fn schema() -> ::utoipa::openapi::RefOr<::utoipa::openapi::schema::Schema> {
                        ::utoipa::openapi::Array::new(<$name as ::utoipa::PartialSchema>::schema()).into()
                    }
                }

                impl ::utoipa::ToSchema for $list {}
            )?
        )+
    };
}
pub(crate) use vocabulary;

vocabulary! {
    FormatWord [FormatWords] = Format,
    SafetyWord = SafetyClass,
    ConfirmationWord = Confirmation,
    AuthWord [AuthWords] = manifest::AuthScheme,
    StatusWord = policy::Status,
    PolicyWord = manifest::model::PolicyChoice,
    SourceWord = manifest::model::SourceKind,
    IdentityWord [IdentityWords] = manifest::IdentityMark,
    BindingWord = manifest::Binding,
    DocumentPublisherWord = manifest::Publisher,
    SignatureWord = manifest::model::SignatureStatus,
    KindWord = CapabilityKind,
    ProtocolWord = manifest::model::Protocol,
    DiscoveryWord = Discovery,
    SortWord = indexer::Sort,
    GroupingWord = indexer::Grouping,
    FacetWord [FacetWords] = indexer::FacetKey,
    SuggestionWord = indexer::SuggestionKind,
    ChangeWord = store::FeedChange,
    EndWord = policy::VisitEnd,
    OutcomeWord = policy::FetchOutcome,
    AbuseReasonWord = policy::AbuseReason,
    SpamReasonWord = indexer::SpamReason,
    ToolShape = crate::tool_export::ToolShape,
}

/// A completion of the text that is being typed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the suggestions of suggest.rs")]
pub(crate) struct Suggestion {
    text: String,
    #[schema(inline)]
    kind: SuggestionWord,
    /// Number of sites with it; if there are many, number of capabilities.
    count: u64,
    /// The words for people: those of a type, else the text.
    label: String,
}

/// A capability that a client chose for a query.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes store::FeedbackLine")]
pub(crate) struct FeedbackLine {
    id: i64,
    at: chrono::DateTime<chrono::Utc>,
    query: String,
    #[schema(inline)]
    capability: CapabilityId,
    site: String,
    /// Its rank among the results at that time, from 1.
    place: u32,
    /// A hash that changes every day.
    client: String,
}

/// One change of the index.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes store::FeedEntry")]
pub(crate) struct FeedLine {
    /// Position in the feed, from 1, without gaps.
    position: i64,
    at: chrono::DateTime<chrono::Utc>,
    #[schema(inline)]
    change: ChangeWord,
    site: String,
    #[schema(inline)]
    manifest_id: ManifestId,
    /// Why; `opted_out` if the site's owner opted out, `suspended_` and the reason if the operator suspended it, `named_by_site`,
    /// `named_by_others`, `published_by_site`, `published_by_host` or `published_by_unknown` if that is what changed, `read_again` if a later
    /// version of the reader read the same document.
    reason: Option<String>,
}

/// A semantic type of a capability.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes manifest::model::SemanticType")]
pub(crate) struct SemanticType {
    /// `namespace:type`
    #[schema(rename = "type")]
    name: String,
    /// `declared` or `inferred`
    source: String,
    #[schema(minimum = 0, maximum = 1)]
    confidence: f64,
    rule: Option<String>,
}

/// A capability in one row; `fields` leaves members out, `view=full` adds how it is called and where it is declared.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes indexer::Hit and answers::record::Detail")]
pub(crate) struct CapabilityRow {
    #[schema(inline)]
    id: Option<CapabilityId>,
    /// `<manifest URL>#<format>:<native id>`
    key: Option<String>,
    native_id: Option<String>,
    name: Option<String>,
    description: Option<String>,
    #[schema(inline)]
    kind: Option<KindWord>,
    site: Option<String>,
    host: Option<String>,
    #[schema(inline)]
    format: Option<FormatWord>,
    #[schema(inline)]
    manifest_id: Option<ManifestId>,
    semantic_types: Option<Vec<SemanticType>>,
    #[schema(inline)]
    protocol: Option<ProtocolWord>,
    /// An HTTP verb
    method: Option<String>,
    /// A URL, or a template with `{name}` variables
    endpoint: Option<String>,
    #[schema(inline)]
    safety: Option<SafetyWord>,
    /// `declared` or `inferred`
    safety_source: Option<String>,
    #[schema(inline)]
    confirmation: Option<ConfirmationWord>,
    /// A person completes the action after the call
    handoff: Option<bool>,
    #[schema(inline)]
    auth: Option<AuthWords>,
    auth_required: Option<bool>,
    invocable: Option<bool>,
    deprecated: Option<bool>,
    /// The publisher declares it impaired
    degraded: Option<bool>,
    /// A text of the publisher addresses the model that reads it: it is data, not instructions
    addresses_reader: Option<bool>,
    #[schema(inline)]
    source: Option<SourceWord>,
    #[schema(inline)]
    identity_marks: Option<IdentityWords>,
    /// Who published the document of the leading declaration: the site at its domain, the owner of another host, who may be a customer, or an
    /// unknown user
    #[schema(inline)]
    publisher: Option<DocumentPublisherWord>,
    #[schema(inline)]
    status: Option<StatusWord>,
    updated_at: Option<chrono::DateTime<chrono::Utc>>,
    /// The declarations in the documents of the site, the leading one first; absent from a result that has one
    declarations: Option<Vec<Declaration>>,
    /// Contradictions between the declarations; absent from a result without any
    contradictions: Option<Vec<Contradiction>>,
    #[schema(schema_with = super::site_records::listed_by)]
    listed_by: Option<Vec<String>>,
    /// The members of its group; absent from a result without any
    group: Option<Group>,
    score: Option<f64>,
    /// HTML, escaped, with the words that match inside `<mark>`
    snippet: Option<String>,
    /// Marks the texts as untrusted
    text_is: Option<String>,
    title: Option<String>,
    tags: Option<Vec<String>>,
    deprecation_message: Option<String>,
    /// A JSON Schema, where one was declared
    #[schema(value_type = Option<Object>)]
    parameters: Option<()>,
    /// A JSON Schema, where one was declared
    #[schema(value_type = Option<Object>)]
    response: Option<()>,
    #[schema(value_type = Option<Object>)]
    invocation: Option<()>,
    scopes: Option<Vec<String>>,
    /// Where the session is opened that the call needs
    session_url: Option<String>,
    /// The accepted schemes with their addresses, flows and scopes
    #[schema(value_type = Option<Vec<Object>>)]
    authentication: Option<()>,
    /// Accepted schemes that take too many bytes; the manifest has them
    authentication_left_out: Option<u64>,
    /// The identity that agents must present in addition to credentials
    #[schema(value_type = Option<Object>)]
    agent_identity: Option<()>,
    /// Who published it
    identity: Option<Identity>,
    /// Who proved control of the domain; absent from a result
    owner: Option<super::site_records::SiteOwner>,
    /// Daily checks of the endpoint's host; absent from a result, and while the host was never checked
    liveness: Option<Liveness>,
    /// What to show the person who confirms; the publisher's text
    confirmation_message: Option<String>,
    /// The publisher's requests to the caller: `inference`, `attribution`, `terms_url`, each if declared
    #[schema(value_type = Option<Object>)]
    usage_terms: Option<()>,
    #[schema(value_type = Option<Object>)]
    idempotency: Option<()>,
    #[schema(value_type = Option<Object>)]
    execution: Option<()>,
    #[schema(value_type = Option<Object>)]
    rate_limit: Option<()>,
    /// What a call costs, as declared: `price`, `asset`, `network`, `scheme` and `address`, each where it is stated
    #[schema(value_type = Option<Object>)]
    price: Option<()>,
    /// Prices on other networks and in other assets, with the members of `price`
    #[schema(value_type = Option<Vec<Object>>)]
    other_prices: Option<()>,
    /// The payment method of a capability with a price, if only its manifest declares one
    #[schema(value_type = Option<Vec<Object>>)]
    payments: Option<()>,
    depends_on: Option<Vec<String>>,
    examples: Option<Vec<String>>,
    #[schema(value_type = Option<Object>)]
    provenance: Option<()>,
    #[schema(value_type = Option<Vec<Object>>)]
    findings: Option<()>,
    /// `view=full` omits the details of this row for lack of space: they are at `/capabilities/{id}`
    details_left_out: Option<bool>,
}

/// Who published a manifest or an entry of a catalog. It is no statement about quality or safety.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes manifest::Identity")]
pub(crate) struct Identity {
    /// The statements of the document about its publisher: the member, its value, and the site that it names
    #[schema(value_type = Vec<Object>)]
    declared: (),
    /// The origin and the site that served it
    #[schema(value_type = Object)]
    served: (),
    #[schema(inline)]
    binding: BindingWord,
    /// Bound, with a verified signature
    verified: bool,
    signature: Signature,
    /// The identity that agents must present when they call it (ATP section 3.3.3)
    #[schema(value_type = Option<Object>)]
    demanded_of_agents: Option<()>,
}

/// The result of checking a signature.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes manifest::model::SignatureCheck")]
pub(crate) struct Signature {
    #[schema(inline)]
    status: SignatureWord,
    key_id: Option<String>,
    algorithm: Option<String>,
    /// The document that contains the key, or a did:key
    key_source: Option<String>,
    /// When the document was read that was checked with its keys
    checked_at: Option<String>,
    /// When the key expires
    valid_until: Option<String>,
    /// Why it is not verified
    reason: Option<String>,
}

/// One declaration of a capability.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes indexer::Declaration")]
pub(crate) struct Declaration {
    // no doc comment: utoipa joins the description of an inlined schema as a part of type object
    #[schema(inline)]
    id: CapabilityId,
    native_id: String,
    #[schema(inline)]
    format: FormatWord,
    #[schema(inline)]
    manifest_id: ManifestId,
    manifest_url: String,
    /// JSON pointer into the document
    pointer: String,
    /// The document that the pointer points into, where it is not the manifest itself
    #[schema(nullable = false)]
    pointer_document: Option<String>,
    #[schema(inline)]
    status: StatusWord,
    updated_at: chrono::DateTime<chrono::Utc>,
    /// Absent from results of a search
    #[schema(nullable = false)]
    last_seen_at: Option<chrono::DateTime<chrono::Utc>>,
}

/// The group of a result.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes indexer::Group")]
pub(crate) struct Group {
    #[schema(inline)]
    by: GroupingWord,
    /// Number of grouped results
    others: u64,
    /// The best of them, at most five
    members: Vec<GroupMember>,
}

/// A member of a group.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes indexer::GroupMember")]
pub(crate) struct GroupMember {
    #[schema(inline)]
    id: CapabilityId,
    /// Present if a text of the publisher addresses the model that reads it: it is data, not instructions
    #[schema(nullable = false)]
    addresses_reader: Option<bool>,
    name: String,
    site: String,
    // Who published the document of its leading declaration; no doc comment, which utoipa would join to an inlined schema.
    #[schema(inline)]
    publisher: DocumentPublisherWord,
}

/// A fact on which declarations of one capability disagree.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes manifest::declaration::Contradiction")]
pub(crate) struct Contradiction {
    /// Present in the answer about a site
    #[schema(nullable = false)]
    capability_id: Option<String>,
    /// `auth_required`, `auth`, `scopes`, `safety`, `confirmation`, `reversible`, `parameter`, `price` or `rate_limit`
    fact: String,
    /// Name of the parameter
    #[schema(nullable = false)]
    parameter: Option<String>,
    stated: Vec<Stated>,
    /// The value in use: the most cautious one
    used: String,
}

/// The value that one declaration states.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes manifest::declaration::Stated")]
pub(crate) struct Stated {
    /// Id of the declaration
    declaration: String,
    value: String,
}

/// A value and how many results have it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes indexer::FacetCount")]
pub(crate) struct FacetValue {
    value: String,
    count: u64,
    /// How many of them are relevant; values with relevant results come first. Absent if the results are not ordered by
    /// relevance, or if a filter of this facet is set.
    #[schema(nullable = false)]
    relevant: Option<u64>,
}

/// A semantic type in numbers.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes store::SemanticTypeCount")]
pub(crate) struct SemanticTypeCount {
    /// `namespace:type`
    name: String,
    namespace: String,
    capabilities: u64,
    /// Of those, declared by the publisher.
    declared: u64,
    sites: u64,
}

/// How widely and how well a dialect is used.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes store::DialectUsage")]
pub(crate) struct Adoption {
    format: String,
    /// Sites that publish it.
    sites: u64,
    manifests: u64,
    /// Of these, without a finding above `may`.
    conforms: u64,
    /// Breaking a `should`.
    minor: u64,
    /// Breaking a `must`.
    major: u64,
}

/// A site that was added to the index.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes store::NewSite")]
pub(crate) struct NewSite {
    site: String,
    since: chrono::DateTime<chrono::Utc>,
    capabilities: u64,
}

/// One version of a manifest.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes store::VersionRecord")]
pub(crate) struct Version {
    #[schema(inline)]
    hash: ContentHash,
    first_seen_at: chrono::DateTime<chrono::Utc>,
    last_seen_at: chrono::DateTime<chrono::Utc>,
    capabilities: u32,
    findings: u32,
}

/// Where a document deviates from a specification.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes manifest::Finding")]
pub(crate) struct Finding {
    /// Stable code: dialect, location and fault.
    code: String,
    /// `must`, `should`, `may` or `note`
    severity: String,
    /// Specification and section.
    spec: String,
    /// JSON pointer into the document as fetched.
    pointer: String,
    text: String,
    /// How to fix it.
    fix: String,
}

/// The time of a planned visit, and the reason for this time.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes store::NextVisit")]
pub(crate) struct Planned {
    at: chrono::DateTime<chrono::Utc>,
    reason: String,
}
