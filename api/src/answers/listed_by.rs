//! What other registries list about a site, where it contradicts what the site declares, and where the registries contradict each other.
//!
//! A listing is a statement of a third party. It changes no capability, no filter and no rank.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::{ManifestId, ManifestUrl, Publisher, SiteName};
use serde::Serialize;
use store::{SiteListing, Store, StoredManifest};
use utoipa::ToSchema;

use crate::problem::Problem;
use crate::text;

/// Maximum number of listings of a site in a response.
const LISTED_MAX: u32 = 50;
/// Maximum number of endpoints of a manifest that are compared, and their maximum length in bytes.
const URLS_MAX: usize = 20;
const URL_BYTES_MAX: usize = 2_048;
/// Maximum length of a compared name or version.
const TEXT_CHARS_MAX: usize = 200;
/// Maximum number of listings in an answer for a model, or of registries that are named beside an entry.
const BRIEF_MAX: usize = 5;
/// Maximum characters of each text of a listing in an answer for a model.
const BRIEF_CHARS_MAX: usize = 200;

/// An entry of another registry about the site.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ListedBy {
    /// URL of the registry.
    pub(crate) registry: String,
    /// Name of the server or identifier of the agent, as the registry lists it.
    pub(crate) identifier: String,
    pub(crate) name: Option<String>,
    /// The listed endpoint or document.
    pub(crate) url: Option<String>,
    pub(crate) version: Option<String>,
    /// When the entry changed, according to the registry.
    pub(crate) updated_at: Option<DateTime<Utc>>,
    /// When the registry was last seen to list it.
    pub(crate) seen_at: DateTime<Utc>,
    /// The manifest of the site that declares the same agent or server: by its name, or by its address.
    #[schema(value_type = Option<String>)]
    pub(crate) manifest_id: Option<ManifestId>,
    pub(crate) contradictions: Vec<ListingContradiction>,
    /// Where this entry differs from the first entry with the same identifier, if that is of another registry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) differences: Vec<ListingDifference>,
}

/// A listing in few words, for models.
#[derive(Debug, Serialize)]
pub(crate) struct BriefListing {
    registry: String,
    identifier: String,
    /// Present if no document of the site's own declares it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    only_listed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    contradictions: Vec<String>,
}

impl From<&ListedBy> for BriefListing {
    fn from(listed: &ListedBy) -> Self {
        let cut = |text: &str| text::cut(text, BRIEF_CHARS_MAX);
        Self {
            registry: cut(&listed.registry),
            identifier: cut(&listed.identifier),
            only_listed: listed.manifest_id.is_none(),
            contradictions: listed.contradictions.iter().map(|found| cut(&found.in_words())).collect(),
        }
    }
}

/// Where an entry differs from what the site declares. The declaration counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ListingContradiction {
    #[schema(inline)]
    pub(crate) fact: ListingFact,
    pub(crate) listed: String,
    /// What the site declares; for `publisher`, the site.
    pub(crate) declared: String,
}

impl ListingContradiction {
    /// `version: 1.0, but 2.0 here`
    pub(crate) fn in_words(&self) -> String {
        format!("{}: {}, but {} here", self.fact.as_str(), self.listed, self.declared)
    }
}

/// Where two registries list different values under one identifier. Neither counts more than the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ListingDifference {
    #[schema(inline)]
    pub(crate) fact: ListingFact,
    pub(crate) listed: String,
    /// URL of the other registry.
    pub(crate) other_registry: String,
    pub(crate) other: String,
}

impl ListingDifference {
    /// `version: 1.0, but 2.0 in https://registry.example/`
    pub(crate) fn in_words(&self) -> String {
        format!("{}: {}, but {} in {}", self.fact.as_str(), self.listed, self.other, self.other_registry)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ListingFact {
    /// The identifier names another site.
    Publisher,
    Url,
    Name,
    Version,
}

impl ListingFact {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Publisher => "publisher",
            Self::Url => "address",
            Self::Name => "name",
            Self::Version => "version",
        }
    }
}

/// The statements of a manifest that listings are compared with.
#[derive(Debug)]
pub(crate) struct Comparable {
    id: ManifestId,
    name: Option<String>,
    title: Option<String>,
    version: Option<String>,
    /// Endpoints, then the document itself.
    urls: Vec<String>,
}

impl Comparable {
    /// `None` for a document that the site does not publish at its domain: a customer may copy a listed name or address.
    pub(crate) fn of(stored: &StoredManifest) -> Option<Self> {
        if !stored.is_of_site() || stored.publisher != Publisher::Site {
            return None;
        }
        let manifest = &stored.manifest;
        let cut = |text: &Option<String>| text.as_deref().map(|text| text::cut(text, TEXT_CHARS_MAX));
        let endpoints = manifest.interfaces.iter().filter_map(|interface| interface.url.as_deref());
        let endpoints = endpoints.filter(|url| url.len() <= URL_BYTES_MAX).take(URLS_MAX);
        let documents = [Some(&manifest.url), manifest.final_url.as_ref()].into_iter().flatten();
        Some(Self {
            id: manifest.id.clone(),
            name: cut(&manifest.name),
            title: cut(&manifest.title),
            version: cut(&manifest.document_version),
            urls: endpoints.chain(documents.map(ManifestUrl::as_str)).map(str::to_owned).collect(),
        })
    }

    fn has_url(&self, url: &str) -> bool {
        self.urls.iter().any(|own| own.trim_end_matches('/') == url.trim_end_matches('/'))
    }

    fn is_called(&self, name: &str) -> bool {
        [&self.name, &self.title].into_iter().flatten().any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// The stored listings of a site.
pub(crate) async fn listings(store: &Store, site: &SiteName) -> Result<Vec<SiteListing>, Problem> {
    Ok(store.site_listings(std::slice::from_ref(site), LISTED_MAX).await?)
}

/// The stored listings of sites.
pub(crate) async fn listings_by_site(
    store: &Store,
    sites: impl IntoIterator<Item = SiteName>,
) -> Result<HashMap<SiteName, Vec<SiteListing>>, Problem> {
    let sites: HashSet<SiteName> = sites.into_iter().collect();
    let sites: Vec<SiteName> = sites.into_iter().collect();
    let mut by_site: HashMap<SiteName, Vec<SiteListing>> = HashMap::new();
    if !sites.is_empty() {
        for listing in store.site_listings(&sites, LISTED_MAX).await? {
            by_site.entry(listing.site.clone()).or_default().push(listing);
        }
    }
    Ok(by_site)
}

/// The registries of the first listings with this identifier.
pub(crate) fn registries_with(listings: &[SiteListing], identifier: &str) -> Vec<String> {
    let same = listings.iter().filter(|listing| listing.identifier == identifier);
    same.take(BRIEF_MAX).map(|listing| listing.registry.clone()).collect()
}

/// The first listings, for models.
pub(crate) fn brief(listed: &[ListedBy]) -> Vec<BriefListing> {
    listed.iter().take(BRIEF_MAX).map(BriefListing::from).collect()
}

/// The registries of the first listings, each once.
pub(crate) fn registries_of(listed: &[ListedBy]) -> Vec<String> {
    let mut registries: Vec<String> = Vec::new();
    for listing in listed {
        if registries.len() < BRIEF_MAX && !registries.contains(&listing.registry) {
            registries.push(listing.registry.clone());
        }
    }
    registries
}

/// The listings of a site, compared with its manifests.
pub(crate) fn of_site(
    site: &SiteName,
    listings: Vec<SiteListing>,
    manifests: &[&Comparable],
) -> Vec<ListedBy> {
    let mut listed: Vec<ListedBy> =
        listings.into_iter().map(|listing| compare(site, listing, manifests)).collect();
    add_differences(&mut listed);
    listed
}

/// Compares each listing with the first one that has its identifier.
fn add_differences(listed: &mut [ListedBy]) {
    let mut firsts: HashMap<&str, &ListedBy> = HashMap::new();
    let compared = listed.iter().map(|one| {
        let first = *firsts.entry(one.identifier.as_str()).or_insert(one);
        if first.registry == one.registry { Vec::new() } else { differences(one, first) }
    });
    let compared: Vec<Vec<ListingDifference>> = compared.collect();
    for (one, differences) in listed.iter_mut().zip(compared) {
        one.differences = differences;
    }
}

fn differences(listing: &ListedBy, first: &ListedBy) -> Vec<ListingDifference> {
    let facts = [
        (ListingFact::Url, &listing.url, &first.url),
        (ListingFact::Name, &listing.name, &first.name),
        (ListingFact::Version, &listing.version, &first.version),
    ];
    let differ = |fact: ListingFact, one: &str, other: &str| match fact {
        ListingFact::Url => one.trim_end_matches('/') != other.trim_end_matches('/'),
        ListingFact::Name => !one.eq_ignore_ascii_case(other),
        ListingFact::Version | ListingFact::Publisher => one != other,
    };
    let stated =
        facts.into_iter().filter_map(|(fact, one, other)| Some((fact, one.as_ref()?, other.as_ref()?)));
    let found = stated.filter(|(fact, one, other)| differ(*fact, one, other));
    found
        .map(|(fact, one, other)| ListingDifference {
            fact,
            listed: one.clone(),
            other_registry: first.registry.clone(),
            other: other.clone(),
        })
        .collect()
}

/// The listings of the agent or server that a manifest declares.
pub(crate) fn of_manifest(listings: Vec<SiteListing>, stored: &StoredManifest) -> Vec<ListedBy> {
    let Some(manifest) = Comparable::of(stored) else { return Vec::new() };
    let mut listed = of_site(&stored.manifest.url.site(), listings, &[&manifest]);
    listed.retain(|listing| listing.manifest_id.is_some());
    listed
}

/// Only the manifest that declares the same agent or server is compared. Nothing of the site contradicts an entry that it does not declare.
fn compare(site: &SiteName, listing: SiteListing, manifests: &[&Comparable]) -> ListedBy {
    let is_named = |manifest: &Comparable| manifest.name.as_ref() == Some(&listing.identifier);
    let is_addressed =
        |manifest: &Comparable| listing.url.as_deref().is_some_and(|url| manifest.has_url(url));
    let find = |is_same: &dyn Fn(&Comparable) -> bool| manifests.iter().copied().find(|one| is_same(one));
    let named = find(&|one| is_named(one) && is_addressed(one)).or_else(|| find(&is_named));
    let same = named.or_else(|| find(&is_addressed));
    let mut contradictions = Vec::new();
    let mut add = |fact, listed: &str, declared: &str| {
        contradictions.push(ListingContradiction {
            fact,
            listed: listed.to_owned(),
            declared: declared.to_owned(),
        });
    };
    if let Some(publisher) = listing.publisher.as_ref().filter(|named| *named != site) {
        add(ListingFact::Publisher, publisher.as_str(), site.as_str());
    }
    // Anybody can list an address: only an entry with the name that the site declares is compared word by word.
    if let Some(manifest) = named {
        let other_url = listing.url.as_deref().filter(|url| !manifest.has_url(url));
        if let (Some(listed), Some(declared)) = (other_url, manifest.urls.first()) {
            add(ListingFact::Url, listed, declared);
        }
        let declared = manifest.title.as_ref().or(manifest.name.as_ref());
        if let (Some(listed), Some(declared)) = (&listing.name, declared)
            && !manifest.is_called(listed)
        {
            add(ListingFact::Name, listed, declared);
        }
        if let (Some(listed), Some(declared)) = (&listing.version, &manifest.version)
            && listed != declared
        {
            add(ListingFact::Version, listed, declared);
        }
    }
    let manifest_id = same.map(|manifest| manifest.id.clone());
    let SiteListing { registry, identifier, name, url, version, updated_at, seen_at, .. } = listing;
    let differences = Vec::new();
    ListedBy {
        registry,
        identifier,
        name,
        url,
        version,
        updated_at,
        seen_at,
        manifest_id,
        contradictions,
        differences,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(identifier: &str, url: &str) -> SiteListing {
        SiteListing {
            site: SiteName::parse("weather.example").unwrap(),
            registry: "https://registry.example/".to_owned(),
            identifier: identifier.to_owned(),
            name: Some("WEATHER".to_owned()),
            url: Some(url.to_owned()),
            version: Some("1.0".to_owned()),
            updated_at: None,
            seen_at: DateTime::UNIX_EPOCH,
            publisher: Some(SiteName::parse("weather.example").unwrap()),
        }
    }

    fn declared() -> Comparable {
        Comparable {
            id: ManifestId::parse("maaaaaaaaaaaaaaaa").unwrap(),
            name: Some("example.weather/mcp".to_owned()),
            title: Some("Weather".to_owned()),
            version: Some("1.0".to_owned()),
            urls: vec![
                "https://mcp.weather.example/".to_owned(),
                "https://weather.example/mcp.json".to_owned(),
            ],
        }
    }

    fn facts(listed: &ListedBy) -> Vec<&'static str> {
        listed.contradictions.iter().map(|found| found.fact.as_str()).collect()
    }

    #[test]
    fn each_difference_from_the_declaration_is_named() {
        let site = SiteName::parse("weather.example").unwrap();
        let declared = declared();
        let of = |listing| compare(&site, listing, &[&declared]);
        let equal = of(listing("example.weather/mcp", "https://mcp.weather.example"));
        assert_eq!((equal.manifest_id.is_some(), facts(&equal)), (true, vec![]));
        let old = SiteListing {
            version: Some("0.9".to_owned()),
            name: Some("Rain".to_owned()),
            ..listing("example.weather/mcp", "https://old.weather.example/")
        };
        assert_eq!(facts(&of(old)), ["address", "name", "version"]);
        let by_address = SiteListing {
            publisher: None,
            ..listing("io.github.someone/weather", "https://mcp.weather.example/")
        };
        let by_address = of(by_address);
        assert_eq!((by_address.manifest_id.is_some(), facts(&by_address)), (true, vec![]));
    }

    #[test]
    fn registries_that_list_one_identifier_differently_are_compared() {
        let site = SiteName::parse("weather.example").unwrap();
        let name = "example.weather/other";
        let first = listing(name, "https://mcp.weather.example/");
        let equal = SiteListing {
            registry: "https://second.example/".to_owned(),
            name: Some("Weather".to_owned()),
            ..listing(name, "https://mcp.weather.example")
        };
        let differs = SiteListing {
            registry: "https://third.example/".to_owned(),
            version: Some("2.0".to_owned()),
            ..listing(name, "https://evil.example/mcp")
        };
        let other =
            SiteListing { registry: differs.registry.clone(), ..listing("example.weather/more", "x") };
        let listed = of_site(&site, vec![first, equal, differs, other], &[]);
        let words: Vec<Vec<String>> = listed
            .iter()
            .map(|one| one.differences.iter().map(ListingDifference::in_words).collect())
            .collect();
        let differences = [
            "address: https://evil.example/mcp, but https://mcp.weather.example/ in https://registry.example/",
            "version: 2.0, but 1.0 in https://registry.example/",
        ];
        assert_eq!(words, [vec![], vec![], differences.map(str::to_owned).to_vec(), vec![]]);
    }

    /// A site may declare one server in several documents.
    #[test]
    fn the_declaration_with_the_name_and_the_address_is_compared() {
        let site = SiteName::parse("weather.example").unwrap();
        let old = Comparable {
            id: ManifestId::parse("mbbbbbbbbbbbbbbbb").unwrap(),
            version: Some("0.1".to_owned()),
            urls: vec!["https://old.weather.example/".to_owned()],
            ..declared()
        };
        let current = declared();
        let listed =
            compare(&site, listing("example.weather/mcp", "https://mcp.weather.example"), &[&old, &current]);
        assert_eq!((listed.manifest_id.as_ref(), facts(&listed)), (Some(&current.id), vec![]));
    }

    #[test]
    fn an_entry_that_the_site_does_not_declare_contradicts_only_the_publisher() {
        let declared = declared();
        let lie = || listing("example.weather/other", "https://evil.example/mcp");
        let named = compare(&SiteName::parse("weather.example").unwrap(), lie(), &[&declared]);
        assert_eq!((named.manifest_id.is_none(), facts(&named)), (true, vec![]));
        let serving = compare(&SiteName::parse("evil.example").unwrap(), lie(), &[&declared]);
        assert_eq!((serving.manifest_id.is_none(), facts(&serving)), (true, vec!["publisher"]));
        let [publisher] = serving.contradictions.as_slice() else { panic!("one") };
        assert_eq!(
            (publisher.listed.as_str(), publisher.declared.as_str()),
            ("weather.example", "evil.example")
        );
    }
}
