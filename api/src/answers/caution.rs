//! Warnings before a call, in addition to its safety class: it goes to another site, or it may cost money.

use std::collections::BTreeSet;

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

/// Words of a call that moves money.
const PAYMENTS: [&str; 6] = ["cheque", "pay", "payment", "payout", "remit", "remittance"];
/// Words of a call that moves money if the name also says what is sent.
const SENDINGS: [&str; 4] = ["donate", "send", "transfer", "wire"];
const FUNDS: [&str; 3] = ["cash", "funds", "money"];
/// Words of a call that costs money.
const PURCHASES: [&str; 4] = ["buy", "donate", "purchase", "subscribe"];

/// The words of a name, in lower case: `buyTicket` and `tickets.buy` have two.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (was_lower && c.is_uppercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words
}

/// Whether a call may move or cost money, judged by the types and the name of the capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Money {
    /// It pays, transfers or trades.
    Moves,
    /// It books or orders something.
    MayCost,
}

impl Money {
    /// A payment type of a standard namespace decides regardless of the safety class that the publisher declares. For a call that does not
    /// only read, the words of its name and of its other types count too, because a publisher may have types of its own.
    pub(crate) fn of(name: &str, types: &[SemanticType], class: SafetyClass) -> Option<Self> {
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
        let is_standard = |(namespace, _): &(&str, &str)| matches!(*namespace, "payments" | "finance");
        let leaves = names().filter(|name| !is_standard(name)).map(|(_, leaf)| leaf);
        let words: BTreeSet<String> =
            std::iter::once(name).chain(leaves).flat_map(words).filter(|_| !reads).collect();
        let has = |any: &[&str]| any.iter().any(|word| words.contains(*word));
        if names().any(moves) || has(&PAYMENTS) || (has(&SENDINGS) && has(&FUNDS)) {
            Some(Self::Moves)
        } else if !reads && (names().any(buys) || has(&PURCHASES)) {
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
            assert_eq!(Money::of("x", &types(name), class), expected, "{name}");
        }
    }

    /// Publishers have types of their own, and a type of their own keeps the inferred one away.
    #[test]
    fn payments_and_purchases_are_recognised_by_name() {
        for (name, kind, class, expected) in [
            ("Transfer money", "bank:order", SafetyClass::Write, Some(Money::Moves)),
            ("standing_order", "bank:payment-create", SafetyClass::Write, Some(Money::Moves)),
            ("sendCheque", "bank:letter", SafetyClass::Unknown, Some(Money::Moves)),
            ("payment_status", "bank:payment-status", SafetyClass::Read, None),
            ("tickets.buy", "encore:ticket", SafetyClass::Write, Some(Money::MayCost)),
            ("Buy museum admission", "museum:admission", SafetyClass::Irreversible, Some(Money::MayCost)),
            ("buyTicket", "tram:ticket", SafetyClass::Write, Some(Money::MayCost)),
            ("Transfer a call", "phone:transfer", SafetyClass::Write, None),
            ("Send a message", "chat:message", SafetyClass::Write, None),
            ("Buying guide", "shop:guide", SafetyClass::Write, None),
        ] {
            assert_eq!(Money::of(name, &types(kind), class), expected, "{name}");
        }
    }
}
