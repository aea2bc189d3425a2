//! Resolves published addresses to absolute URLs, and reports addresses that agents cannot use.

use std::borrow::Cow;
use std::collections::HashMap;

use url::Url;

use super::{Draft, FindingLocation, INSECURE, NOT_PUBLIC, UNUSABLE};
use crate::address::{self, Address};
use crate::name::SiteName;
use crate::object::Object;
use crate::public_address;
use crate::text::capped;

/// Pointers for findings about the whole document.
#[derive(Default)]
pub(crate) struct Places {
    /// Pointer to the declared origin, if it is on another host.
    pub(crate) origin: Option<String>,
    /// Pointers of placeholders among the addresses of interfaces.
    pub(crate) interfaces: HashMap<String, String>,
}

impl Draft<'_> {
    /// Resolves paths below the folder of a service that shares its host with others.
    pub(crate) fn resolve_below(&mut self, folder: Option<Url>) {
        self.folder = folder;
    }

    /// A published path below the folder of the service; other addresses are returned as published.
    fn below_folder<'t>(&self, published: &'t str) -> Cow<'t, str> {
        match &self.folder {
            Some(folder) if published.starts_with('/') && !published.starts_with("//") => {
                Cow::Owned(address::below(folder, published))
            }
            _ => Cow::Borrowed(published),
        }
    }

    /// The site that serves the document; `None` if its address is not known.
    pub(crate) fn serving_site(&self) -> Option<SiteName> {
        let host = self.base().host();
        (!host.is_nowhere()).then(|| host.site())
    }

    /// Resolves a published address against the root of the served origin.
    pub(crate) fn on_origin(&mut self, published: &str, pointer: &str) -> Option<Address> {
        let address = address::on_origin(self.base(), &self.below_folder(published));
        self.check_address(address, published, pointer)
    }

    /// Resolves a published address against the document's own URL.
    pub(crate) fn on_document(&mut self, published: &str, pointer: &str) -> Option<Address> {
        let address = address::on_document(self.base(), published);
        self.check_address(address, published, pointer)
    }

    /// Resolves a published address against the root of the served origin, without a finding. For members in which no specification
    /// requires an address.
    pub(crate) fn origin_url(&self, published: &str) -> Option<String> {
        address::on_origin(self.base(), &self.below_folder(published)).map(Address::into_string)
    }

    /// The address of a string field as text, resolved against the root of the served origin.
    pub(crate) fn url(&mut self, object: &Object<'_>, key: &str) -> Option<String> {
        let published = object.text(key)?;
        self.on_origin(published, &object.at(key)).map(Address::into_string)
    }

    /// The address of a server in a string field, resolved against the root of the served origin. A single word is not an address; the
    /// shape of the object reports it.
    pub(crate) fn server_url(&mut self, object: &Object<'_>, key: &str) -> Option<String> {
        let is_word = |text: &str| !text.contains(['/', ':']) && !text.contains(char::is_whitespace);
        if object.text(key).is_some_and(is_word) { None } else { self.url(object, key) }
    }

    /// The address of a string field as text, resolved against the document's own URL.
    pub(crate) fn document_url(&mut self, object: &Object<'_>, key: &str) -> Option<String> {
        let published = object.text(key)?;
        self.on_document(published, &object.at(key)).map(Address::into_string)
    }

    /// Whether an interface with this address is known.
    pub(crate) fn has_interface(&self, url: &str) -> bool {
        self.manifest.interfaces.iter().any(|interface| interface.url.as_deref() == Some(url))
    }

    fn check_address(&mut self, address: Option<Address>, published: &str, pointer: &str) -> Option<Address> {
        match &address {
            None => {
                let text = format!("\"{}\" is not an address", capped(published, 80));
                self.report(&UNUSABLE, pointer.to_owned(), text);
            }
            Some(found) if found.as_str().starts_with("http:") || found.as_str().starts_with("ws:") => {
                let text = format!("\"{}\" is not https", capped(found.as_str(), 80));
                self.report(&INSECURE, pointer.to_owned(), text);
            }
            Some(_) => {}
        }
        if let Some(found) = &address
            && let Some(reason) = self.not_public(found.as_str())
        {
            let location =
                FindingLocation { pointer: pointer.to_owned(), document: self.pointer_document.clone() };
            self.report_not_public(location, found.as_str(), reason);
            self.not_public.insert(found.as_str().to_owned());
        }
        address
    }

    /// Why an address of this document is not on the public Internet.
    pub(crate) fn not_public(&self, address: &str) -> Option<&'static str> {
        if self.is_private { None } else { public_address::not_public(address) }
    }

    /// Whether an address was reported as not public at its own pointer.
    pub(crate) fn is_reported_not_public(&self, address: &str) -> bool {
        self.not_public.contains(address)
    }

    pub(crate) fn report_not_public(&mut self, location: FindingLocation, address: &str, reason: &str) {
        let text = format!("\"{}\" is not public: {reason}", capped(address, 80));
        self.report_at(&NOT_PUBLIC, location, text);
    }
}
