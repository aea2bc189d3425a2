//! The input document: bytes, how they were served, size limits, and the findings that apply to every dialect.

use serde_json::Value;

use crate::model::{Discovery, Format, Served};
use crate::name::ManifestUrl;
use crate::object::Object;
use crate::rule::findings;

/// A document to read, and how it was discovered and served.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    pub bytes: &'a [u8],
    /// The URL that was requested.
    pub url: &'a ManifestUrl,
    /// The URL after redirects, if it differs from `url`.
    pub final_url: Option<&'a ManifestUrl>,
    pub discovery: Discovery,
    /// If `None`, the rules about how a document is served are not checked.
    pub served: Option<&'a Served>,
    /// Documents that were fetched for this one's links with [`crate::model::Follow::Merge`].
    pub linked: &'a [LinkedDocument<'a>],
    /// Overrides the detected format.
    pub force: Option<Format>,
}

/// A document that completes another one. It has no bytes if no document could be fetched at its URL.
#[derive(Debug, Clone, Copy)]
pub struct LinkedDocument<'a> {
    pub url: &'a ManifestUrl,
    pub bytes: &'a [u8],
}

/// A document after parsing its syntax.
pub(crate) enum Body<'b> {
    Json(&'b Value),
    Text(&'b str),
}

impl<'b> Body<'b> {
    /// The root object, when the document is one.
    pub(crate) fn root(&self) -> Option<Object<'b>> {
        match self {
            Self::Json(Value::Object(map)) => Some(Object::root(map)),
            _ => None,
        }
    }

    pub(crate) const fn text(&self) -> Option<&'b str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Json(_) => None,
        }
    }
}

/// Largest document that is parsed: four times the largest published OpenAPI documents.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1_024 * 1_024;
/// Largest manifest that is read; only OpenAPI documents may be longer.
pub(crate) const MANIFEST_BYTES_MAX: usize = 4 * 1_024 * 1_024;
/// Size in bytes above which a finding recommends a shorter manifest: six times the 95th percentile of published manifests.
pub(crate) const MANIFEST_BYTES_ADVISED: usize = 256 * 1_024;

findings! {
    rule TOO_LONG: Must("document.too_long", "agentdex limits")
        "the document is longer than the limit"
            => "Publish a manifest below 4 MiB (OpenAPI documents: 16 MiB); link to details instead of embedding them.";
    rule LONG: May("document.long", "agentdex limits")
        "the document is longer than recommended for agents"
            => "Keep manifests below 256 KiB; link to details instead of embedding them.";
    rule NOT_JSON: Must("document.not_json", "RFC 8259")
        "text or binary data at a path that requires JSON"
            => "Publish JSON at this path, or respond with 404 if there is no manifest.";
    rule NO_OBJECT: Must("document.no_object", "RFC 8259 §4")
        "the root is not a JSON object, which the format requires" => "Publish one object with the members of the format.";
    rule WRAPPED: Must("document.wrapped", "AWP 0.1 §5, ATP 0.1 §3, WoA §5, agents.json 0.1.0, ARWS layer 1; and the same in A2A, ARD, MCP and others")
        "the manifest is inside a member of the root" => "Publish its members at the root of the document.";
    rule OVER_BUDGET: Must("document.over_budget", "agentdex limits")
        "the document exceeds the limits on nesting, values or text"
            => "Flatten or split the document until it is within the stated limit; link to details instead of embedding them.";
    rule TRUNCATED: Must("document.truncated", "agentdex limits")
        "the body was cut at the size cap while it was fetched" => "Publish a shorter document.";
    rule SYNTAX: Must("json.syntax", "RFC 8259")
        "the document is not JSON" => "Correct the document at this place; an editor for JSON marks it.";
    rule DUPLICATE: Should("json.duplicate_name", "RFC 8259 §4")
        "a name occurs twice in one object; the last value counts" => "Keep one of the two.";
    rule TOO_DEEP: Should("json.too_deep", "RFC 8259 §9")
        "a value is nested deeper than 64 levels and was dropped" => "Flatten the structure.";
    rule STRING_CUT: Should("json.string_too_long", "RFC 8259 §9")
        "a string is longer than 64 KiB and was cut" => "Shorten the text or link to it.";
    rule CONTROL: Should("text.control_characters", "UTS 39 §5")
        "control characters were removed" => "Publish text without invisible characters.";
    rule BIDI: Should("text.bidi_characters", "UTS 39 §5")
        "characters that reorder text were removed" => "Publish text without invisible characters.";
    rule ZERO_WIDTH: Should("text.zero_width_characters", "UTS 39 §5")
        "invisible characters were removed" => "Publish text without invisible characters.";
    rule TAGS: Should("text.tag_characters", "UTS 39 §5")
        "tag characters, which spell invisible text, were removed" => "Publish text without invisible characters.";
}
