//! Payment terms in a document of any format: schemes, networks, wallets and price lists.
//!
//! They are recorded and never acted upon. Formats that define their own terms have their own parsers.

use std::collections::HashSet;

use serde_json::Value;

use crate::auth;
use crate::draft::Draft;
use crate::format::outbound::Texts;
use crate::format::payment_words::{in_sentence, is_only_scheme};
use crate::format::{
    asset_contracts, goods, lenient, payment_chain, payment_handlers, payment_words, plan_limits, price_list,
};
use crate::model::{AuthScheme, Format, Payment};
use crate::object::{Object, texts};
use crate::text;

/// Maximum number of terms of one document that are added.
const TERMS_MAX: usize = 50;
/// Maximum nesting of schemes in a block of terms.
const NESTING_MAX: usize = 2;

/// The terms that were found, up to the limit.
#[derive(Default)]
struct Terms(Vec<Payment>);

impl Terms {
    const fn is_full(&self) -> bool {
        self.0.len() >= TERMS_MAX
    }

    fn add(&mut self, payment: Payment) {
        if !self.is_full() {
            self.0.push(payment);
        }
    }

    fn add_all(&mut self, payments: impl IntoIterator<Item = Payment>) {
        payments.into_iter().take(TERMS_MAX).for_each(|payment| self.add(payment));
    }
}

/// Reads the members of a root that state how calls are paid.
pub(crate) fn read(root: &Object<'_>, texts: &Texts<'_>, draft: &mut Draft<'_>) {
    let mut found = Terms::default();
    for (scheme, block) in blocks_of_schemes(root).filter(|_| draft.format() != Format::X402) {
        terms(&block, scheme, 0, &mut found);
    }
    match draft.format() {
        Format::X402 => rails(root, &mut found),
        Format::Air | Format::AgentsTxt => {}
        _ => stated(root, &mut found),
    }
    if !draft.format().is_core() {
        plan_limits::keep(root, draft);
        asset_contracts::keep(root, draft);
    }
    price_list::take_prices_of_calls(&mut found.0, &draft.manifest.capabilities);
    let known = &draft.manifest.payments;
    // Without an asset or a network, the name of a scheme only repeats terms that are stated elsewhere.
    let terms = known.iter().chain(&found.0).filter(|payment| !is_only_scheme(payment));
    let described: HashSet<String> = terms.filter_map(|payment| payment.scheme.clone()).collect();
    let repeats = |payment: &Payment| {
        is_only_scheme(payment) && payment.scheme.as_ref().is_some_and(|scheme| described.contains(scheme))
    };
    let is_new = |payment: &&Payment| !known.contains(payment) && !repeats(payment);
    let new: Vec<Payment> = found.0.iter().filter(is_new).cloned().collect();
    draft.keep_all(new);
    if !draft.format().is_core() {
        payment_words::complete(texts, draft);
    }
}

/// The blocks of a document that state terms by the name of their scheme, at the root or among its extensions.
pub(crate) fn blocks_of_schemes<'v>(
    root: &Object<'v>,
) -> impl Iterator<Item = (Option<&'static str>, Object<'v>)> + use<'v> {
    const SCHEMES: &[&str] = &["x402", "ap2", "mpp", "l402"];
    let extensions = root.object("extensions");
    let holders: Vec<Object<'v>> = std::iter::once(root.clone()).chain(extensions).collect();
    let other = ["x-payment", "x_payment"].into_iter().find_map(|key| root.object(key));
    let named = holders.into_iter().flat_map(|holder| {
        SCHEMES.iter().filter_map(move |scheme| Some((Some(*scheme), holder.object(scheme)?)))
    });
    named.chain(other.map(|block| (None, block)))
}

/// Members with the terms of the whole service.
fn stated(root: &Object<'_>, found: &mut Terms) {
    for key in ["payment", "payments"] {
        match root.value(key) {
            Some(Value::Object(map)) => terms(&Object::root(map), None, 0, found),
            Some(value) => found.add_all(texts(value).into_iter().map(of_scheme)),
            None => {}
        }
    }
    if let Some(networks) = root.object("networks") {
        let networks = networks.members().filter_map(|(_, network)| {
            lenient::price_of_members(network.map).filter(|terms| terms.address.is_some())
        });
        found.add_all(networks);
    }
    let blocks = std::iter::once(root.clone()).chain(root.object("capabilities"));
    blocks.for_each(|block| protocols(&block, found));
    rails(root, found);
    found.add_all(payment_chain::of_protocol(root));
    wallet(root, found);
    accounts(root, found);
    if let Some(scheme) = named_scheme(root).filter(|_| found.0.is_empty()) {
        found.add(of_scheme(scheme));
    }
    for block in std::iter::once(root.clone()).chain(root.object("capabilities")) {
        let keys = ["supportedPayments", "supported_payments", "accepted_payments", "acceptedPayments"];
        found.add_all(keys.iter().flat_map(|key| block.texts(key)).map(of_scheme));
    }
    found.add_all(payment_handlers::named(root).map(of_scheme));
    let paid_auth = root.object_of(&["auth", "authentication"]).filter(|auth| {
        auth.text_of(&["type", "scheme", "method"])
            .is_some_and(|word| auth::scheme(word) == AuthScheme::Payment)
    });
    if let Some(paid) = paid_auth {
        let terms = lenient::price_of_members(paid.map).unwrap_or_default();
        let scheme = paid.text_of(&["type", "scheme", "method"]).map(str::to_owned);
        if terms.address.is_some() || terms.network.is_some() || terms.asset.is_some() {
            found.add(Payment { scheme, ..terms });
        }
    }
    if let Some(model) = root.text_of(&["pricing_model", "pricingModel"]).filter(|_| !root.has("pricing")) {
        if is_scheme(model) || !lenient::is_model(model) {
            found.add(of_scheme(model));
        } else {
            let price = (model == "free").then(|| model.to_owned());
            found.add(Payment {
                price,
                model: Some(text::capped(model, 100).to_owned()),
                ..Payment::default()
            });
        }
    }
    let of_auth = root.object_of(&["authentication", "auth"]).map(|auth| auth.texts("payment"));
    found.add_all(of_auth.into_iter().flatten().map(of_scheme));
    for methods in ["payment_methods", "paymentMethods"].iter().filter_map(|key| root.value(key)) {
        let listed = methods.get("supported").or_else(|| methods.get("methods")).unwrap_or(methods);
        let provider = methods.get("provider").and_then(Value::as_str);
        found.add_all(provider.into_iter().chain(texts(listed)).map(of_scheme));
    }
    if let Some(pricing) = root.value("pricing") {
        price_list(pricing, found);
    }
    let priced_blocks = root.object_of(&["pricing"]);
    for holder in std::iter::once(root.clone()).chain(priced_blocks) {
        let asset = holder.text("currency").map(|code| text::capped(code, 100).to_owned());
        plans(&holder, &Payment { asset, ..Payment::default() }, found);
    }
    goods::read(root.map, &mut |name, payment| found.add(of_plan(name, payment)));
}

/// Members that list plans, each with its price.
const PLAN_KEYS: &[&str] =
    &["plans", "tiers", "rate_limits", "rateLimits", "packages", "subscriptions", "offers"];

/// The price of each plan.
fn plans(holder: &Object<'_>, base: &Payment, found: &mut Terms) {
    for key in PLAN_KEYS {
        let members = holder.object(key);
        let members = members.iter().flat_map(Object::members).map(|(name, plan)| (Some(name), plan));
        let list = holder.list(key).unwrap_or_default().iter().filter_map(Value::as_object);
        let listed = list.map(|plan| (None, Object::root(plan)));
        for (name, plan) in members.chain(listed).take(TERMS_MAX) {
            let name = name.or_else(|| plan.text_of(&["name", "label", "title", "id", "plan", "tier"]));
            if let (Some(name), Some(payment)) = (name, priced(&plan)) {
                found.add(of_plan(text::capped(name, 100), completed(payment, base)));
            }
        }
    }
}

fn priced(object: &Object<'_>) -> Option<Payment> {
    let stated = lenient::price_of_members(object.map).filter(|payment| payment.price.is_some());
    stated.or_else(|| lenient::price(object.value("total").filter(|total| total.is_number())?))
}

fn of_plan(plan: &str, payment: Payment) -> Payment {
    if is_scheme(plan) {
        return Payment { scheme: payment.scheme.or_else(|| Some(plan.to_owned())), ..payment };
    }
    Payment { plan: Some(plan.to_owned()), ..payment }
}

fn of_scheme(scheme: &str) -> Payment {
    if let Some(split) = in_sentence(scheme).into_iter().next().filter(|split| split.scheme.is_some()) {
        return split;
    }
    Payment { scheme: Some(text::capped(scheme, 100).to_owned()), ..Payment::default() }
}

/// One block of terms: one payment for each network, wallet or scheme that it names.
fn terms(block: &Object<'_>, scheme: Option<&str>, depth: usize, found: &mut Terms) {
    let is_off = ["enabled", "supported"].iter().any(|flag| block.flag(flag) == Some(false));
    if is_off || found.is_full() {
        return;
    }
    let mut base = lenient::price_of_members(block.map).unwrap_or_default();
    base.scheme = scheme.map(str::to_owned).or(base.scheme);
    let first = found.0.len();
    for key in ["networks", "supported_networks", "rails", "accepts", "chains", "supported_chains"] {
        let objects = block.objects(key).filter_map(|item| lenient::price_of_members(item.map));
        found.add_all(objects.map(|own| completed(own, &base)));
        let names = block.texts(key).into_iter();
        found.add_all(names.map(|published| {
            let name = Some(published.to_owned());
            // `rails` lists networks or protocols, `accepts` assets too.
            if is_asset(published) {
                Payment { asset: name, ..base.clone() }
            } else if is_scheme(published) {
                Payment { scheme: name, ..base.clone() }
            } else {
                Payment { network: name, ..base.clone() }
            }
        }));
    }
    let rails = ["settlement_rails", "settlementRails", "payment_rails", "paymentRails"].iter();
    let rails = rails.flat_map(|key| block.texts(key));
    found.add_all(rails.filter_map(|rail| payment_chain::rail_in_words(rail, &base)));
    let assets = [
        "assets",
        "accepted_assets",
        "acceptedAssets",
        "currencies",
        "tokens",
        "acceptedTokens",
        "accepted_tokens",
    ];
    // `{"symbol": "USDC", "network": "base"}`: the address next to them belongs to a contract, and is not an account.
    for listed in assets.iter().flat_map(|key| block.objects(key)).take(TERMS_MAX) {
        let asset = listed.string_of(&["symbol", "asset", "token"]);
        let network = listed.string_of(&["network", "chain"]).or_else(|| base.network.clone());
        found.add_all(asset.map(|asset| Payment { asset: Some(asset), network, ..base.clone() }));
    }
    if base.asset.is_none()
        && let Some(assets) = assets.iter().map(|key| block.texts(key)).find(|assets| !assets.is_empty())
    {
        found.add_all(assets.into_iter().map(|asset| {
            let (asset, network) = payment_chain::asset_and_network(text::capped(asset, 200));
            Payment { asset: Some(asset), network: network.or_else(|| base.network.clone()), ..base.clone() }
        }));
    }
    let schemes = ["protocols", "schemes", "methods"]
        .iter()
        .find_map(|key| Some(block.texts(key)).filter(|s| !s.is_empty()));
    let schemes = schemes.into_iter().flatten();
    found.add_all(schemes.map(|scheme| Payment { scheme: Some(scheme.to_owned()), ..base.clone() }));
    let schemes = block.members().filter(|(name, _)| is_scheme(name) && depth < NESTING_MAX);
    for (name, inner) in schemes.take(TERMS_MAX) {
        terms(&inner, Some(name), depth + 1, found);
    }
    plans(block, &base, found);
    wallets(block, &base, found);
    let states_terms = Payment { scheme: None, ..base.clone() } != Payment::default();
    if found.0.len() == first && (states_terms || base.scheme.is_some()) {
        found.add(base);
    }
}

/// The stated terms, completed by the terms of their block.
fn completed(own: Payment, base: &Payment) -> Payment {
    Payment {
        scheme: base.scheme.clone().or(own.scheme),
        network: own.network.or_else(|| base.network.clone()),
        asset: own.asset.or_else(|| base.asset.clone()),
        price: own.price.or_else(|| base.price.clone()),
        address: own.address.or_else(|| base.address.clone()),
        plan: own.plan.or_else(|| base.plan.clone()),
        model: own.model.or_else(|| base.model.clone()),
    }
}

/// Reads members such as `solana_treasury` and `baseWallet`: the account of one network.
fn wallets(block: &Object<'_>, base: &Payment, found: &mut Terms) {
    for (name, address) in block.map.iter().filter_map(|(name, value)| Some((name, value.as_str()?))) {
        let mut words = text::words(name);
        let is_account = words
            .pop()
            .is_some_and(|last| matches!(last.as_str(), "treasury" | "wallet" | "recipient" | "address"));
        let is_asset = |word: &String| matches!(word.as_str(), "asset" | "contract" | "token");
        if found.is_full() {
            return;
        }
        let is_known = base.address.as_deref() == Some(address) || address.contains(char::is_whitespace);
        if is_account && !words.is_empty() && !words.iter().any(is_asset) && !is_known {
            let network = words.into_iter().find(|word| NETWORKS.contains(&word.as_str()));
            found.add(Payment { network, address: Some(address.to_owned()), ..base.clone() });
        }
    }
}

/// Networks that the name of an account may begin with.
pub(super) const NETWORKS: &[&str] = &[
    "evm",
    "base",
    "arc",
    "ethereum",
    "eth",
    "solana",
    "sol",
    "sui",
    "near",
    "xrpl",
    "xrp",
    "xahau",
    "polygon",
    "arbitrum",
    "optimism",
    "bitcoin",
    "btc",
    "lightning",
    "stellar",
    "aptos",
    "algorand",
    "avalanche",
    "bnb",
    "tron",
    "hedera",
    "ton",
];

/// Reads the account of the whole service. Its scheme and its network are in other members of the root.
fn wallet(root: &Object<'_>, found: &mut Terms) {
    let keys = [
        "payment_address",
        "paymentAddress",
        "payout_address",
        "wallet_address",
        "walletAddress",
        "payTo",
        "pay_to",
    ];
    let Some(address) = root.text_of(&keys).filter(|_| found.0.iter().all(|known| known.address.is_none()))
    else {
        return;
    };
    let scheme = named_scheme(root).map(str::to_owned);
    let network = root.string_of(&["network", "chain", "payment_network"]);
    found.add(Payment {
        scheme,
        network,
        address: Some(text::capped(address, 200).to_owned()),
        ..Payment::default()
    });
}

/// Blocks with an account for payments other than for calls.
const ACCOUNT_KEYS: &[&str] = &[
    "deposit",
    "deposits",
    "donate",
    "donation",
    "donations",
    "funding",
    "tip",
    "tips",
    "tip_jar",
    "tipJar",
    "treasury",
    "payout",
];

/// Accounts in blocks such as `deposit` and `donations`, whose name is kept as the scheme.
fn accounts(root: &Object<'_>, found: &mut Terms) {
    for key in ACCOUNT_KEYS {
        let block = root.object(key);
        let terms = block.iter().filter_map(|block| lenient::price_of_members(block.map));
        let terms = terms.filter(|terms| terms.address.is_some() && terms.network.is_some());
        found.add_all(terms.map(|terms| of_plan(key, terms)));
    }
}

/// A payment scheme among the protocols of the service.
fn named_scheme<'v>(root: &Object<'v>) -> Option<&'v str> {
    let mut named = root.texts("protocols").into_iter().chain(root.texts("payment_protocol"));
    named.find(|word| auth::scheme(word) == AuthScheme::Payment)
}

/// `payment_protocol` next to `payment_assets`, each an asset with or without its network.
fn protocols(root: &Object<'_>, found: &mut Terms) {
    let texts = |keys: &[&str]| {
        keys.iter().map(|key| root.texts(key)).find(|texts| !texts.is_empty()).unwrap_or_default()
    };
    let assets = texts(&[
        "payment_assets",
        "paymentAssets",
        "accepted_assets",
        "settlement",
        "settlement_assets",
        "payment_asset",
        "payment_token",
        "paymentToken",
    ]);
    let schemes = texts(&[
        "payment_protocol",
        "payment_protocols",
        "paymentProtocol",
        "paymentProtocols",
        "payment_standard",
        "paymentStandard",
    ]);
    for scheme in schemes.into_iter().take(TERMS_MAX) {
        if assets.is_empty() {
            found.add(of_scheme(scheme));
        }
        for asset in assets.iter().take(TERMS_MAX) {
            let (asset, network) = payment_chain::asset_and_network(text::capped(asset, 200));
            let network = network.or_else(|| root.string_of(&["payment_network", "payment_settlement"]));
            found.add(Payment { network, asset: Some(asset), ..of_scheme(scheme) });
        }
    }
}

/// `payment_protocol` and `payment_rails` as objects, whose `name` is the name of the network.
fn rails(root: &Object<'_>, found: &mut Terms) {
    if let Some(protocol) = root.object_of(&["payment_protocol", "paymentProtocol"]) {
        let scheme = protocol.text_of(&["type", "name"]).filter(|scheme| is_scheme(scheme));
        let of_root = lenient::price_of_members(root.map).unwrap_or_default();
        let own = lenient::price_of_members(protocol.map).unwrap_or_default();
        found.add_all(scheme.map(|scheme| Payment {
            scheme: Some(scheme.to_owned()),
            network: own.network.or(of_root.network),
            asset: own.asset.or(of_root.asset),
            address: own.address,
            ..Payment::default()
        }));
    }
    for rail in ["payment_rails", "paymentRails"].iter().flat_map(|key| root.objects(key)).take(TERMS_MAX) {
        let Some(terms) = lenient::price_of_members(rail.map).filter(|terms| terms.asset.is_some()) else {
            continue;
        };
        let named = rail.text("name").and_then(|name| name.split_whitespace().next());
        let network = named.filter(|word| NETWORKS.contains(&word.to_ascii_lowercase().as_str()));
        found.add(Payment {
            network: terms.network.or_else(|| network.map(str::to_owned)),
            scheme: terms.scheme.filter(|scheme| is_scheme(scheme)),
            ..terms
        });
    }
}

/// Prices of the whole service: one, or one for each plan.
fn price_list(pricing: &Value, found: &mut Terms) {
    let Some(map) = pricing.as_object() else {
        let is_price = pricing.as_str().is_none_or(price_list::may_be_price);
        return found.add_all(lenient::price(pricing).filter(|_| is_price));
    };
    let whole = lenient::price(pricing);
    if whole.as_ref().is_some_and(|payment| payment.price.is_some() || payment.address.is_some()) {
        return found.add_all(whole);
    }
    let first = found.0.len();
    for (plan, value) in map.iter().take(TERMS_MAX) {
        let is_about = |word: &str| {
            matches!(word, "note" | "notes" | "description" | "model" | "currency" | "unit" | "url")
        };
        // Lists of plans are read together with those at the root.
        let is_plan =
            !PLAN_KEYS.contains(&plan.as_str()) && !text::words(plan).iter().any(|word| is_about(word));
        let is_about_price =
            value.as_str().is_none_or(price_list::states_price) || plan.eq_ignore_ascii_case("free");
        let stated =
            lenient::price(value).filter(|payment| payment.price.is_some() && is_plan && is_about_price);
        if let Some(mut payment) = stated {
            // A free plan may state only its limit: "10 calls per day".
            if value.as_str().is_some_and(|text| !price_list::states_price(text)) {
                payment.price = Some("free".to_owned());
            }
            found.add(of_plan(text::capped(plan, 100), payment));
        }
    }
    found.add_all(price_list::accepted(&Object::root(map), &whole.clone().unwrap_or_default()));
    if found.0.len() == first {
        let states = |payment: &Payment| {
            payment.scheme.is_some() || payment.network.is_some() || payment.model.is_some()
        };
        found.add_all(whole.filter(states).map(|payment| match payment.model.as_deref() {
            Some("free") => Payment { price: Some("free".to_owned()), ..payment },
            _ => payment,
        }));
    }
}

/// Whether a word is the code of an asset, in capitals as published: `USDC`. `Base` is a network.
pub(super) fn is_asset(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) && lenient::is_currency(word)
}

/// Whether the name of a member is the name of a payment scheme.
pub(super) fn is_scheme(name: &str) -> bool {
    auth::scheme(name) == AuthScheme::Payment
        || matches!(name, "ap2" | "acp" | "stripe" | "lightning" | "exact" | "usdc")
}
