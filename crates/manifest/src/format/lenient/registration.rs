//! Where and how credentials are obtained, as a sentence about them states it: "Create at https://…", "Get your key at https://…".

use crate::draft::{self, DESCRIPTION_CHARS_MAX, NAME_CHARS_MAX};
use crate::format::clauses::clauses;
use crate::model::{Auth, AuthScheme};
use crate::name::URL_BYTES_MAX;
use crate::object::Object;
use crate::text::{self, capped};

/// Members of an object about credentials that hold sentences.
const SENTENCE_KEYS: &[&str] =
    &["description", "instructions", "note", "notes", "usage", "details", "howto", "how_to"];
/// Maximum number of words of one text that are searched.
const WORDS_MAX: usize = 400;
/// Maximum number of words between the verb and the address.
const WORDS_BETWEEN_MAX: usize = 8;
/// Verbs and adverbs for obtaining a credential.
const OBTAINING: &[&str] = &[
    "create",
    "created",
    "get",
    "obtain",
    "obtained",
    "register",
    "registered",
    "signup",
    "generate",
    "generated",
    "issued",
    "provision",
    "provisioned",
    "claim",
];
/// Prepositions before the address.
const AT: &[&str] = &["at", "from", "via", "on", "through", "here:", "here", "post", "by"];

/// The address at which the credentials that a text is about are obtained. The verb, the preposition and the address are in one sentence.
pub(crate) fn registration_in(text: &str) -> Option<String> {
    let text = capped(text, DESCRIPTION_CHARS_MAX);
    if !text.contains('/') {
        return None;
    }
    // Number of words since the verb, if a verb precedes in this sentence.
    let mut since: Option<usize> = None;
    let mut before = "";
    for word in text.split_whitespace().take(WORDS_MAX) {
        let bare = word.trim_matches(['`', '(', ')', ',', ';', '"', '<', '>', '*', '\'']);
        let is_address = bare.starts_with("https://") || (bare.starts_with('/') && bare.len() > 1);
        let is_led = AT.iter().any(|known| before.eq_ignore_ascii_case(known));
        if is_address && is_led && since.is_some_and(|words| words <= WORDS_BETWEEN_MAX) {
            let address = bare.trim_end_matches(['.', ':']);
            return (address.len() <= URL_BYTES_MAX).then(|| address.to_owned());
        }
        let verb = bare.trim_end_matches([':', '.']);
        // "GET" is the method of a call.
        let is_method = verb.len() > 1 && verb.bytes().all(|byte| byte.is_ascii_uppercase());
        let is_sign_up = before.eq_ignore_ascii_case("sign") && verb.eq_ignore_ascii_case("up");
        let is_verb = OBTAINING.iter().any(|known| verb.eq_ignore_ascii_case(known)) && !is_method;
        since = if is_verb || is_sign_up {
            Some(0)
        } else if bare.ends_with(['.', '!', '?']) && !is_address {
            None
        } else {
            since.map(|words| words + 1)
        };
        before = bare;
    }
    None
}

/// The address at which credentials are obtained, from the sentences of an object about them.
fn registration_in_members(object: &Object<'_>) -> Option<String> {
    SENTENCE_KEYS.iter().filter_map(|key| object.text(key)).find_map(registration_in)
}

/// Where the credentials that an element needs are obtained.
pub(crate) fn registration_of(element: &Object<'_>) -> Option<String> {
    let stated = element.object_of(&["auth", "authentication"])?;
    stated.text_of(REGISTRATION_KEYS).and_then(first_address)
}

/// Sets where the credentials of an object are obtained.
pub(super) fn set_registration(object: &Object<'_>, found: &mut [Auth]) {
    let stated = object.text_of(REGISTRATION_KEYS).and_then(first_address);
    let in_words = if stated.is_none() { registration_in_members(object) } else { None };
    let sentences = || SENTENCE_KEYS.iter().filter_map(|key| object.text(key));
    let is_automatic =
        AUTOMATIC_KEYS.iter().any(|key| object.flag(key) == Some(true)) || sentences().any(says_automatic);
    let format = object.text_of(FORMAT_KEYS).map(|format| capped(format, NAME_CHARS_MAX).to_owned());
    let format = format.or_else(|| form_beside_header(object)).or_else(|| sentences().find_map(form_in));
    for auth in found.iter_mut().filter(|auth| auth.scheme != AuthScheme::None) {
        if stated.is_some() {
            auth.registration_url.clone_from(&stated);
        } else if auth.registration_url.is_none() {
            auth.registration_url.clone_from(&in_words);
        }
        if auth.scheme != AuthScheme::Payment {
            if is_automatic {
                auth.registration.get_or_insert_with(|| AUTOMATIC.to_owned());
            }
            auth.format = auth.format.take().or_else(|| format.clone());
        }
    }
}

/// Flags that say that a first request creates the credentials, and the words that the model has for them.
const AUTOMATIC_KEYS: &[&str] = &["auto_registration", "autoRegistration", "auto_register", "autoRegister"];
const AUTOMATIC: &str = "automatic";
/// Members with the form of a credential.
const FORMAT_KEYS: &[&str] = &["key_format", "keyFormat", "api_key_format", "apiKeyFormat"];

/// Words at the end of a sentence that says that a first request creates the credentials.
const SUPPORTED: &[&str] = &["supported", "available", "enabled"];

/// Whether a sentence says that a first request creates the credentials: "Auto-registration supported."
fn says_automatic(text: &str) -> bool {
    if !text.contains("egistration") {
        return false;
    }
    clauses(capped(text, DESCRIPTION_CHARS_MAX)).any(|clause| {
        let words = text::words(clause);
        let is_denied = words.iter().any(|word| matches!(word.as_str(), "not" | "no" | "soon" | "planned"));
        let is_said = words
            .windows(2)
            .any(|two| matches!(two[0].as_str(), "auto" | "automatic") && two[1] == "registration");
        is_said && !is_denied && words.last().is_some_and(|last| SUPPORTED.contains(&last.as_str()))
    })
}

/// The form of a credential in the member `format` beside a header: `"format": "Bearer shop_your_api_key"`.
fn form_beside_header(object: &Object<'_>) -> Option<String> {
    let format = object.text("format").filter(|_| object.text_of(&["header", "name"]).is_some())?;
    let word = format.strip_prefix("Bearer ").unwrap_or(format).trim();
    let is_form = word.contains('_') && !word.contains(char::is_whitespace) && word.len() <= FORM_BYTES_MAX;
    is_form.then(|| word.to_owned())
}

/// Maximum number of bytes of the form of a credential. Longer words may be credentials.
const FORM_BYTES_MAX: usize = 40;

/// Members that say where credentials are obtained, in an address or a sentence.
pub(super) const REGISTRATION_KEYS: &[&str] = &[
    "registration_url",
    "registrationUrl",
    "register_url",
    "registration_endpoint",
    "registration",
    "register",
    "obtain_token",
    "obtain",
    "getApiKey",
    "get_api_key",
    "get_key",
    "get_token",
    "getToken",
    "how_to_get_token",
    "how_to_get_key",
    "how_to_get_api_key",
    "howToGetToken",
    "howToGetKey",
    "how_to_obtain",
    "how_to_register",
    "token_issuance",
    "tokenIssuance",
    "signup",
    "signup_url",
];

/// Keeps the description of a credential, and what it states: where the credential is obtained, its form, and the page about it.
pub(crate) fn describe_auth(description: &str, auth: &mut Auth) {
    auth.description = draft::description(Some(description));
    if auth.scheme == AuthScheme::None {
        return;
    }
    let registration_url = registration_in(description);
    if auth.docs_url.is_none() {
        let page = page_in(description).filter(|page| Some(page) != registration_url.as_ref());
        auth.docs_url = page;
    }
    auth.registration_url = auth.registration_url.take().or(registration_url);
    auth.format = auth.format.take().or_else(|| form_in(description));
}

/// Where a request carries a credential, as a text about the credential says: "passed in the request body".
pub(super) fn location_in(text: &str) -> Option<&'static str> {
    let folded = capped(text, DESCRIPTION_CHARS_MAX).to_ascii_lowercase();
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| folded.contains(phrase));
    let is_in_body = has(&["in the request body", "in the body", "in the json body"]);
    let is_in_query = has(&["as a query parameter", "in the query", "as query parameter", "in the url"]);
    match (is_in_body, is_in_query) {
        (true, false) => Some("body"),
        (false, true) => Some("query"),
        _ => None,
    }
}

/// The page to which a text refers: "see https://…", "Docs: https://…".
fn page_in(text: &str) -> Option<String> {
    let is_mark = |letter: char| "`<>\"'*()[]".contains(letter);
    // Number of words since the reference, if one precedes in this sentence.
    let mut since: Option<usize> = None;
    for word in capped(text, DESCRIPTION_CHARS_MAX).split_whitespace().take(WORDS_MAX) {
        if word.contains("https://") && since.is_some_and(|words| words <= WORDS_TO_PAGE_MAX) {
            let url = first_address(word)?;
            return Some(url.split(is_mark).next().unwrap_or_default().to_owned());
        }
        let bare = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        since = if PAGE_WORDS.iter().any(|known| bare.eq_ignore_ascii_case(known)) {
            Some(0)
        } else if word.ends_with(['.', '!', '?']) {
            None
        } else {
            since.map(|words| words + 1)
        };
    }
    None
}

/// Words before the address of a page, and maximum number of words between them and the address.
const PAGE_WORDS: &[&str] = &["see", "docs", "documentation"];
const WORDS_TO_PAGE_MAX: usize = 3;

/// Phrases before the form of a credential.
const FORM_PHRASES: &[&str] = &[
    "look like ",
    "looks like ",
    "start with ",
    "starts with ",
    "begin with ",
    "begins with ",
    "prefixed with ",
    "of the form ",
    "in the form ",
    "in the format ",
    "format: ",
    "format is ",
    "prefix: ",
];

/// The form of a credential in a text about it: `shop_live_…` in "Keys look like `shop_live_…`." or `API key (shop_live_…)`.
fn form_in(text: &str) -> Option<String> {
    let text = capped(text, DESCRIPTION_CHARS_MAX);
    form_behind_phrase(text).or_else(|| open_form_in(text).map(str::to_owned))
}

/// The first word of a text that begins like a key and is left open: `shop_live_...`, `shop_<40 hex>`.
fn open_form_in(text: &str) -> Option<&str> {
    text.match_indices('_').take(WORDS_MAX).find_map(|(at, _)| {
        let before = text.as_bytes().get(..at)?;
        let is_plain = |byte: &&u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let start = before.iter().rev().take(START_BYTES_MAX + 1).take_while(is_plain).count();
        // `<api_key>` is a placeholder, and `X-Shop_Key` the name of a header.
        let is_begun = before.len() == start
            || before.get(before.len() - start - 1).is_some_and(|byte| b" \t\n`\"'(:".contains(byte));
        if !is_begun || !(2..=START_BYTES_MAX).contains(&start) {
            return None;
        }
        let rest = capped(text.get(at - start..)?, FORM_BYTES_MAX + 1);
        let mut is_inside = false;
        let end = rest.find(|letter: char| {
            is_inside = letter == '<' || is_inside && letter != '>';
            !is_inside && (letter.is_whitespace() || "`\"'(),;:".contains(letter))
        });
        let word = rest.get(..end.unwrap_or(rest.len()))?;
        let (_, behind) = word.split_once('_')?;
        let word = if behind.ends_with("...") { word } else { word.trim_end_matches('.') };
        let is_open = word.ends_with("...") || word.ends_with(['\u{2026}', '>', '*']);
        let is_name = ["key", "token", "id", "secret", "your"].iter().any(|name| behind.starts_with(name));
        (is_open && !is_name && word.len() <= FORM_BYTES_MAX).then_some(word)
    })
}

/// Maximum number of letters before the first underscore of such a word.
const START_BYTES_MAX: usize = 8;

fn form_behind_phrase(text: &str) -> Option<String> {
    let folded = text.to_ascii_lowercase();
    let behind = FORM_PHRASES.iter().filter_map(|phrase| Some(folded.find(phrase)? + phrase.len())).min()?;
    let is_mark = |letter: char| "`\"'()*,;".contains(letter);
    let mut words = text.get(behind..)?.split_whitespace().map(|word| word.trim_matches(is_mark));
    // "Format: Bearer shop_<key>"
    let word = words.find(|word| !matches!(*word, "Bearer" | "the" | "prefix" | "a"))?;
    let word = word.trim_end_matches(['.', ':']).trim_matches(is_mark);
    let is_form = word.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && word.contains(['_', '<', '*', '\u{2026}'])
        && !word.contains("://");
    is_form.then(|| capped(word, NAME_CHARS_MAX).to_owned())
}

/// The first address or path of a text: `/register` in `POST /register (returns a key)`.
pub(super) fn first_address(text: &str) -> Option<String> {
    let is_address = |word: &&str| word.contains("://") || (word.starts_with('/') && word.len() > 1);
    let word = text.split_whitespace().find(is_address).filter(|word| word.len() <= URL_BYTES_MAX)?;
    let start = word.find("http").filter(|_| word.contains("://")).unwrap_or_default();
    Some(word.get(start..)?.trim_end_matches(['.', ',', ';', ')']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_the_description_of_a_credential_states() {
        let mut auth = Auth::new(AuthScheme::ApiKey);
        describe_auth(
            "Get a key at https://shop.example/keys. Keys look like sk_\u{2026} (see https://shop.example/docs).",
            &mut auth,
        );
        assert_eq!(auth.registration_url.as_deref(), Some("https://shop.example/keys"));
        assert_eq!(auth.format.as_deref(), Some("sk_\u{2026}"));
        let mut auth = Auth::new(AuthScheme::Bearer);
        describe_auth("A token of the shop; see <https://shop.example/docs/auth>.", &mut auth);
        assert_eq!(auth.docs_url.as_deref(), Some("https://shop.example/docs/auth"));
        assert_eq!((auth.registration_url, auth.format), (None, None));
        assert_eq!(page_in("Sent to https://shop.example/v1 with each call."), None);
        assert!(auth.description.is_some_and(|text| text.starts_with("A token of the shop")));
    }

    #[test]
    fn finds_where_a_request_carries_a_credential() {
        for (text, expected) in [
            ("Public write key passed in the request body.", Some("body")),
            ("Send the key as a query parameter.", Some("query")),
            ("Send it in the URL or in the body.", None),
            ("Send it in a header.", None),
        ] {
            assert_eq!(location_in(text), expected, "{text}");
        }
    }

    #[test]
    fn finds_where_credentials_are_obtained_and_their_form() {
        let of = |text: &str| registration_in(text).unwrap_or_default();
        for text in [
            "Shop token. Create at https://shop.example/keys. Paste as 'Bearer shop_…'.",
            "Free plan: 3 rooms. Get your key at https://shop.example/keys",
            "Register at https://shop.example/keys, then pay.",
            "Sign up at https://shop.example/keys.",
            "Keys are issued by https://shop.example/keys (free).",
            "Obtain a token via POST https://shop.example/keys",
        ] {
            assert_eq!(of(text), "https://shop.example/keys", "{text}");
        }
        assert_eq!(of("Get a key from POST /keys."), "/keys");
        for (text, form) in [
            ("Keys look like `sk_\u{2026}`.", "sk_\u{2026}"),
            ("Format: Bearer shop_<key>", "shop_<key>"),
            ("Tokens start with shop_live_, and expire.", "shop_live_"),
            ("Keys look like this", ""),
            ("The key is in the format of JSON.", ""),
            ("Format: JSON-RPC", ""),
            ("In the format user-id.", ""),
        ] {
            assert_eq!(form_in(text).unwrap_or_default(), form, "{text}");
        }
        for (text, form) in [
            ("API key (shop_live_...) via Authorization: Bearer header.", "shop_live_..."),
            ("Send Authorization: Bearer shop_...", "shop_..."),
            ("A shop_<40 lowercase hex> key.", "shop_<40 lowercase hex>"),
            ("Use snake_case.", ""),
            ("The header is X-Shop_Key.", ""),
            ("See user_id, shop_id and so on...", ""),
            ("Send Authorization: Bearer <api_key>", ""),
            ("Pass your api_key...", ""),
        ] {
            assert_eq!(form_in(text).unwrap_or_default(), form, "{text}");
        }
        for text in ["Optional \u{2014} auto-registration supported.", "Automatic registration is enabled."] {
            assert!(says_automatic(text), "{text}");
        }
        for text in
            ["Registration supported.", "Auto-registration: POST /register", "No auto-registration supported"]
        {
            assert!(!says_automatic(text), "{text}");
        }
        for text in [
            "See https://shop.example/keys",
            "GET https://shop.example/rooms",
            "Get rooms. Listed at https://shop.example/rooms",
            "Get started.",
        ] {
            assert_eq!(of(text), "", "{text}");
        }
    }
}
