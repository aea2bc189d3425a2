//! The manifest under construction, which every parser fills.
//!
//! A parser takes three kinds of steps, in any order:
//! - `draft.check(&object, &SHAPE)` reports every field of a shape that is missing, mistyped or malformed;
//! - `draft.manifest.… = …` fills the model from the lenient getters of [`Object`];
//! - `draft.begin(…)` begins a capability, the parser fills it, `draft.push(…)` completes and keeps it.
//!
//! The draft holds the caps (findings, capabilities), infers missing values, and assesses conformance at the end.

mod addresses;
mod blank;
mod credentials;
mod lists;
mod steering;
mod texts;

pub(crate) use addresses::Places;
pub(crate) use credentials::restrict_to_needing;
pub(crate) use lists::FINDINGS as LIST_FINDINGS;
pub(crate) use texts::{LINE_BYTES_MAX, NAME_BYTES_MAX, description, joined_title, name, tags, title};

use std::borrow::Cow;
use std::collections::BTreeMap;

use url::Url;

use blank::blank;

use crate::budget;
use crate::check::Null;
use crate::document::{self, Document};
use crate::hash::{HashMap, HashSet};
use crate::json::push_index;
use crate::model::{
    Capability, CapabilityKind, Conformance, ConformanceLevel, Detection, Finding, Format, Manifest,
    Severity, Strength,
};
use crate::name::ManifestUrl;
use crate::object::Object;
use crate::public_address::not_public;
use crate::rule::{Field, Rule, Shape, findings};
use crate::{check, safety, schema, semantic, text};

/// Maximum number of capabilities kept from one document: five times the largest published list seen.
pub(crate) const CAPABILITIES_MAX: usize = 5_000;
/// Number of capabilities for which space is reserved: few documents have more.
const CAPABILITIES_EXPECTED: usize = 32;
/// Memory for the model of one document, which bounds values repeated by reference or by default: twice the memory for the largest
/// published document.
const MODEL_BYTES_MAX: usize = 64 * 1_024 * 1_024;
/// Memory for the whole manifest, including what was not counted piece by piece, such as findings. Its JSON is shorter, and the manifest
/// that the store reads back is larger.
const MANIFEST_MEMORY_MAX: usize = 72 * 1_024 * 1_024;
/// Maximum number of bytes of a document whose model is never too large: in the worst case, a text of half the document is copied to every
/// capability of the other half, which takes a twentieth of [`MANIFEST_MEMORY_MAX`].
const SMALL_BYTES_MAX: usize = 16 * 1_024;
/// Maximum number of findings kept for one code; the last one states how many more there are.
pub(crate) const FINDINGS_PER_CODE_MAX: usize = 20;
/// Maximum number of characters of a name: the limit of ATP's schema.
pub(crate) const NAME_CHARS_MAX: usize = 200;
/// Maximum number of characters of a description in the model; the whole document is stored elsewhere.
pub(crate) const DESCRIPTION_CHARS_MAX: usize = 2_000;
/// Maximum number of characters of a native id; longer ones are truncated.
const NATIVE_ID_CHARS_MAX: usize = 200;
/// Maximum number of characters of the text of a finding, which may quote the document.
const FINDING_CHARS_MAX: usize = 1_000;
/// Maximum number of bytes of a finding's pointer: a longer pointer is truncated, so that it points at a part that contains the value.
const POINTER_BYTES_MAX: usize = 4_096;
/// Maximum number of tags kept from one manifest or capability.
const TAGS_MAX: usize = 64;
/// Maximum number of characters of one tag.
const TAG_CHARS_MAX: usize = 100;

findings! {
    rule CAPABILITIES_CUT: Should("document.capabilities.too_many", "agentdex limits")
        "the document declares more capabilities than are read"
            => "Split the document, or declare the most needed capabilities first.";
    rule UNDERSTATED: Note("safety.understated", "agentdex safety")
        "a capability's name implies a consequence that its declaration omits"
            => "Declare how the call changes things (sensitivity, sideEffects, annotations), or rename it.";
    rule ADDRESSES_READER: Note("text.addresses_reader", "agentdex untrusted text")
        "a text addresses the model that reads it instead of describing the service"
            => "Describe what the capability does; instructions to readers are shown as quoted data and never affect ranking.";
    rule INSECURE: Should("address.insecure", "RFC 9325 §3.2")
        "an address is not https" => "Serve the endpoint over https and publish its https address.";
    rule NOT_PUBLIC: Should("address.not_public", "RFC 6890 §2.2")
        "an address is not on the public Internet: agents cannot reach it"
            => "Publish the public address of the service.";
    rule UNUSABLE: Should("address.unusable", "RFC 3986 §5")
        "an address cannot be resolved to an absolute URL" => "Publish a path that begins with / or an absolute https URL.";
}

/// Selects the finding codes of one specification.
pub(crate) type CodeFilter = fn(&str) -> bool;

/// The location of a finding.
#[derive(Default)]
pub(crate) struct FindingLocation {
    /// JSON pointer; empty for the whole document.
    pub(crate) pointer: String,
    /// URL of the linked document that the pointer is for; `None` for the document itself.
    pub(crate) document: Option<String>,
}

impl FindingLocation {
    pub(crate) fn of(capability: &Capability) -> Self {
        Self { pointer: capability.pointer.clone(), document: capability.pointer_document.clone() }
    }
}

pub(crate) struct Draft<'d> {
    pub(crate) document: &'d Document<'d>,
    pub(crate) manifest: Manifest,
    counts: BTreeMap<Cow<'static, str>, usize>,
    native_ids: HashMap<String, usize>,
    /// Bytes of memory of the capabilities and of the other lists. `full` is set when a capability was refused.
    kept_bytes: usize,
    full: bool,
    specs: Vec<(&'static str, CodeFilter)>,
    /// Pointer of the part that is read as a separate document; empty for the whole.
    base_pointer: String,
    /// Pointers of texts that address the reader, as far as the document was searched: `None` for texts without pointers.
    steering: Option<Vec<String>>,
    /// The first line of a text that addresses the reader; 0 if the text spans several lines.
    steering_line: Option<usize>,
    /// Pointers for findings about the whole document.
    pub(crate) places: Places,
    /// Whether the document was served by a host that is not public and that the operator allows, so that its addresses may be private.
    is_private: bool,
    /// Addresses that are not public and were reported at their own pointers.
    not_public: HashSet<String>,
    /// URL of the linked document that is read: findings point into it.
    pointer_document: Option<String>,
    /// The folder below which paths are resolved, if the service shares its host with others.
    folder: Option<Url>,
}

impl<'d> Draft<'d> {
    pub(crate) fn new(document: &'d Document<'d>, detection: Detection) -> Self {
        let served_as = document.final_url.unwrap_or(document.url);
        Self {
            document,
            manifest: blank(document, served_as.origin(), detection),
            counts: BTreeMap::new(),
            native_ids: HashMap::default(),
            kept_bytes: 0,
            full: false,
            specs: Vec::new(),
            base_pointer: String::new(),
            steering: None,
            steering_line: None,
            places: Places::default(),
            is_private: not_public(served_as.as_str()).is_some(),
            not_public: HashSet::default(),
            pointer_document: None,
            folder: None,
        }
    }

    pub(crate) const fn format(&self) -> Format {
        self.manifest.detection.format
    }

    /// The URL that answered, against which relative addresses are resolved.
    pub(crate) const fn base(&self) -> &'d ManifestUrl {
        match self.document.final_url {
            Some(url) => url,
            None => self.document.url,
        }
    }

    /// Sets the specification version that the document claims, and the variant within the format.
    pub(crate) fn dialect(&mut self, version: Option<&str>, flavour: Option<&'static str>) {
        self.manifest.detection.version = version.map(|text| text::capped(text, NAME_CHARS_MAX).to_owned());
        self.manifest.detection.dialect = flavour.map(str::to_owned);
    }

    /// Requests a conformance level for a specification, from the findings whose codes `includes` selects. The first
    /// specification is the main one. Findings about syntax apply to all.
    pub(crate) fn assess(&mut self, spec: &'static str, includes: CodeFilter) {
        self.specs.push((spec, includes));
    }

    /// Reads a part as a separate document, whose pointers are relative to the part.
    pub(crate) fn within(&mut self, pointer: &str, read: impl FnOnce(&mut Self)) {
        let outer = self.base_pointer.len();
        self.base_pointer.push_str(pointer);
        read(self);
        self.base_pointer.truncate(outer);
    }

    /// Reads a linked document: findings point into it.
    pub(crate) fn within_linked(&mut self, url: &ManifestUrl, read: impl FnOnce(&mut Self)) {
        let outer = self.pointer_document.replace(url.to_string());
        read(self);
        self.pointer_document = outer;
    }

    // --- findings ---

    /// Reports a violated rule with a text about this document.
    pub(crate) fn report(&mut self, rule: &Rule, pointer: String, text: impl Into<String>) {
        self.add(Cow::Borrowed(rule.code), rule.severity, rule.spec, pointer, text.into(), rule.fix);
    }

    /// Reports a violated rule at a location in this document or in a linked one.
    pub(crate) fn report_at(&mut self, rule: &Rule, location: FindingLocation, text: impl Into<String>) {
        let outer = std::mem::replace(&mut self.pointer_document, location.document);
        self.report(rule, location.pointer, text);
        self.pointer_document = outer;
    }

    /// Refuses the document because of its cost.
    pub(crate) fn refuse(&mut self, rule: &Rule, text: String) {
        self.manifest.detection = Detection::new(Format::Malformed, Strength::Strong, text.clone());
        self.report(rule, String::new(), text);
        self.assess(rule.spec, |_| true);
    }

    /// Reports a violated rule with the text of the rule.
    pub(crate) fn report_rule(&mut self, rule: &Rule, pointer: String) {
        self.report(rule, pointer, rule.wrong);
    }

    /// Checks the fields of an object and reports every violation.
    pub(crate) fn check(&mut self, object: &Object<'_>, shape: &Shape) {
        let null = if self.format().is_core() { Null::Value } else { Null::Absent };
        for field in shape.fields {
            if let Some(flaw) = check::flaw(object.published(field.key), field, null) {
                self.add_flaw(object, shape, field, &flaw);
            }
        }
    }

    fn add_flaw(&mut self, object: &Object<'_>, shape: &Shape, field: &Field, flaw: &check::Flaw) {
        let code = Cow::Owned([shape.code, ".", &field.code_part(), ".", flaw.code_part()].concat());
        let (pointer, severity) = match flaw {
            check::Flaw::Missing(severity) => (object.pointer.clone(), *severity),
            check::Flaw::Element(position, _) => {
                let mut pointer = object.at(field.key);
                push_index(&mut pointer, *position);
                (pointer, field.wrong)
            }
            _ => (object.at(field.key), field.wrong),
        };
        self.add(code, severity, shape.spec, pointer, flaw.message(field), field.fix);
    }

    fn add(
        &mut self,
        code: Cow<'static, str>,
        severity: Severity,
        spec: &'static str,
        pointer: String,
        mut text: String,
        fix: &'static str,
    ) {
        let known = self.counts.get_mut(code.as_ref());
        let count = known.as_ref().map_or(1, |count| **count + 1);
        match known {
            Some(known) => *known = count,
            None => drop(self.counts.insert(code.clone(), count)),
        }
        if count <= FINDINGS_PER_CODE_MAX {
            let pointer = within_cap(self.absolute_pointer(pointer));
            text.truncate(text::capped(&text, FINDING_CHARS_MAX).len());
            let (spec, fix) = (Cow::Borrowed(spec), Cow::Borrowed(fix));
            let pointer_document = self.pointer_document.clone();
            self.manifest.findings.push(Finding {
                code,
                severity,
                spec,
                pointer,
                pointer_document,
                text,
                fix,
            });
        }
    }

    /// The members of the part that is read in which capabilities were found.
    pub(crate) fn members_with_capabilities(&self) -> HashSet<String> {
        let of_part = |pointer: &str| {
            let member = pointer.strip_prefix(self.base_pointer.as_str())?.split('/').nth(1)?;
            Some(member.replace("~1", "/").replace("~0", "~"))
        };
        self.manifest.capabilities.iter().filter_map(|capability| of_part(&capability.pointer)).collect()
    }

    fn absolute_pointer(&self, pointer: String) -> String {
        if self.base_pointer.is_empty() { pointer } else { format!("{}{pointer}", self.base_pointer) }
    }

    // --- capabilities ---

    /// Begins a capability. A blank name is derived from the native id, a blank id from the name or the position.
    pub(crate) fn capability(
        &mut self,
        kind: CapabilityKind,
        native_id: &str,
        name: &str,
        pointer: String,
    ) -> Capability {
        let (id, name) = (native_id.trim(), name.trim());
        let id = [id, name]
            .into_iter()
            .find(|text| !text.is_empty())
            .map_or_else(|| Cow::Owned((self.manifest.capabilities.len() + 1).to_string()), Cow::Borrowed);
        let id = text::capped(&id, NATIVE_ID_CHARS_MAX);
        let label = text::plain(name, NAME_CHARS_MAX)
            .unwrap_or_else(|| text::capped(&text::humanised(id), NAME_CHARS_MAX).to_owned());
        let label = if label.is_empty() { id.to_owned() } else { label };
        let native_id = self.unique_id(id);
        let mut capability =
            Capability::new(self.document.url, self.format(), &native_id, &label, kind, pointer);
        capability.pointer_document.clone_from(&self.pointer_document);
        capability
    }

    /// Makes an id unique in the document: the second `search` becomes `search~2`.
    fn unique_id(&mut self, id: &str) -> String {
        if !self.native_ids.contains_key(id) {
            self.native_ids.insert(id.to_owned(), 1);
            return id.to_owned();
        }
        let mut count = self.native_ids.get(id).copied().unwrap_or_default();
        let mut candidate = id.to_owned();
        // Counting continues after the last repeat, so that no candidate is tried twice for one id.
        while count > 0 {
            count += 1;
            candidate = format!("{id}~{count}");
            if !self.native_ids.contains_key(&candidate) {
                break;
            }
        }
        self.native_ids.insert(id.to_owned(), count.max(1));
        self.native_ids.insert(candidate.clone(), if candidate == id { count.max(1) } else { 1 });
        candidate
    }

    /// Infers missing values and keeps the capability, unless the document has too many already.
    pub(crate) fn push(&mut self, mut capability: Capability) {
        let kept = self.manifest.capabilities.len();
        schema::add_variables(&mut capability.parameters, &capability.invocation);
        if kept >= CAPABILITIES_MAX || !self.charge(budget::memory_of(&capability, MODEL_BYTES_MAX)) {
            self.full = true;
            let text = format!("only the first {kept} capabilities are read");
            self.report(&CAPABILITIES_CUT, capability.pointer, text);
            return;
        }
        if let Some(name) = texts::name_of_unnamed(&capability) {
            capability.name = name;
        }
        safety::infer(&mut capability);
        self.flag_understated(&capability);
        if capability.pointer_document.is_none() {
            capability.pointer = self.absolute_pointer(capability.pointer);
        }
        // Avoids copying large structures each time the list grows.
        if self.manifest.capabilities.is_empty() {
            self.manifest.capabilities.reserve(CAPABILITIES_EXPECTED);
        }
        self.manifest.capabilities.push(capability);
    }

    /// Counts memory of the model. Returns false if the limit is reached.
    pub(crate) fn charge(&mut self, bytes: usize) -> bool {
        self.kept_bytes = self.kept_bytes.saturating_add(bytes);
        self.kept_bytes <= MODEL_BYTES_MAX
    }

    /// Whether further capabilities are dropped, so that long loops can end early.
    pub(crate) const fn is_full(&self) -> bool {
        self.full
    }

    fn flag_understated(&mut self, capability: &Capability) {
        if let Some(danger) = safety::understated(&capability.native_id, capability.safety.class) {
            let text = format!(
                "\"{}\" contains \"{danger}\", classed {}",
                capability.native_id, capability.safety.class
            );
            self.report(&UNDERSTATED, capability.pointer.clone(), text);
        }
    }

    /// Adds the number of omitted findings and the conformance levels.
    ///
    /// A manifest that takes more memory than allowed becomes an unreadable document.
    pub(crate) fn finish(mut self) -> Manifest {
        semantic::infer(&mut self.manifest);
        credentials::restrict(&mut self.manifest);
        credentials::complete(&mut self.manifest);
        if !self.is_small() && budget::memory_of(&self.manifest, MANIFEST_MEMORY_MAX) > MANIFEST_MEMORY_MAX {
            self.refuse_model();
        }
        self.flag_steering_texts();
        self.count_omitted_findings();
        for (spec, includes) in std::mem::take(&mut self.specs) {
            let level = self.level(includes);
            self.manifest.conformance.push(Conformance { spec: Cow::Borrowed(spec), level });
        }
        self.manifest
    }

    /// Whether the document is so small that the memory of its model need not be counted.
    const fn is_small(&self) -> bool {
        self.document.bytes.len() <= SMALL_BYTES_MAX && self.document.linked.is_empty()
    }

    fn refuse_model(&mut self) {
        let origin = std::mem::take(&mut self.manifest.origin);
        self.manifest = blank(self.document, origin, self.manifest.detection.clone());
        self.counts.clear();
        self.specs.clear();
        self.refuse(&document::OVER_BUDGET, "the model of the document takes too much memory".to_owned());
    }

    fn count_omitted_findings(&mut self) {
        if self.counts.values().all(|count| *count <= FINDINGS_PER_CODE_MAX) {
            return;
        }
        let mut last_of: HashMap<Cow<'static, str>, usize> = HashMap::default();
        for (index, finding) in self.manifest.findings.iter().enumerate() {
            last_of.insert(finding.code.clone(), index);
        }
        for (code, count) in &self.counts {
            let more = count.saturating_sub(FINDINGS_PER_CODE_MAX);
            let last = last_of.get(code).and_then(|index| self.manifest.findings.get_mut(*index));
            if let (1.., Some(finding)) = (more, last) {
                finding.text = format!("{} (and {more} more like this)", finding.text);
            }
        }
    }

    fn level(&self, includes: CodeFilter) -> ConformanceLevel {
        let concerns =
            |code: &str| code.starts_with("json.") || code.starts_with("document.") || includes(code);
        let worst =
            self.manifest.findings.iter().filter(|finding| concerns(&finding.code)).map(|f| f.severity).max();
        match worst {
            Some(Severity::Must) if self.format() == Format::Malformed => ConformanceLevel::Unparseable,
            Some(Severity::Must) => ConformanceLevel::Major,
            Some(Severity::Should) => ConformanceLevel::Minor,
            _ => ConformanceLevel::Conforms,
        }
    }
}

/// Cuts a pointer after its last complete segment within the cap.
fn within_cap(mut pointer: String) -> String {
    if pointer.len() > POINTER_BYTES_MAX {
        let head = pointer.get(..pointer.floor_char_boundary(POINTER_BYTES_MAX)).unwrap_or_default();
        pointer.truncate(head.rfind('/').unwrap_or_default());
    }
    pointer
}
