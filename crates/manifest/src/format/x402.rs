//! x402 discovery files: resources that respond with 402 and a price.
//!
//! Each priced resource is one capability. No schema was ratified, so every published shape is read: resources or items
//! as strings, as `METHOD path`, as objects with `accepts`. Prices are recorded and never paid.
//!
//! Follows x402 v1 and v2 (payment requirements); the discovery file is community practice.

use serde_json::Value;

use crate::address;
use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, at_path, strong};
use crate::format::{endpoint, header, lenient, x402_input};
use crate::model::{AuthScheme, Capability, CapabilityKind, Cost, Interface, Payment, Protocol, Tristate};
use crate::object::{Object, children};
use crate::rule::{Kind, findings, may};
use crate::schema;
use crate::text;

/// Members that list paid resources.
const LISTS: &[&str] =
    &["resources", "items", "endpoints", "paid_endpoints", "paidEndpoints", "routes", "services", "accepts"];
/// Members that list free resources.
const FREE_LISTS: &[&str] = &["free_endpoints", "freeEndpoints", "free_resources", "freeResources"];
/// Maximum number of payment methods kept from one file.
const PAYMENTS_MAX: usize = 50;

pub(crate) const MARKERS: &[Marker] = &[
    strong(|c| c.value("x402Version").map(|version| format!("`x402Version` is {version}"))),
    at_path(|c| {
        c.agrees(&["/x402", "/x402.json"], &["resources", "items", "version", "x402_version", "payment"])
    }),
];

findings! {
    shape ROOT("x402", "x402 discovery (unratified)") {
        may("x402Version", Kind::Integer, "State the protocol version as a number."),
        may("resources", Kind::List, "List the resources."),
        may("items", Kind::List, "List the resources."),
    }
    shape RESOURCE("x402.resource", "x402 discovery (unratified)") {
        may("description", Kind::Text, "Describe the resource in a string."),
        may("method", Kind::OneOf(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]), "State an HTTP method in capitals."),
        may("accepts", Kind::List, "Publish payment requirements as an array of objects."),
    }
    rule NO_PRICE: Note("x402.resource.price.missing", "x402 v2 PaymentRequirements")
        "a resource states no price before it is called"
            => "Publish `accepts` with scheme, network, asset, amount and address, so that agents can choose before calling.";
    rule NO_RESOURCES: Should("x402.resources.missing", "x402 discovery (unratified)")
        "the file lists no resource" => "List the resources that are sold.";
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let version = root.value("x402Version").map(ToString::to_string);
    let flavour = if version.is_some() { None } else { Some("freeform") };
    draft.dialect(version.as_deref().or_else(|| root.text("version")), flavour);
    draft.assess("x402 discovery", |code| code.starts_with("x402."));
    draft.check(root, &ROOT);
    header::describe(root, draft);
    read_payments(root, draft);
    read_endpoint(root, draft);
    // The network and the asset of the file apply to its resources.
    let of_root = lenient::price_of_members(root.map).unwrap_or_default();
    if draft.manifest.payments.is_empty() && of_root.address.is_some() {
        draft.keep(Payment { scheme: Some("x402".to_owned()), price: None, ..of_root.clone() });
    }
    let of_root = Payment { network: of_root.network, asset: of_root.asset, ..Payment::default() };
    for payment in draft.manifest.payments.iter_mut().filter(|payment| payment.plan.is_none()) {
        payment.scheme.get_or_insert_with(|| "x402".to_owned());
    }
    for key in LISTS {
        if let Some(list @ Value::Array(items)) = root.value(key)
            && !items.is_empty()
        {
            read_list(list, &root.at(key), &of_root, draft);
            break;
        }
    }
    for key in FREE_LISTS {
        let first = draft.manifest.capabilities.len();
        if let Some(list) = root.value(key) {
            let free = Payment { price: Some("free".to_owned()), ..Payment::default() };
            read_list(list, &root.at(key), &free, draft);
        }
        for free in draft.manifest.capabilities.iter_mut().skip(first) {
            free.price
                .get_or_insert_with(|| Payment { price: Some("free".to_owned()), ..Payment::default() });
            (free.auth.required, free.auth.schemes) = (Tristate::No, Vec::new());
        }
    }
    let rels = [("openapi", "service-desc"), ("documentation", "docs"), ("docs", "docs"), ("skill", "skill")];
    draft.links(root, &rels);
}

/// Reads the priced resources that a document of another format lists in its `x402`, unless its parser did.
pub(crate) fn read_block(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(block) = root.object("x402") else { return };
    let below = [&block.pointer, "/"].concat();
    let is_read = draft.manifest.capabilities.iter().any(|known| known.pointer.starts_with(&below));
    let of_block = lenient::price_of_members(block.map).unwrap_or_default();
    let of_block = Payment { network: of_block.network, asset: of_block.asset, ..Payment::default() };
    for resource in LISTS.iter().flat_map(|key| block.objects(key)).filter(|_| !is_read) {
        if !draft.is_full() && resource.value_of(&["price", "amount", "price_usd"]).is_some() {
            add_resource(&resource, &of_block, draft);
        }
    }
}

/// Adds the network and the asset of the file to prices without a network, also of calls in other lists.
pub(crate) fn complete_prices(root: &Object<'_>, draft: &mut Draft<'_>) {
    let of_root = lenient::price_of_members(root.map).unwrap_or_default();
    let prices = draft.manifest.capabilities.iter_mut().filter_map(|call| call.price.as_mut());
    for price in prices.filter(|price| price.network.is_none() && price.cost() == Some(Cost::Paid)) {
        price.network.clone_from(&of_root.network);
        price.asset = price.asset.take().or_else(|| of_root.asset.clone());
    }
}

/// Reports a file without priced resources, after all its lists were read.
pub(crate) fn check_resources(draft: &mut Draft<'_>) {
    if draft.manifest.capabilities.is_empty() {
        draft.report_rule(&NO_RESOURCES, String::new());
    }
}

fn read_payments(root: &Object<'_>, draft: &mut Draft<'_>) {
    let lists_resources = |key: &&str| root.list(key).is_some_and(|list| !list.is_empty());
    if LISTS.iter().filter(|key| **key != "accepts").any(lists_resources) {
        let accepted = root.objects("accepts").take(PAYMENTS_MAX);
        draft.keep_all(accepted.filter_map(|terms| lenient::price_of_members(terms.map)));
    }
    for key in ["alternative_payment", "alternativePayment"] {
        let block = root.object(key);
        let chains = block.iter().flat_map(|block| block.objects("chains")).take(PAYMENTS_MAX);
        draft.keep_all(chains.map(|chain| Payment {
            network: chain.string_of(&["network", "chain", "key", "name"]),
            address: chain.string_of(&["treasury", "address", "wallet", "payTo"]),
            // `usdc` names the contract of the asset.
            asset: chain.string("asset").or_else(|| chain.has("usdc").then(|| "USDC".to_owned())),
            ..Payment::default()
        }));
    }
    for key in ["payment", "payments", "pricing"] {
        let Some(payment) = root.object(key) else { continue };
        let base = root.value(key).and_then(lenient::price).unwrap_or_default();
        let rails: Vec<Payment> = payment
            .objects("rails")
            .chain(payment.objects("accepts"))
            .take(PAYMENTS_MAX)
            .filter_map(|rail| lenient::price_of_members(rail.map))
            .map(|rail| Payment {
                asset: rail.asset.or_else(|| base.asset.clone()),
                scheme: rail.scheme.or_else(|| base.scheme.clone()),
                ..rail
            })
            .collect();
        let scheme = base.scheme.clone().or_else(|| payment.string("provider"));
        let base = Payment { scheme, ..base };
        let stated = if rails.is_empty() { vec![base] } else { rails };
        draft.keep_all(stated.into_iter().filter(|payment| *payment != Payment::default()));
    }
}

/// Reads the single payment address of a file that lists no resources.
fn read_endpoint(root: &Object<'_>, draft: &mut Draft<'_>) {
    let keys = ["endpoint_url", "payment_endpoint", "paymentEndpoint", "endpoint"];
    if let Some(key) = keys.into_iter().find(|key| root.text(key).is_some()) {
        let url = draft.url(root, key);
        draft.keep_all(url.map(|url| Interface::new(Protocol::X402, Some(url))));
    }
    for key in ["supported_methods", "payment_methods", "paymentMethods"] {
        let is_scheme = |word: &&&str| !address::is_method(&word.to_ascii_uppercase());
        for word in root.texts(key).iter().filter(is_scheme).take(PAYMENTS_MAX) {
            let asset = root.string("currency");
            draft.keep(Payment { scheme: draft::name(Some(word)), asset, ..Payment::default() });
        }
    }
}

fn read_list(list: &Value, pointer: &str, of_root: &Payment, draft: &mut Draft<'_>) {
    for (_, item, pointer) in children(list, pointer) {
        if draft.is_full() {
            return;
        }
        match item {
            Value::String(published) => {
                let mut capability =
                    draft.capability(CapabilityKind::Resource, published, published, pointer.clone());
                endpoint::read(published, None, &pointer, &mut capability, draft);
                paid(&mut capability);
                draft.push(capability);
            }
            Value::Object(map) => read_resource(&Object::new(map, pointer), of_root, draft),
            _ => {}
        }
    }
}

fn read_resource(resource: &Object<'_>, of_root: &Payment, draft: &mut Draft<'_>) {
    draft.check(resource, &RESOURCE);
    add_resource(resource, of_root, draft);
}

fn add_resource(resource: &Object<'_>, of_root: &Payment, draft: &mut Draft<'_>) {
    let nested = resource.object("resource");
    let key =
        ["resource", "url", "path", "endpoint", "route"].into_iter().find(|key| resource.text(key).is_some());
    let published = key
        .and_then(|key| resource.text(key))
        .or_else(|| nested.as_ref().and_then(|nested| nested.text("url")))
        .unwrap_or_default();
    let id = resource.text_of(&["id", "name"]).unwrap_or(published);
    let label = resource.text_of(&["name", "title"]).unwrap_or(id);
    let mut capability = draft.capability(CapabilityKind::Resource, id, label, resource.pointer.clone());
    let described = nested.as_ref().and_then(|nested| nested.text("description"));
    capability.description = draft::description(resource.text("description").or(described));
    capability.tags = draft::tags(resource.texts("tags"));
    if !published.is_empty() {
        let pointer = resource.at(key.unwrap_or("resource"));
        let listed = ["method", "methods"].iter().find_map(|key| resource.texts(key).first().copied());
        let method = listed.map(str::to_owned).or_else(|| x402_input::method(resource));
        endpoint::read(published, method.as_deref(), &pointer, &mut capability, draft);
    }
    let inputs = ["inputSchema", "input_schema", "parameters", "params", "input", "query"];
    capability.parameters = inputs
        .iter()
        .find_map(|key| schema::lenient(resource.value(key)?, &capability.invocation))
        .or_else(|| x402_input::parameters(resource, &capability.invocation));
    let outputs = ["outputSchema", "output_schema", "output", "response"];
    capability.response = outputs.iter().find_map(|key| lenient::response(resource.value(key)?));
    capability.price = price(resource, draft.manifest.payments.first()).map(|price| Payment {
        network: price.network.or_else(|| of_root.network.clone()),
        asset: price.asset.or_else(|| of_root.asset.clone()),
        ..price
    });
    capability.other_prices = prices_elsewhere(resource, capability.price.as_ref());
    if capability.price.is_none() && of_root.price.is_none() {
        draft.report_rule(&NO_PRICE, resource.pointer.clone());
    }
    paid(&mut capability);
    let listed = resource.texts("methods").into_iter().filter(|_| !resource.has("method"));
    let methods: Vec<String> = listed
        .skip(1)
        .map(str::to_ascii_uppercase)
        .filter(|method| address::is_method(method))
        .take(METHODS_MAX)
        .collect();
    draft.push_with_methods(capability, methods);
}

/// Maximum number of further methods of one resource that are read.
const METHODS_MAX: usize = 6;

/// The stated price, completed from the first requirement that is accepted. The price of the whole file applies to a
/// resource that states none.
fn price(resource: &Object<'_>, of_file: Option<&Payment>) -> Option<Payment> {
    let accepted = resource.list("accepts").and_then(|list| list.iter().find_map(lenient::price));
    let accepted = accepted.or_else(|| of_file.filter(|payment| payment.price.is_some()).cloned());
    let first = |keys: &[&str]| {
        keys.iter().find_map(|key| resource.texts(key).first().map(|text| (*text).to_owned()))
    };
    let network = first(&["network", "networks", "chains"]);
    let keys = ["price", "pricing", "amount", "cost", "price_usd"];
    let stated = keys
        .iter()
        .find_map(|key| lenient::price(resource.value(key)?))
        .or_else(|| lenient::price_of_members(resource.map).filter(|stated| stated.price.is_some()));
    let found = match (stated, accepted) {
        (Some(stated), Some(accepted)) => Some(Payment {
            price: stated.price.or(accepted.price),
            scheme: stated.scheme.or(accepted.scheme),
            network: stated.network.or(accepted.network),
            asset: stated.asset.or(accepted.asset),
            address: stated.address.or(accepted.address),
            plan: stated.plan.or(accepted.plan),
            model: stated.model.or(accepted.model),
        }),
        (stated, accepted) => stated.or(accepted),
    };
    let own = lenient::price_of_members(resource.map).unwrap_or_default();
    found.map(|payment| Payment {
        network: payment.network.or(network),
        asset: payment.asset.or(own.asset),
        address: payment.address.or(own.address),
        ..payment
    })
}

/// The prices on the other networks and in the other assets that are accepted.
fn prices_elsewhere(resource: &Object<'_>, price: Option<&Payment>) -> Vec<Payment> {
    let accepted = resource.objects("accepts").take(PAYMENTS_MAX);
    let accepted = accepted.filter_map(|terms| lenient::price_of_members(terms.map));
    let named = ["network", "networks", "chains"].into_iter().map(|key| resource.texts(key));
    let named = named.flatten().take(PAYMENTS_MAX).filter_map(|network| {
        let network = text::capped(network, draft::NAME_CHARS_MAX).to_owned();
        Some(Payment { network: Some(network), ..price?.clone() })
    });
    let amount = price.and_then(|price| price.price.as_ref());
    let stated = accepted.chain(named);
    let stated = stated.map(|own| Payment { price: own.price.or_else(|| amount.cloned()), ..own });
    lenient::other_prices(price, stated.filter(|own| own.price.is_some()))
}

fn paid(capability: &mut Capability) {
    if capability.price.as_ref().and_then(Payment::cost) == Some(Cost::Free) {
        capability.auth.required = Tristate::No;
    } else {
        capability.auth.required = Tristate::Yes;
        capability.auth.schemes.push(AuthScheme::Payment);
    }
    if capability.invocation.protocol.is_none() {
        capability.invocation.protocol = Some(Protocol::X402);
    }
}
