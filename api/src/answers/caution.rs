//! Warnings before a call, in addition to its safety class: it goes to another site, or it may cost money.

use manifest::model::{Format, SemanticType};
use manifest::{SafetyClass, SiteName, site_of_address};

/// Another site to which a declaration refers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// The call is sent to this site.
    Calls(SiteName),
    /// A catalog lists an agent or a document of that site.
    Lists(SiteName),
}

impl Elsewhere {
    /// `None` for a declaration that stays at its own site, or whose address names no site.
    pub(crate) fn of(
        format: Format,
        native_id: &str,
        address: Option<&str>,
        site: &SiteName,
    ) -> Option<Self> {
        let other = |found: &SiteName| found != site;
        let addressed = address.and_then(site_of_address).filter(other);
        if format != Format::Ard {
            return addressed.map(Self::Calls);
        }
        let publisher = || native_id.strip_prefix("urn:air:")?.split(':').next().map(SiteName::parse)?.ok();
        addressed.or_else(|| publisher().filter(other)).map(Self::Lists)
    }
}

/// Whether a call may move or cost money, judged by the types of the capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Money {
    /// It pays, transfers or trades.
    Moves,
    /// It books or orders something.
    MayCost,
}

impl Money {
    /// A payment type decides regardless of the safety class that the publisher declares.
    pub(crate) fn of(types: &[SemanticType], class: SafetyClass) -> Option<Self> {
        let names = || types.iter().filter_map(|known| known.name.split_once(':'));
        let reads = class == SafetyClass::Read;
        let moves = |(namespace, leaf): (&str, &str)| match (namespace, leaf) {
            (_, "checkout") | ("payments", "pay" | "transfer" | "refund") | ("finance", "trade") => true,
            ("payments", "balance" | "transaction-list") => false,
            ("payments", _) => !reads,
            _ => false,
        };
        let buys = |(_, leaf): (&str, &str)| {
            leaf.ends_with("-booking")
                || matches!(leaf, "order-create" | "subscription" | "car-rental" | "ride-request")
        };
        if names().any(moves) {
            Some(Self::Moves)
        } else if !reads && names().any(buys) {
            Some(Self::MayCost)
        } else {
            None
        }
    }

    /// What to do before the call.
    pub(crate) const fn warning(self) -> &'static str {
        match self {
            Self::Moves => "May move money. Ask the person before each call.",
            Self::MayCost => "May cost money. Ask the person before each call.",
        }
    }
}

#[cfg(test)]
mod tests {
    use manifest::model::TypeSource;

    use super::*;

    fn site(name: &str) -> SiteName {
        SiteName::parse(name).unwrap()
    }

    fn types(name: &str) -> [SemanticType; 1] {
        [SemanticType { name: name.to_owned(), source: TypeSource::Declared, confidence: 1.0, rule: None }]
    }

    #[test]
    fn calls_to_another_site_are_recognised() {
        let own = site("trickster.example");
        for (address, other) in [
            ("https://trickster.example/api", None),
            ("https://api.trickster.example:8443/v1/{id}", None),
            ("https://collector.example/api/wire", Some("collector.example")),
            ("https://trickster.example@collector.example/", Some("collector.example")),
            ("https://collector.example\\@trickster.example/", Some("collector.example")),
            ("https://trickster.example.collector.example/", Some("collector.example")),
            ("https://{region}.collector.example/x", Some("collector.example")),
            ("wss://collector.example", Some("collector.example")),
            ("/api/cards", None),
            ("javascript:alert(1)", None),
        ] {
            let expected = other.map(|name| Elsewhere::Calls(site(name)));
            assert_eq!(Elsewhere::of(Format::Awp, "x", Some(address), &own), expected, "{address}");
        }
    }

    #[test]
    fn entries_of_a_catalog_are_not_calls() {
        let own = site("agenthub.example");
        let of = |id: &str, address: Option<&str>| Elsewhere::of(Format::Ard, id, address, &own);
        let bank = Some(Elsewhere::Lists(site("harbourbank.example")));
        assert_eq!(of("urn:air:harbourbank.example:harbour", None), bank);
        assert_eq!(of("x", Some("https://harbourbank.example/agent.json")), bank);
        assert_eq!(of("urn:air:agenthub.example:hub", None), None);
    }

    #[test]
    fn payments_and_purchases_are_recognised() {
        for (name, class, expected) in [
            ("payments:transfer", SafetyClass::Read, Some(Money::Moves)),
            ("commerce:checkout", SafetyClass::Write, Some(Money::Moves)),
            ("payments:method-add", SafetyClass::Write, Some(Money::Moves)),
            ("payments:method-list", SafetyClass::Read, None),
            ("payments:balance", SafetyClass::Unknown, None),
            ("travel:hotel-booking", SafetyClass::Write, Some(Money::MayCost)),
            ("commerce:order-create", SafetyClass::Destructive, Some(Money::MayCost)),
            ("travel:hotel-search", SafetyClass::Read, None),
        ] {
            assert_eq!(Money::of(&types(name), class), expected, "{name}");
        }
    }
}
