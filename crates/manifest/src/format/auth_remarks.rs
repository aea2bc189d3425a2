//! Remarks about the credentials of a service: where and how they are obtained, their form, their scopes, the page about them, the secrets
//! in the environment variables of a client, "No login or subscription".
//!
//! Completes the credentials that other sentences state. Only secrets of the environment and the statement that nobody has to log in add
//! credentials.

use crate::draft::{self, Draft};
use crate::format::clauses::clauses;
use crate::format::{lenient, mcp};
use crate::model::{AppliesTo, Auth, AuthScheme, Capability, Tristate};
use crate::object::Object;
use crate::text;

/// Maximum number of secrets of one document, and of variables that are searched for them.
const SECRETS_MAX: usize = 20;
const VARIABLES_MAX: usize = 200;
/// Maximum number of words of one line that are searched.
const WORDS_MAX: usize = 100;
/// Maximum number of scopes of one text.
const SCOPES_MAX: usize = 20;

/// Collects the remarks of a text, line by line.
#[derive(Debug, Default)]
pub(super) struct AuthRemarks {
    /// Whether the line is below a heading about environment variables.
    is_of_environment: bool,
    found: Auth,
    secrets: Vec<Auth>,
    /// Whether the heading above, or the line above the list, is about a part of the service.
    is_below_part: bool,
    is_in_part: bool,
    /// The words that say that nobody has to log in.
    no_login: Option<String>,
    /// The address behind a label such as "Sign up", which is that of the only credential.
    sign_up: Option<String>,
}

impl AuthRemarks {
    /// Reads a line, which may be below a heading about credentials, or belong to the list item above it.
    pub(super) fn read_line(&mut self, line: &str, is_of_auth: bool, is_nested: bool) {
        if line.is_empty() || line.len() > draft::LINE_BYTES_MAX {
            return;
        }
        let is_title = line.starts_with("# ");
        if line.starts_with('#') || (line.starts_with('[') && line.ends_with(']')) {
            self.is_of_environment = names_environment(line);
            self.is_below_part = !is_title && !is_about_whole(line);
            self.is_in_part = self.is_below_part;
            return;
        }
        if line.ends_with(':') && names_environment(line) {
            self.is_of_environment = true;
        } else if self.is_of_environment && self.secrets.len() < SECRETS_MAX {
            self.secrets.extend(secret_in(line));
        }
        if is_of_auth {
            self.read_section(line);
        }
        if self.sign_up.is_none() {
            self.sign_up = sign_up(line).map(str::to_owned);
        }
        if line.contains("cope=") && line.contains("OAuth") {
            self.read_scopes(line);
        }
        if self.found.docs_url.is_none() && line.contains("/auth.md") {
            self.found.docs_url = words_of(line).find(|word| is_page_of_auth(word)).map(str::to_owned);
        }
        self.read_no_login(line, is_nested);
    }

    /// Reads a list item that says that nobody has to log in. Below a heading or a label about a part of the service, the item is about
    /// that part. Other lines may be about the calls of their section.
    fn read_no_login(&mut self, line: &str, is_nested: bool) {
        if !line.starts_with(['-', '*', '+']) || line.starts_with("**") {
            let is_sentence = line.ends_with(['.', '!']);
            self.is_in_part = self.is_below_part || !(is_sentence || is_about_whole(line));
        } else if self.no_login.is_none() && !self.is_in_part && !is_nested {
            self.no_login = no_login(line).map(str::to_owned);
        }
    }

    /// A line below a heading about credentials: `Auto-registration: first request creates a key.`, `API key format: ak_<32 hex>`.
    fn read_section(&mut self, line: &str) {
        if self.found.registration_url.is_none() {
            self.found.registration_url = lenient::registration_in(line);
        }
        let Some((label, value)) = line.trim_start_matches(['-', '*', '+', ' ']).split_once(':') else {
            return;
        };
        let words = text::words(text::capped(label, draft::NAME_CHARS_MAX));
        let value = value.trim_matches(['*', ' ']);
        match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["auto" | "automatic", "registration"] => {
                self.found.registration = draft::name(Some(value));
            }
            [.., "key" | "token", "format"] => {
                let form = value.split(" in ").next().unwrap_or_default();
                let form = form.split([',', '(']).next().unwrap_or_default().trim();
                let form = text::capped(form, draft::NAME_CHARS_MAX).to_owned();
                self.found.format = Some(form).filter(|form| !form.is_empty());
            }
            _ => {}
        }
    }

    /// `OAuth scope=rooms`
    fn read_scopes(&mut self, line: &str) {
        for scope in words_of(line).filter_map(|word| word.strip_prefix("scope=")) {
            if self.found.scopes.len() < SCOPES_MAX && !scope.is_empty() {
                let scope = text::capped(scope.trim_end_matches('.'), draft::NAME_CHARS_MAX);
                self.found.scopes.insert(scope.to_owned(), String::new());
            }
        }
    }

    /// Completes the credentials of the text.
    pub(super) fn finish(self, draft: &mut Draft<'_>) {
        let Self { found, secrets, no_login, sign_up, .. } = self;
        let absolute = |address: &Option<String>| address.as_deref().and_then(|url| draft.origin_url(url));
        let (registration_url, docs_url) = (absolute(&found.registration_url), absolute(&found.docs_url));
        for auth in draft.manifest.auth.iter_mut().filter(|auth| is_credential(auth)) {
            auth.registration_url = auth.registration_url.take().or_else(|| registration_url.clone());
            auth.docs_url = auth.docs_url.take().or_else(|| docs_url.clone());
            auth.registration = auth.registration.take().or_else(|| found.registration.clone());
            auth.format = auth.format.take().or_else(|| found.format.clone());
            if auth.scheme == AuthScheme::OAuth2 {
                auth.scopes.extend(found.scopes.clone());
            }
        }
        obtain_only(sign_up.as_deref(), draft);
        keep_secrets(secrets, draft);
        if let Some(words) = no_login.filter(|_| draft.manifest.auth.is_empty()) {
            draft.keep(Auth { declared: Some(words), ..Auth::new(AuthScheme::None) });
        }
    }
}

/// Sets where the only credential of a document is obtained, if nothing else says so.
fn obtain_only(address: Option<&str>, draft: &mut Draft<'_>) {
    let Some(url) = address.and_then(|address| draft.origin_url(address)) else { return };
    let mut credentials = draft.manifest.auth.iter_mut().filter(|auth| is_credential(auth));
    if let Some(only) = credentials.next().filter(|only| is_issued(only))
        && credentials.next().is_none()
    {
        only.registration_url = Some(url);
    }
}

/// Maximum number of bytes of the label of such an address.
const LABEL_BYTES_MAX: usize = 40;

/// The address in a line such as `Sign up: https://…` or `- Get an API key: https://…`.
fn sign_up(line: &str) -> Option<&str> {
    let (label, value) = line.split_once(':').filter(|(label, _)| label.len() <= LABEL_BYTES_MAX)?;
    let address = value.trim_matches(['*', '`', '<', '>', ' ']);
    let is_address = address.starts_with("https://") && !address.contains(char::is_whitespace);
    (is_address && is_sign_up(label)).then_some(address)
}

/// Whether a label is about obtaining a credential: "Sign up", "Signup URL", "Get your API key".
fn is_sign_up(label: &str) -> bool {
    let words = text::words(label);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut said = words.as_slice();
    if let [before @ .., "url" | "page" | "link" | "at"] = said {
        said = before;
    }
    match said {
        ["signup" | "register"] | ["sign", "up"] => true,
        ["get" | "obtain" | "create", rest @ ..] => {
            let article = matches!(rest, ["a" | "an" | "your" | "the", ..]);
            let named = if article { rest.get(1..).unwrap_or_default() } else { rest };
            matches!(named, ["api", "key" | "keys" | "token"] | ["key" | "keys" | "token"])
        }
        _ => false,
    }
}

/// Members of a root with the address at which its credential is obtained.
const SIGN_UP_KEYS: &[&str] = &[
    "signup",
    "signup_url",
    "signupUrl",
    "sign_up_url",
    "signUpUrl",
    "register_url",
    "registerUrl",
    "get_api_key",
    "getApiKey",
    "api_key_url",
    "apiKeyUrl",
];

/// Whether a caller obtains this credential.
const fn is_credential(auth: &Auth) -> bool {
    !matches!(auth.scheme, AuthScheme::None | AuthScheme::Payment)
}

/// Keeps secrets of the environment. A credential without a name gets the name of its variable.
fn keep_secrets(secrets: Vec<Auth>, draft: &mut Draft<'_>) {
    for secret in secrets {
        let known = &mut draft.manifest.auth;
        if known.iter().any(|known| known.name == secret.name) {
            continue;
        }
        let is_same = |known: &&mut Auth| {
            known.scheme == secret.scheme
                && known.name.is_none()
                && known.location.is_none()
                && is_key(known.scheme)
        };
        match known.iter_mut().find(is_same) {
            Some(known) => {
                (known.location, known.name) = (secret.location, secret.name);
                known.registration_url = known.registration_url.take().or(secret.registration_url);
            }
            None => draft.keep(secret),
        }
    }
}

const fn is_key(scheme: AuthScheme) -> bool {
    matches!(scheme, AuthScheme::ApiKey)
}

/// Members that describe the environment variables of a client.
const ENVIRONMENT_KEYS: &[&str] = &["environment_variables", "environmentVariables"];

/// Reads the descriptions of environment variables, `{"SHOP_API_KEY": {"required": false, "description": "Key of the shop"}}`, and sets the
/// page about the credentials: a link to `auth.md`.
pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let variables = ENVIRONMENT_KEYS.iter().find_map(|key| root.object(key));
    let described = variables.iter().flat_map(Object::members).take(VARIABLES_MAX);
    let secrets = described.filter_map(|(name, variable)| {
        let secret = mcp::secret_of_environment(name)?;
        let registration_url = variable.text("description").and_then(lenient::registration_in);
        let applies_to = applies_to(variable.flag("required") == Some(true));
        Some(Auth { registration_url, applies_to, ..secret })
    });
    keep_secrets(secrets.take(SECRETS_MAX).collect(), draft);
    obtain_only(root.text_of(SIGN_UP_KEYS).filter(|address| address.starts_with("https://")), draft);
    let manifest = &mut draft.manifest;
    if manifest.auth.iter().any(is_issued) {
        let mut calls = manifest.capabilities.iter_mut().filter(|call| registers(call)).take(2);
        let only = calls.next().filter(|_| calls.next().is_none());
        let url = only.and_then(|call| {
            // The call that issues a credential cannot accept it.
            if call.auth.required == Tristate::No {
                call.auth.schemes.clear();
            }
            call.invocation.url.clone()
        });
        for auth in manifest.auth.iter_mut().filter(|auth| is_issued(auth)) {
            auth.registration_url.clone_from(&url);
        }
    }
    if manifest.auth.iter().any(|auth| is_credential(auth) && auth.docs_url.is_none()) {
        let page = manifest.links.iter().map(|link| &link.url).find(|url| is_page_of_auth(url)).cloned();
        for auth in manifest.auth.iter_mut().filter(|auth| is_credential(auth) && auth.docs_url.is_none()) {
            auth.docs_url.clone_from(&page);
        }
    }
}

/// Whether a service issues this credential, and no statement says where.
const fn is_issued(auth: &Auth) -> bool {
    matches!(auth.scheme, AuthScheme::ApiKey | AuthScheme::Bearer)
        && auth.registration_url.is_none()
        && auth.token_url.is_none()
        && auth.registration.is_none()
}

/// Whether a call registers an agent, by its name: `step_1_register`, `register_agent`.
fn registers(call: &Capability) -> bool {
    const BESIDE: &[&str] =
        &["step", "agent", "agents", "account", "user", "client", "consumer", "self", "new", "post", "api"];
    let may_be = |name: &str| ["regist", "Regist", "ignup"].iter().any(|part| name.contains(part));
    if call.invocation.method.as_deref() != Some("POST") || !may_be(&call.native_id) {
        return false;
    }
    let words = text::words(&call.native_id);
    let is_verb = |word: &str| matches!(word, "register" | "registration" | "signup");
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    words.iter().any(|word| is_verb(word))
        && words.iter().all(|word| is_verb(word) || is_number(word) || BESIDE.contains(&word.as_str()))
}

fn applies_to(is_required: bool) -> AppliesTo {
    if is_required { AppliesTo::All } else { AppliesTo::OptionalIds { ids: Vec::new() } }
}

/// Whether an address is that of a page about credentials for agents.
fn is_page_of_auth(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    path.ends_with("/auth.md")
}

/// Whether a heading announces environment variables.
fn names_environment(heading: &str) -> bool {
    let words = text::words(text::capped(heading, draft::NAME_CHARS_MAX));
    words.windows(2).any(
        |pair| matches!(pair, [first, second] if first == "environment" && second.starts_with("variable")),
    )
}

/// The secret of a line below a heading that announces environment variables: `SHOP_API_KEY - Required: key of the shop`.
fn secret_in(line: &str) -> Option<Auth> {
    let line = line.trim_start_matches(['-', '*', '+', ' ', '`']);
    let end =
        line.find(|letter: char| !(letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_'))?;
    let (name, rest) = line.split_at_checked(end)?;
    let described = rest.trim_start_matches(['`', '*', ' ']);
    let is_described = described.starts_with(['-', ':', '(', '\u{2013}', '\u{2014}']);
    if !name.contains('_') || !is_described {
        return None;
    }
    let words = text::words(text::capped(described, draft::NAME_CHARS_MAX));
    let is_denied = words
        .windows(2)
        .any(|pair| matches!(pair, [first, second] if first == "not" && second == "required"));
    let is_required = words.iter().any(|word| word == "required") && !is_denied;
    let registration_url = lenient::registration_in(described);
    let secret = mcp::secret_of_environment(name)?;
    Some(Auth { registration_url, applies_to: applies_to(is_required), ..secret })
}

/// Words for what nobody needs: "No login or subscription".
const LOGINS: &[&str] =
    &["login", "logins", "account", "accounts", "signup", "registration", "subscription", "subscriptions"];

/// Words of headings about the whole service or its access.
const WHOLE: &[&str] = &[
    "for",
    "ai",
    "agent",
    "agents",
    "access",
    "auth",
    "authentication",
    "authorization",
    "login",
    "accounts",
    "usage",
    "use",
    "rules",
    "policy",
    "about",
    "overview",
    "notes",
    "and",
    "how",
    "to",
];

/// Whether a heading or a label is about the whole service: "## For agents".
fn is_about_whole(heading: &str) -> bool {
    text::words(text::capped(heading, draft::NAME_CHARS_MAX))
        .iter()
        .all(|word| WHOLE.contains(&word.as_str()))
}

/// The clause of a list item that says that nobody has to log in, and nothing else. Only words such as "free" may precede it.
fn no_login(line: &str) -> Option<&str> {
    const BEFORE: &[&str] = &["free", "public", "open", "free access", "open access"];
    if !text::has_four(line, *b"ogin") && !text::has_four(line, *b"ccou") {
        return None;
    }
    let is_before = |clause: &&str| BEFORE.iter().any(|known| clause.eq_ignore_ascii_case(known));
    clauses(line).find(|clause| !is_before(clause)).filter(|clause| {
        let words = text::words(text::capped(clause, draft::NAME_CHARS_MAX));
        let Some((first, others)) = words.split_first() else { return false };
        let beside = |word: &str| matches!(word, "or" | "and" | "no" | "required" | "needed" | "is");
        first == "no"
            && others.iter().any(|word| LOGINS.contains(&word.as_str()))
            && others.iter().all(|word| LOGINS.contains(&word.as_str()) || beside(word))
    })
}

fn words_of(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace()
        .take(WORDS_MAX)
        .map(|word| word.trim_matches(['`', '(', ')', ',', ';', '<', '>', '*']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_secrets_below_a_heading_about_the_environment() {
        assert!(
            names_environment("[Environment Variables]") && names_environment("## Environment variables")
        );
        assert!(!names_environment("## Variables of the environment"));
        let of = |line| secret_in(line).map(|auth| (auth.scheme, auth.applies_to == AppliesTo::All));
        assert_eq!(of("SHOP_PRIVATE_KEY - Required: signs requests"), Some((AuthScheme::Other, true)));
        assert_eq!(of("- `SHOP_API_KEY`: optional key"), Some((AuthScheme::ApiKey, false)));
        for line in ["SHOP_URL - Required: where", "SHOP_API_KEY=abc", "KEY - Required", "Shop keys"] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn the_statement_that_nobody_has_to_log_in_is_about_the_part_it_stands_in() {
        let found = |lines: &[(&str, bool)]| {
            let mut remarks = AuthRemarks::default();
            for (line, is_nested) in lines {
                remarks.read_line(line, false, *is_nested);
            }
            remarks.no_login.is_some()
        };
        let says = ("- No login required", false);
        assert!(found(&[says]));
        assert!(found(&[("# Shop", false), ("Sells prints.", false), says]));
        assert!(found(&[("## Tools", false), ("## For agents", false), says]));
        assert!(found(&[("## Access", false), says]));
        assert!(!found(&[("## Gallery", false), says]));
        assert!(!found(&[("## Gallery", false), ("Shows prints.", false), says]));
        assert!(!found(&[("# Shop", false), ("Gallery:", false), says]));
        assert!(!found(&[("- Gallery", false), ("- No login required", true)]));
        assert!(!found(&[("- Gallery: no login required", false)]));
    }

    #[test]
    fn finds_the_address_at_which_a_credential_is_obtained() {
        for line in [
            "Signup URL: https://shop.example/signup",
            "- Get API key: https://shop.example/signup",
            "**Sign up:** https://shop.example/signup",
            "Get your key at: https://shop.example/signup",
            "Register: <https://shop.example/signup>",
        ] {
            assert_eq!(sign_up(line), Some("https://shop.example/signup"), "{line}");
        }
        for line in ["Home: https://shop.example", "Register: POST https://shop.example/a", "Sign up today"] {
            assert_eq!(sign_up(line), None, "{line}");
        }
    }

    #[test]
    fn finds_the_statement_that_nobody_has_to_log_in() {
        for line in [
            "- No login or subscription; pay per call.",
            "- No account required.",
            "- Free (no signup, no login)",
        ] {
            assert!(no_login(line).is_some(), "{line}");
        }
        for line in [
            "- No login for guests.",
            "- Login required",
            "- No account data is kept.",
            "- Gallery (no login)",
        ] {
            assert_eq!(no_login(line), None, "{line}");
        }
    }
}
