//! Documents whose declarations contradict each other.

use super::*;
use crate::declaration::{fullness, operation};
use crate::model::Manifest;
use crate::name::ManifestUrl;
use crate::{Discovery, Document};

fn read(path: &str, document: &Value) -> Manifest {
    let url = ManifestUrl::parse(&format!("https://shop.example{path}")).unwrap();
    crate::read(&Document {
        bytes: document.to_string().as_bytes(),
        url: &url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[],
        force: None,
    })
}

fn awp(action: &Value) -> Manifest {
    let mut published = json!({"id": "book", "description": "Book", "method": "POST", "endpoint": "/book"});
    published.as_object_mut().unwrap().extend(action.as_object().unwrap().clone());
    read(
        "/agent.json",
        &json!({
            "awp_version": "0.1", "domain": "shop.example", "intent": "Sell.",
            "capabilities": {"streaming": false}, "actions": [published]
        }),
    )
}

fn agents_json(capability: &Value) -> Manifest {
    let mut published = json!({"name": "book", "description": "Book", "method": "POST", "endpoint": "/book"});
    published.as_object_mut().unwrap().extend(capability.as_object().unwrap().clone());
    read(
        "/.well-known/agents.json",
        &json!({
            "schema_version": "0.1.0", "site": {"name": "Shop", "url": "https://shop.example"},
            "capabilities": [published]
        }),
    )
}

/// The merged capability of two manifests, the first of which leads, and their statements.
fn merged(leader: &Manifest, other: &Manifest) -> (Capability, Vec<Contradiction>, Vec<Statement>) {
    let first = |manifest: &Manifest| manifest.capabilities.first().unwrap().clone();
    assert_eq!(operation(&first(leader)), operation(&first(other)));
    let statements = [leader, other].map(|manifest| Statement::of(manifest, &first(manifest))).to_vec();
    let (capability, contradictions) = merge(&first(leader), &statements);
    assert_eq!(contradictions, super::contradictions(&statements));
    (capability, contradictions, statements)
}

fn facts(contradictions: &[Contradiction]) -> Vec<(Fact, &str)> {
    contradictions.iter().map(|contradiction| (contradiction.fact, contradiction.used.as_str())).collect()
}

/// A manifest with one capability, which `change` modifies.
fn changed(path: &str, change: impl FnOnce(&mut Capability)) -> Manifest {
    let mut manifest = if path == "/agent.json" { awp(&json!({})) } else { agents_json(&json!({})) };
    change(manifest.capabilities.first_mut().unwrap());
    manifest
}

fn merged_of(
    one: impl FnOnce(&mut Capability),
    other: impl FnOnce(&mut Capability),
) -> (Capability, Vec<Contradiction>) {
    let (capability, contradictions, _) =
        merged(&changed("/agent.json", one), &changed("/agents.json", other));
    (capability, contradictions)
}

#[test]
fn equal_and_missing_values_do_not_contradict() {
    let (capability, contradictions, _) = merged(&awp(&json!({})), &agents_json(&json!({})));
    assert_eq!(contradictions, []);
    assert_eq!(capability.id, awp(&json!({})).capabilities[0].id);
    let (capability, contradictions) = merged_of(
        |_| {},
        |other| {
            other.auth.required = Tristate::Yes;
            other.auth.schemes = vec![AuthScheme::ApiKey];
            other.rate_limit = Some(RateLimit::per_minute(5));
        },
    );
    assert_eq!(contradictions, [], "only one of them states it");
    assert_eq!(
        (capability.auth.required, capability.auth.schemes),
        (Tristate::Yes, vec![AuthScheme::ApiKey])
    );
    assert_eq!(capability.rate_limit, Some(RateLimit::per_minute(5)));
}

#[test]
fn authentication_is_required_where_one_declaration_requires_it() {
    let (capability, contradictions) = merged_of(
        |leader| {
            leader.auth.required = Tristate::No;
            leader.auth.schemes = vec![AuthScheme::None];
        },
        |other| {
            other.auth.required = Tristate::Yes;
            other.auth.schemes = vec![AuthScheme::OAuth2];
            other.auth.scopes = vec!["book".to_owned()];
            other.auth.session = true;
        },
    );
    assert_eq!(facts(&contradictions), [(Fact::AuthRequired, "required"), (Fact::Auth, "oauth2")]);
    assert_eq!(
        (capability.auth.required, capability.auth.schemes),
        (Tristate::Yes, vec![AuthScheme::OAuth2])
    );
    assert_eq!(capability.auth.scopes, ["book"]);
    assert!(capability.auth.session);
    let scopes = |scopes: &'static [&'static str]| {
        move |capability: &mut Capability| {
            capability.auth.scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        }
    };
    let (_, contradictions) = merged_of(scopes(&["b", "a"]), scopes(&["a"]));
    assert_eq!(facts(&contradictions), [(Fact::Scopes, "a, b")]);
    assert_eq!(merged_of(scopes(&["b", "a"]), scopes(&["a", "b"])).1, []);
}

#[test]
fn the_most_cautious_declared_safety_applies() {
    let declared = |class| {
        move |capability: &mut Capability| {
            capability.safety = Safety { class, source: TypeSource::Declared, ..Safety::default() };
        }
    };
    let (capability, contradictions) =
        merged_of(declared(SafetyClass::Read), declared(SafetyClass::Irreversible));
    assert_eq!(facts(&contradictions), [(Fact::Safety, "irreversible")]);
    assert_eq!(capability.safety.class, SafetyClass::Irreversible);
    let inferred = |class| {
        move |capability: &mut Capability| {
            capability.safety = Safety { class, source: TypeSource::Inferred, ..Safety::default() };
        }
    };
    let (capability, contradictions) =
        merged_of(inferred(SafetyClass::Destructive), declared(SafetyClass::Write));
    assert_eq!(
        (capability.safety.class, capability.safety.source),
        (SafetyClass::Write, TypeSource::Declared)
    );
    assert_eq!(contradictions, []);
    let (capability, contradictions) =
        merged_of(inferred(SafetyClass::Read), inferred(SafetyClass::Destructive));
    assert_eq!(capability.safety.class, SafetyClass::Destructive);
    assert_eq!(contradictions, [], "nobody stated it");
}

#[test]
fn confirmation_hand_off_and_irreversibility_of_any_declaration_count() {
    let (capability, contradictions) = merged_of(
        |leader| {
            leader.safety.confirmation = Confirmation::Recommended;
            leader.safety.reversible = Some(true);
        },
        |other| {
            other.safety.confirmation = Confirmation::Required;
            other.safety.reversible = Some(false);
            other.safety.handoff = true;
            other.deprecated = true;
            other.degraded = true;
            other.addresses_reader = true;
        },
    );
    assert_eq!(
        facts(&contradictions),
        [(Fact::Confirmation, "required"), (Fact::Reversible, "not reversible")]
    );
    assert_eq!(capability.safety.confirmation, Confirmation::Required);
    assert_eq!(capability.safety.reversible, Some(false));
    assert!(capability.safety.handoff && capability.deprecated && capability.degraded);
    assert!(capability.addresses_reader);
}

#[test]
fn a_parameter_is_required_where_one_declaration_requires_it() {
    let leader = awp(&json!({"inputs": {"seat": {"type": "string"}, "row": {"type": "integer"}}}));
    let other = agents_json(&json!({"params": {
        "seat": {"type": "string", "required": true},
        "row": {"type": "string"},
        "date": {"type": "string", "required": true},
        "note": {"type": "string"},
    }}));
    let (capability, contradictions, _) = merged(&leader, &other);
    let named: Vec<(&str, &str)> = contradictions
        .iter()
        .map(|contradiction| (contradiction.parameter.as_deref().unwrap(), contradiction.used.as_str()))
        .collect();
    assert_eq!(
        named,
        [("date", "required string"), ("row", "optional integer"), ("seat", "required string")]
    );
    assert_eq!(contradictions[0].stated[0].value, "absent");
    let schema = capability.parameters.unwrap();
    let mut required: Vec<&str> =
        schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    required.sort_unstable();
    assert_eq!(required, ["date", "seat"]);
    assert_eq!(schema["properties"]["date"]["type"], "string");
    assert!(
        schema["properties"].get("note").is_none(),
        "an optional one of another declaration is not added"
    );
    assert_eq!(schema["properties"]["row"]["type"], "integer", "the type is the leader's");
}

#[test]
fn required_parameters_are_added_to_a_leader_without_parameters() {
    let other = agents_json(&json!({"params": {"seat": {"type": "string", "required": true}}}));
    let (capability, contradictions, _) = merged(&awp(&json!({})), &other);
    assert_eq!(contradictions, []);
    assert_eq!(capability.parameters.unwrap()["required"], json!(["seat"]));
}

#[test]
fn merging_uses_the_highest_price_and_the_lowest_limit() {
    let priced = |price: &'static str, asset: &'static str, limit: RateLimit| {
        move |capability: &mut Capability| {
            let (price, asset) = (Some(price.to_owned()), Some(asset.to_owned()));
            capability.price = Some(Payment { asset, price, ..Payment::default() });
            capability.rate_limit = Some(limit);
        }
    };
    let limit = |requests, window_s| RateLimit {
        requests: Some(requests),
        window_s: Some(window_s),
        ..RateLimit::default()
    };
    let (capability, contradictions) =
        merged_of(priced("$0.5", "USD", limit(60, 60)), priced("2.00", "USD", limit(600, 3_600)));
    assert_eq!(facts(&contradictions), [(Fact::Price, "2.00 USD"), (Fact::RateLimit, "10 in 60 s")]);
    assert_eq!(capability.price.unwrap().price.as_deref(), Some("2.00"));
    assert_eq!(capability.rate_limit, Some(limit(600, 3_600)));
    let (capability, contradictions) =
        merged_of(priced("5", "USD", limit(60, 60)), priced("7", "EUR", limit(3_600, 3_600)));
    assert_eq!(
        facts(&contradictions),
        [(Fact::Price, "5 USD")],
        "the rates are equal, the currencies differ"
    );
    assert_eq!(capability.price.unwrap().price.as_deref(), Some("5"));
}

#[test]
fn each_side_of_a_contradiction_gets_a_finding() {
    let leader = changed("/agent.json", |leader| leader.auth.required = Tristate::No);
    let other = changed("/agents.json", |other| other.auth.required = Tristate::Yes);
    let (_, contradictions, statements) = merged(&leader, &other);
    let findings = |index: usize| {
        let found = findings_of(&statements[index].id, &contradictions, &statements);
        found.into_iter().map(|finding| (finding.code, finding.pointer, finding.text)).collect::<Vec<_>>()
    };
    assert_eq!(
        findings(0),
        [(
            "declarations.auth".into(),
            "/actions/0".to_owned(),
            "auth_required: not required here, required at \
             https://shop.example/.well-known/agents.json#/capabilities/0; required is used"
                .to_owned()
        )]
    );
    assert_eq!(findings(1)[0].1, "/capabilities/0");
    assert!(findings(1)[0].2.contains("not required at https://shop.example/agent.json#/actions/0"));
}

#[test]
fn a_fuller_declaration_is_the_one_that_states_more() {
    let rank = |manifest: &Manifest| fullness(manifest, &manifest.capabilities[0]);
    let bare = awp(&json!({}));
    assert!(rank(&awp(&json!({"inputs": {"seat": {"type": "string"}}}))) > rank(&bare));
    let mut not_callable = awp(&json!({"inputs": {"seat": {"type": "string"}}}));
    not_callable.capabilities[0].invocation.method = None;
    assert!(rank(&not_callable) < rank(&bare), "what can be called comes first");
    let text = read("/agents.txt", &json!({}));
    assert!(text.capabilities.is_empty());
}

#[test]
fn comparisons_and_listed_contradictions_are_bounded() {
    let long = "x".repeat(5_000);
    let properties = |is_text: bool| {
        let kind = if is_text { "string" } else { "integer" };
        let names = (0..200).map(|number| format!("p{number:03}")).chain([long.clone()]);
        let properties: Map<String, Value> =
            names.map(|name| (name, json!({"type": kind, "format": long}))).collect();
        json!({"type": "object", "properties": properties})
    };
    let statement = |number: usize| {
        let manifest = changed("/agents.json", |capability| {
            capability.id = CapabilityId::of_key(&number.to_string());
            capability.parameters = Some(properties(number == 0));
            capability.auth.scopes = vec![format!("{long}{number}")];
        });
        Statement::of(&manifest, &manifest.capabilities[0])
    };
    let statements: Vec<Statement> = (0..2 * DECLARATIONS_MAX).map(statement).collect();
    assert!(statements[0].bytes() < 64 * 1_024, "{}", statements[0].bytes());
    assert_eq!(statements[0].parameters.as_ref().unwrap().len(), 64);
    let found = contradictions(&statements);
    assert_eq!(found.len(), CONTRADICTIONS_MAX);
    assert_eq!(found[0].fact, Fact::Scopes, "values are compared in full");
    for contradiction in &found {
        assert_eq!(contradiction.stated.len(), DECLARATIONS_MAX);
        let values = contradiction.stated.iter().map(|stated| &stated.value).chain([&contradiction.used]);
        assert!(values.into_iter().all(|value| value.chars().count() <= VALUE_CHARS_MAX));
    }
}
