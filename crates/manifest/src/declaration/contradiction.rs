//! Compares the declarations of one capability: their contradictions, and the most cautious values.
//!
//! Only facts that publishers stated can contradict each other. A declaration that omits a fact agrees with every statement about it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::DECLARATIONS_MAX;
use super::statement::{Parameter, Statement};
use crate::model::{
    AuthScheme, Capability, CapabilityAuth, Confirmation, Finding, Payment, RateLimit, Safety, SafetyClass,
    Tristate, TypeSource,
};
use crate::name::CapabilityId;
use crate::rule::{Rule, findings};
use crate::text::capped;

/// Maximum number of contradictions of one capability that are listed.
const CONTRADICTIONS_MAX: usize = 32;
/// Maximum number of characters of a stated value that are listed.
const VALUE_CHARS_MAX: usize = 100;

findings! {
    rule AUTH: Should("declarations.auth", "agentdex declarations")
        "another declaration of the operation states a different authentication"
            => "State the same schemes, scopes and requirement in every declaration of the operation.";
    rule SAFETY: Should("declarations.safety", "agentdex declarations")
        "another declaration of the operation states a different safety or confirmation"
            => "State the same safety, confirmation and reversibility in every declaration of the operation.";
    rule PARAMETER: Should("declarations.parameter", "agentdex declarations")
        "another declaration of the operation states a different type or requirement of a parameter"
            => "Declare the parameter with the same type and requirement in every declaration of the operation.";
    rule PRICE: Should("declarations.price", "agentdex declarations")
        "another declaration of the operation states a different price"
            => "State the same price in every declaration of the operation.";
    rule RATE_LIMIT: Should("declarations.rate_limit", "agentdex declarations")
        "another declaration of the operation states a different request limit"
            => "State the same limit in every declaration of the operation.";
}

crate::string_enum! {
    /// A fact on which declarations may disagree.
    Fact, "fact" {
        AuthRequired = "auth_required",
        Auth = "auth",
        Scopes = "scopes",
        Safety = "safety",
        Confirmation = "confirmation",
        Reversible = "reversible",
        Parameter = "parameter",
        Price = "price",
        RateLimit = "rate_limit",
    }
}

impl Fact {
    const fn rule(self) -> &'static Rule {
        match self {
            Self::AuthRequired | Self::Auth | Self::Scopes => &AUTH,
            Self::Safety | Self::Confirmation | Self::Reversible => &SAFETY,
            Self::Parameter => &PARAMETER,
            Self::Price => &PRICE,
            Self::RateLimit => &RATE_LIMIT,
        }
    }
}

/// The facts that one declaration states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stated {
    /// Id of the declaration.
    pub declaration: CapabilityId,
    pub value: String,
}

/// A fact on which declarations of one capability disagree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contradiction {
    pub fact: Fact,
    /// Name of the parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// The leading declaration first.
    pub stated: Vec<Stated>,
    /// The value that agentdex uses.
    pub used: String,
}

/// The capability with the most cautious values, and the contradictions. The leader's statement is the first.
pub fn merge(leader: &Capability, statements: &[Statement]) -> (Capability, Vec<Contradiction>) {
    let mut merged = leader.clone();
    if statements.len() < 2 {
        return (merged, Vec::new());
    }
    let mut comparison = Comparison::of(statements);
    merged.auth = auth(&leader.auth, &mut comparison);
    merged.safety = safety(&leader.safety, &mut comparison);
    parameters(&mut merged.parameters, &mut comparison);
    merged.price = price(&mut comparison).or(merged.price);
    merged.rate_limit = rate_limit(&mut comparison).or(merged.rate_limit);
    merged.deprecated = comparison.any(|statement| statement.deprecated);
    merged.degraded = comparison.any(|statement| statement.degraded);
    merged.addresses_reader = comparison.any(|statement| statement.addresses_reader);
    comparison.contradictions.truncate(CONTRADICTIONS_MAX);
    (merged, comparison.contradictions)
}

/// The contradictions between the declarations of one capability.
pub fn contradictions(statements: &[Statement]) -> Vec<Contradiction> {
    let mut comparison = Comparison::of(statements);
    auth(&CapabilityAuth::default(), &mut comparison);
    safety(&Safety::default(), &mut comparison);
    parameters(&mut None, &mut comparison);
    price(&mut comparison);
    rate_limit(&mut comparison);
    comparison.contradictions.truncate(CONTRADICTIONS_MAX);
    comparison.contradictions
}

/// The findings of one declaration: one for each contradiction that involves it.
pub fn findings_of(
    declaration: &CapabilityId,
    contradictions: &[Contradiction],
    statements: &[Statement],
) -> Vec<Finding> {
    let Some(own) = statements.iter().find(|statement| statement.id == *declaration) else {
        return Vec::new();
    };
    let finding = |contradiction: &Contradiction| {
        let here = contradiction.stated.iter().find(|stated| stated.declaration == *declaration)?;
        let other = contradiction.stated.iter().find(|stated| stated.value != here.value)?;
        let place = statements.iter().find(|statement| statement.id == other.declaration)?.place();
        let of_parameter =
            contradiction.parameter.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
        let text = format!(
            "{}{of_parameter}: {} here, {} at {place}; {} is used",
            contradiction.fact.as_str(),
            here.value,
            other.value,
            contradiction.used
        );
        Some(own.finding(contradiction.fact.rule(), text))
    };
    contradictions.iter().filter_map(finding).collect()
}

/// The statements that are compared, and the contradictions so far.
struct Comparison<'a> {
    statements: &'a [Statement],
    contradictions: Vec<Contradiction>,
}

impl<'a> Comparison<'a> {
    fn of(statements: &'a [Statement]) -> Self {
        let statements = statements.get(..DECLARATIONS_MAX).unwrap_or(statements);
        Self { statements, contradictions: Vec::new() }
    }

    /// Adds a contradiction if the declarations that state the fact state different values.
    fn compare(&mut self, fact: Fact, used: &str, value: impl Fn(&Statement) -> Option<String>) {
        self.compare_parameter(fact, None, used, value);
    }

    fn compare_parameter(
        &mut self,
        fact: Fact,
        parameter: Option<&str>,
        used: &str,
        value: impl Fn(&Statement) -> Option<String>,
    ) {
        let stated = |statement: &Statement| {
            Some(Stated { declaration: statement.id.clone(), value: value(statement)? })
        };
        let mut stated: Vec<Stated> = self.statements.iter().filter_map(stated).collect();
        if stated.windows(2).any(|pair| matches!(pair, [one, other] if one.value != other.value)) {
            let parameter = parameter.map(str::to_owned);
            let listed = |value: &str| capped(value, VALUE_CHARS_MAX).to_owned();
            for stated in &mut stated {
                stated.value = listed(&stated.value);
            }
            self.contradictions.push(Contradiction { fact, parameter, stated, used: listed(used) });
        }
    }

    /// The first value that a declaration has, the leading one first.
    fn first<T: Clone>(&self, value: impl Fn(&Statement) -> Option<&T>) -> Option<T> {
        self.statements.iter().find_map(value).cloned()
    }

    fn any(&self, holds: impl Fn(&Statement) -> bool) -> bool {
        self.statements.iter().any(holds)
    }
}

/// Authentication is required if any declaration requires it. The schemes are those of the first declaration that has any.
fn auth(leader: &CapabilityAuth, comparison: &mut Comparison<'_>) -> CapabilityAuth {
    let required = |required: Tristate| comparison.any(|statement| statement.auth.required == required);
    let required = match (required(Tristate::Yes), required(Tristate::No)) {
        (true, _) => Tristate::Yes,
        (false, true) => Tristate::No,
        (false, false) => Tristate::Unknown,
    };
    let has_scheme = |schemes: &Vec<AuthScheme>| schemes.iter().any(|scheme| *scheme != AuthScheme::None);
    let schemes =
        comparison.first(|statement| Some(&statement.auth.schemes).filter(|schemes| has_scheme(schemes)));
    let listed =
        |statement: &Statement| Some(&statement.auth.schemes).filter(|schemes| !schemes.is_empty()).cloned();
    let schemes = schemes.or_else(|| comparison.statements.iter().find_map(listed)).unwrap_or_default();
    let scopes =
        |statement: &Statement| Some(&statement.auth.scopes).filter(|scopes| !scopes.is_empty()).cloned();
    let used_scopes = comparison.statements.iter().find_map(scopes).unwrap_or_default();
    let identity = comparison
        .first(|statement| statement.auth.agent_identity.as_ref().filter(|identity| identity.required));
    let merged = CapabilityAuth {
        required,
        schemes,
        scopes: used_scopes,
        session: comparison.any(|statement| statement.auth.session),
        session_url: comparison.first(|statement| statement.auth.session_url.as_ref()),
        agent_identity: identity.or_else(|| leader.agent_identity.clone()),
    };
    let in_words = |required: Tristate| match required {
        Tristate::Yes => Some("required".to_owned()),
        Tristate::No => Some("not required".to_owned()),
        Tristate::Unknown => None,
    };
    let used = in_words(merged.required).unwrap_or_default();
    comparison.compare(Fact::AuthRequired, &used, |statement| in_words(statement.auth.required));
    let sorted = |words: Vec<&str>| {
        words.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
    };
    let schemes = |schemes: &[AuthScheme]| sorted(schemes.iter().map(|scheme| scheme.as_str()).collect());
    comparison.compare(Fact::Auth, &schemes(&merged.schemes), |statement| {
        Some(schemes(&statement.auth.schemes)).filter(|schemes| !schemes.is_empty())
    });
    let words = |scopes: &[String]| sorted(scopes.iter().map(String::as_str).collect());
    comparison.compare(Fact::Scopes, &words(&merged.scopes), |statement| {
        Some(words(&statement.auth.scopes)).filter(|scopes| !scopes.is_empty())
    });
    merged
}

/// Rank of a class, higher for more caution; `None` for an unknown class.
const fn caution(class: SafetyClass) -> Option<u8> {
    match class {
        SafetyClass::Unknown => None,
        SafetyClass::Read => Some(0),
        SafetyClass::Write => Some(1),
        SafetyClass::Destructive => Some(2),
        SafetyClass::Irreversible => Some(3),
    }
}

/// The most cautious declared class; the most cautious inferred one if none is declared.
fn safety(leader: &Safety, comparison: &mut Comparison<'_>) -> Safety {
    let of_source = |source: TypeSource| {
        let of_source = comparison.statements.iter().map(|statement| &statement.safety);
        of_source.filter(move |safety| safety.source == source && caution(safety.class).is_some())
    };
    let most = |source| of_source(source).max_by_key(|safety| caution(safety.class));
    let (class, source) = most(TypeSource::Declared)
        .or_else(|| most(TypeSource::Inferred))
        .map_or((leader.class, leader.source), |safety| (safety.class, safety.source));
    let confirmation = comparison.statements.iter().map(|statement| statement.safety.confirmation).max();
    let reversible = |value| comparison.any(|statement| statement.safety.reversible == Some(value));
    let merged = Safety {
        class,
        source,
        confirmation: confirmation.unwrap_or_default(),
        handoff: comparison.any(|statement| statement.safety.handoff),
        reversible: if reversible(false) { Some(false) } else { reversible(true).then_some(true) },
        message: comparison.first(|statement| statement.safety.message.as_ref()),
    };
    comparison.compare(Fact::Safety, class.as_str(), |statement| {
        let safety = &statement.safety;
        let is_stated = safety.source == TypeSource::Declared && caution(safety.class).is_some();
        is_stated.then(|| safety.class.as_str().to_owned())
    });
    comparison.compare(Fact::Confirmation, merged.confirmation.as_str(), |statement| {
        let confirmation = statement.safety.confirmation;
        (confirmation != Confirmation::None).then(|| confirmation.as_str().to_owned())
    });
    let in_words = |reversible: bool| if reversible { "reversible" } else { "not reversible" };
    comparison.compare(Fact::Reversible, merged.reversible.map(in_words).unwrap_or_default(), |statement| {
        statement.safety.reversible.map(|reversible| in_words(reversible).to_owned())
    });
    merged
}

/// Requires every parameter that a declaration requires; adds required parameters that the leader does not have.
fn parameters(schema: &mut Option<Value>, comparison: &mut Comparison<'_>) {
    let statements = comparison.statements;
    let names: BTreeSet<&String> = statements
        .iter()
        .flat_map(|statement| statement.parameters.iter().flatten().map(|(name, _)| name))
        .collect();
    for name in names {
        let stated = || statements.iter().filter_map(|statement| statement.parameters.as_ref()?.get(name));
        let is_required = stated().any(|parameter| parameter.is_required);
        let Some(first) = stated().next() else { continue };
        if is_required {
            require(schema, name, first);
        }
        let used = in_words(is_required, first);
        comparison.compare_parameter(Fact::Parameter, Some(name), &used, |statement| {
            match statement.parameters.as_ref()?.get(name) {
                Some(parameter) => Some(in_words(parameter.is_required, parameter)),
                None => is_required.then(|| "absent".to_owned()),
            }
        });
    }
}

/// `required string`
fn in_words(is_required: bool, parameter: &Parameter) -> String {
    let required = if is_required { "required" } else { "optional" };
    parameter.kind().map_or_else(|| required.to_owned(), |kind| format!("{required} {kind}"))
}

fn require(schema: &mut Option<Value>, name: &str, parameter: &Parameter) {
    let schema = schema.get_or_insert_with(|| json!({"type": "object", "properties": {}}));
    let Some(schema) = schema.as_object_mut() else { return };
    let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Some(properties) = properties.as_object_mut()
        && !properties.contains_key(name)
    {
        properties.insert(name.to_owned(), Value::Object(parameter.schema.clone()));
    }
    let required = schema.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(required) = required.as_array_mut()
        && !required.iter().any(|listed| listed == name)
    {
        required.push(Value::from(name));
    }
}

/// The highest of the comparable prices, or the price of the leading declaration if they cannot be compared.
fn price(comparison: &mut Comparison<'_>) -> Option<Payment> {
    let first =
        comparison.first(|statement| statement.price.as_ref().filter(|price| price.price.is_some()))?;
    let prices = comparison.statements.iter().filter_map(|statement| statement.price.as_ref());
    let comparable = prices.filter(|price| price.asset == first.asset);
    let highest = comparable
        .filter_map(|price| Some((price.amount()?, price)))
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let used = if first.amount().is_some() { highest.map(|(_, price)| price.clone()) } else { None };
    let used = used.unwrap_or(first);
    comparison.compare(Fact::Price, &price_in_words(&used).unwrap_or_default(), |statement| {
        price_in_words(statement.price.as_ref()?)
    });
    Some(used)
}

fn price_in_words(price: &Payment) -> Option<String> {
    let amount = price.price.as_deref()?;
    let unit = [&price.asset, &price.network].into_iter().flatten();
    Some(std::iter::once(amount).chain(unit.map(String::as_str)).collect::<Vec<_>>().join(" "))
}

/// The lowest of the comparable rates, or the limit of the leading declaration if they cannot be compared.
fn rate_limit(comparison: &mut Comparison<'_>) -> Option<RateLimit> {
    let limits = || comparison.statements.iter().filter_map(|statement| statement.rate_limit.as_ref());
    let lowest = limits().filter(|limit| rate(limit).is_some()).min_by(|one, other| {
        let (one, other) = (rate(one).unwrap_or_default(), rate(other).unwrap_or_default());
        // a / b < c / d
        (u128::from(one.0) * u128::from(other.1)).cmp(&(u128::from(other.0) * u128::from(one.1)))
    });
    let used = lowest.or_else(|| limits().next())?.clone();
    comparison.compare(Fact::RateLimit, &limit_in_words(&used).unwrap_or_default(), |statement| {
        limit_in_words(statement.rate_limit.as_ref()?)
    });
    Some(used)
}

/// Number of requests, and the seconds within which they are allowed.
fn rate(limit: &RateLimit) -> Option<(u64, u64)> {
    Some((limit.requests?, limit.window_s.filter(|seconds| *seconds > 0)?))
}

fn limit_in_words(limit: &RateLimit) -> Option<String> {
    let rate = rate(limit).map(|(requests, seconds)| {
        // Equal rates get equal words: per minute, hour or day if that is a whole number.
        let whole = [60, 3_600, 86_400].into_iter().find_map(|period| {
            let count = requests.checked_mul(period)?;
            (count % seconds == 0).then(|| format!("{} in {period} s", count / seconds))
        });
        let divisor = gcd(requests, seconds);
        whole.unwrap_or_else(|| format!("{} in {} s", requests / divisor, seconds / divisor))
    });
    rate.or_else(|| limit.text.clone())
}

const fn gcd(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    if one == 0 { 1 } else { one }
}

#[cfg(test)]
#[path = "contradiction_tests.rs"]
mod tests;
