//! Semantic types as phrases of everyday English.

use super::labels::capitalised;

/// The shared types, sorted by name.
const WORDS: &[(&str, &str)] = &[
    ("account:create", "Create an account"),
    ("account:profile-read", "Read a profile"),
    ("account:profile-update", "Change a profile"),
    ("account:settings-read", "Read settings"),
    ("account:settings-update", "Change settings"),
    ("auth:login", "Sign in"),
    ("auth:logout", "Sign out"),
    ("auth:password-reset", "Reset a password"),
    ("auth:token-refresh", "Renew a token"),
    ("code:execute", "Run code"),
    ("code:generate", "Write code"),
    ("code:repository-search", "Search code repositories"),
    ("code:review", "Review code"),
    ("commerce:cart-add", "Put something into the cart"),
    ("commerce:cart-remove", "Take something out of the cart"),
    ("commerce:cart-update", "Change the cart"),
    ("commerce:cart-view", "See the cart"),
    ("commerce:checkout", "Check out and pay"),
    ("commerce:order-cancel", "Cancel an order"),
    ("commerce:order-create", "Place an order"),
    ("commerce:order-status", "Follow an order"),
    ("commerce:product-detail", "Look at a product"),
    ("commerce:product-recommend", "Recommend products"),
    ("commerce:product-search", "Search products"),
    ("commerce:quote", "Get a quote"),
    ("commerce:review", "Review a product"),
    ("commerce:subscription", "Subscribe to a product"),
    ("communication:contact", "Contact somebody"),
    ("communication:message-read", "Read messages"),
    ("communication:message-send", "Send a message"),
    ("communication:notification-subscribe", "Get notifications"),
    ("communication:support-ticket", "Ask for support"),
    ("communication:translate", "Translate text"),
    ("content:article-create", "Write an article"),
    ("content:article-read", "Read an article"),
    ("content:article-search", "Search articles"),
    ("content:book-search", "Search books"),
    ("content:comment-create", "Write a comment"),
    ("content:image-generate", "Make an image"),
    ("content:media-stream", "Play media"),
    ("content:summarize", "Summarise a text"),
    ("data:analyze", "Analyse data"),
    ("data:export", "Export data"),
    ("data:query", "Query data"),
    ("data:report-generate", "Make a report"),
    ("data:validate", "Check data"),
    ("files:convert", "Convert a file"),
    ("files:download", "Download a file"),
    ("files:read", "Read a file"),
    ("files:upload", "Upload a file"),
    ("finance:market-data", "Read market data"),
    ("finance:trade", "Trade"),
    ("health:appointment-create", "Book a doctor"),
    ("jobs:apply", "Apply for a job"),
    ("jobs:search", "Search jobs"),
    ("maps:geocode", "Find a place's coordinates"),
    ("maps:place-search", "Search places"),
    ("maps:route", "Find a route"),
    ("payments:balance", "See a balance"),
    ("payments:pay", "Pay"),
    ("payments:refund", "Refund a payment"),
    ("payments:transaction-list", "List payments"),
    ("payments:transfer", "Transfer money"),
    ("scheduling:appointment-cancel", "Cancel an appointment"),
    ("scheduling:appointment-create", "Book an appointment or a table"),
    ("scheduling:availability-check", "Check free times"),
    ("scheduling:event-search", "Search events"),
    ("search:query", "Search the site"),
    ("travel:car-rental", "Rent a car"),
    ("travel:check-in", "Check in"),
    ("travel:flight-booking", "Book a flight"),
    ("travel:flight-cancel", "Cancel a flight"),
    ("travel:flight-search", "Search flights"),
    ("travel:flight-status", "Follow a flight"),
    ("travel:hotel-booking", "Book a hotel"),
    ("travel:hotel-search", "Search hotels"),
    ("travel:restaurant-booking", "Reserve a table"),
    ("travel:restaurant-search", "Search restaurants"),
    ("travel:ride-request", "Order a ride"),
    ("travel:seat-selection", "Choose a seat"),
    ("travel:train-booking", "Book a train"),
    ("travel:train-search", "Search trains"),
    ("travel:trip-plan", "Plan a trip"),
    ("weather:alert", "Weather warnings"),
    ("weather:current", "Weather now"),
    ("weather:forecast", "Weather forecast"),
];

/// Verbs that end the names of types: `appointment-update` is "Update appointment".
const VERBS: [&str; 18] = [
    "add",
    "book",
    "cancel",
    "check",
    "create",
    "delete",
    "find",
    "get",
    "list",
    "read",
    "remove",
    "report",
    "search",
    "send",
    "subscribe",
    "track",
    "update",
    "view",
];

/// The name of a type as text.
pub(crate) fn type_words(name: &str) -> String {
    if let Ok(at) = WORDS.binary_search_by_key(&name, |(known, _)| *known) {
        return WORDS.get(at).map_or_else(String::new, |(_, words)| (*words).to_owned());
    }
    if name.contains("://") {
        return name.to_owned();
    }
    let leaf = name.split_once(':').map_or(name, |(_, leaf)| leaf);
    let words: Vec<&str> = leaf.split(['-', '_', '.', ' ']).filter(|word| !word.is_empty()).collect();
    let text = match words.split_last() {
        Some((verb, object)) if !object.is_empty() && VERBS.contains(verb) => {
            format!("{verb} {}", object.join(" "))
        }
        _ => words.join(" "),
    };
    capitalised(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_type_has_words() {
        assert!(WORDS.is_sorted_by_key(|(name, _)| *name));
        for (name, _) in manifest::known_types() {
            assert!(WORDS.iter().any(|(known, _)| *known == name), "{name}");
        }
    }

    #[test]
    fn other_types_begin_with_their_verb() {
        assert_eq!(type_words("travel:flight-booking"), "Book a flight");
        assert_eq!(type_words("museum:ticket_cancel"), "Cancel ticket");
        assert_eq!(type_words("museum:opening-hours"), "Opening hours");
        assert_eq!(type_words("museum:search"), "Search");
        assert_eq!(type_words("https://acme.example/travel:book"), "https://acme.example/travel:book");
    }
}
