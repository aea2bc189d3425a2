//! The lists of a manifest other than its capabilities. All have the same limit on items and share the memory limit of the model.

use serde::Serialize;

use super::{CAPABILITIES_MAX, Draft, MODEL_BYTES_MAX};
use crate::budget;
use crate::model::{Auth, Capability, Interface, Link, Manifest, Payment, Workflow};
use crate::rule::{Rule, findings};

findings! {
    rule AUTH_CUT: Should("document.auth.too_many", "agentdex limits")
        "the document declares more credentials than are read" => "Declare each kind of credential once.";
    rule INTERFACES_CUT: Should("document.interfaces.too_many", "agentdex limits")
        "the document declares more interfaces than are read" => "Declare each address and protocol once.";
    rule LINKS_CUT: Should("document.links.too_many", "agentdex limits")
        "the document has more links than are read" => "Link to a document that lists the others.";
    rule PAYMENTS_CUT: Should("document.payments.too_many", "agentdex limits")
        "the document declares more payments than are read" => "Declare each way to pay once.";
    rule WORKFLOWS_CUT: Should("document.workflows.too_many", "agentdex limits")
        "the document declares more workflows than are read" => "Declare the most needed workflows first.";
}

impl Draft<'_> {
    /// Adds a capability, and one copy of it for each further method.
    pub(crate) fn push_with_methods(&mut self, first: Capability, others: impl IntoIterator<Item = String>) {
        let whole = first.clone();
        self.push(first);
        for method in others {
            let own = self.capability(whole.kind, &whole.native_id, &whole.name, String::new());
            let mut other = Capability { id: own.id, native_id: own.native_id, ..whole.clone() };
            other.invocation.method = Some(method);
            self.push(other);
        }
    }
}

/// An item of one of the lists.
pub(crate) trait Listed: Serialize {
    /// The finding when the list is full.
    const CUT: &'static Rule;

    fn list(manifest: &mut Manifest) -> &mut Vec<Self>
    where
        Self: Sized;
}

macro_rules! listed {
    ($($item:ty: $field:ident, $cut:ident;)*) => {$(
        impl Listed for $item {
            const CUT: &'static Rule = &$cut;

            fn list(manifest: &mut Manifest) -> &mut Vec<Self> {
                &mut manifest.$field
            }
        }
    )*};
}

listed! {
    Auth: auth, AUTH_CUT;
    Interface: interfaces, INTERFACES_CUT;
    Link: links, LINKS_CUT;
    Payment: payments, PAYMENTS_CUT;
    Workflow: workflows, WORKFLOWS_CUT;
}

impl Draft<'_> {
    /// Appends an item to its list. Reports once per list that items were dropped.
    pub(crate) fn keep<T: Listed>(&mut self, item: T) {
        let kept = T::list(&mut self.manifest).len();
        if kept < CAPABILITIES_MAX && self.charge(budget::memory_of(&item, MODEL_BYTES_MAX)) {
            T::list(&mut self.manifest).push(item);
        } else if !self.counts.contains_key(T::CUT.code) {
            self.report(T::CUT, String::new(), format!("{}: the first {kept} are read", T::CUT.wrong));
        }
    }

    pub(crate) fn keep_all<T: Listed>(&mut self, items: impl IntoIterator<Item = T>) {
        for item in items {
            self.keep(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MANIFEST_MEMORY_MAX, SMALL_BYTES_MAX};
    use super::*;
    use crate::document::Document;
    use crate::model::{Detection, Discovery, Format, Strength};
    use crate::name::ManifestUrl;

    /// Even if a parser adds values without counting them, the finished manifest is within the memory limit.
    #[test]
    fn a_model_that_is_too_large_becomes_an_unreadable_document() {
        let url = ManifestUrl::parse("https://a.example/agent.json").unwrap();
        let bytes = vec![b' '; SMALL_BYTES_MAX + 1];
        let document = Document {
            bytes: &bytes,
            url: &url,
            final_url: None,
            discovery: Discovery::WellKnown,
            served: None,
            linked: &[],
            force: None,
        };
        for (bytes, format) in
            [(MANIFEST_MEMORY_MAX / 2, Format::Awp), (MANIFEST_MEMORY_MAX, Format::Malformed)]
        {
            let detection = Detection::new(Format::Awp, Strength::Strong, String::new());
            let mut draft = Draft::new(&document, detection);
            draft.manifest.tags = vec!["x".repeat(bytes)];
            draft.assess("AWP 0.2", |_| true);
            let manifest = draft.finish();
            assert_eq!(manifest.format(), format);
            assert_eq!(manifest.tags.is_empty(), format == Format::Malformed);
            let codes: Vec<&str> = manifest.findings.iter().map(|finding| finding.code.as_ref()).collect();
            assert_eq!(codes.contains(&"document.over_budget"), format == Format::Malformed);
        }
    }
}
