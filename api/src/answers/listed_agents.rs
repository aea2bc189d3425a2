//! Agents and servers of a site that only other registries list: one record for each, with all its listings.
//!
//! Such a record is no declaration: it is not searched, and nothing in it was read from the site.

use serde::Serialize;
use utoipa::ToSchema;

use super::listed_by::ListedBy;

/// An agent or server that other registries list under one identifier, and that no document of the site's own declares.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedAgent {
    /// Name of the server or identifier of the agent, as the registries list it.
    pub(crate) identifier: String,
    /// As the first registry lists it; the others may differ.
    pub(crate) name: Option<String>,
    /// The listed endpoint or document.
    pub(crate) url: Option<String>,
    /// Always false: registries state this, and nothing of it was read from the site.
    pub(crate) read_from_site: bool,
    /// The entries of the registries, with their differences from the first one.
    pub(crate) listed_by: Vec<ListedBy>,
}

/// One record for each identifier without a declaration, in the order of the listings. `is_read` tells whether a document was read from a URL:
/// documents of customers and users declare nothing for the site, but were read.
pub(crate) fn listed_agents(listed_by: &[ListedBy], is_read: impl Fn(&str) -> bool) -> Vec<ListedAgent> {
    let is_declared =
        |listed: &ListedBy| listed.manifest_id.is_some() || listed.url.as_deref().is_some_and(&is_read);
    let mut agents: Vec<ListedAgent> = Vec::new();
    for (place, listed) in listed_by.iter().enumerate() {
        let same = |other: &&ListedBy| other.identifier == listed.identifier;
        if listed_by.iter().take(place).any(|other| same(&other)) {
            continue;
        }
        let entries: Vec<ListedBy> = listed_by.iter().filter(same).cloned().collect();
        if entries.iter().any(is_declared) {
            continue;
        }
        agents.push(ListedAgent {
            identifier: listed.identifier.clone(),
            name: listed.name.clone(),
            url: listed.url.clone(),
            read_from_site: false,
            listed_by: entries,
        });
    }
    agents
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use manifest::ManifestId;

    use super::*;

    fn listed(registry: &str, identifier: &str, url: &str) -> ListedBy {
        ListedBy {
            registry: registry.to_owned(),
            identifier: identifier.to_owned(),
            name: Some(format!("{identifier} in {registry}")),
            url: Some(url.to_owned()),
            version: None,
            updated_at: None,
            seen_at: DateTime::UNIX_EPOCH,
            manifest_id: None,
            contradictions: Vec::new(),
            differences: Vec::new(),
        }
    }

    #[test]
    fn an_agent_that_only_registries_list_is_one_record() {
        let declared = ListedBy {
            manifest_id: Some(ManifestId::parse("maaaaaaaaaaaaaaaa").unwrap()),
            ..listed("second", "declared", "https://a.example/declared")
        };
        let all = [
            listed("first", "only", "https://a.example/one"),
            listed("first", "declared", "https://a.example/other"),
            listed("first", "customer", "https://t1.a.example/card.json"),
            listed("second", "only", "https://b.example/one"),
            declared,
        ];
        let agents = listed_agents(&all, |url| url == "https://t1.a.example/card.json");
        let [agent] = agents.as_slice() else { panic!("{agents:?}") };
        assert_eq!((agent.identifier.as_str(), agent.name.as_deref()), ("only", Some("only in first")));
        assert!(!agent.read_from_site);
        let registries: Vec<&str> = agent.listed_by.iter().map(|one| one.registry.as_str()).collect();
        assert_eq!(registries, ["first", "second"]);
    }
}
