//! Labelled lines of prose: `Contact: mailto:…`, `- Email: …`, `Last updated: …`.
//!
//! ai.txt, llms.txt and agents.txt without a grammar state contacts, credentials, limits and terms in such lines.

use serde_json::Value;

use crate::auth;
use crate::check::is_email;
use crate::draft::{self, Draft};
use crate::format::credential_lines::{limit_to, read_credential_headers, read_scheme};
use crate::format::topic::{Topic, read_attribution, read_contract, read_limit, read_requirement};
use crate::format::{auth_sentences, header, language, lenient, payment_words, terms};
use crate::model::{Auth, AuthScheme, Payment, PolicyChoice};
use crate::text;

/// Maximum length of a label in bytes.
const LABEL_BYTES_MAX: usize = 40;
/// Maximum number of characters of a heading, and of a telephone number, that are read.
const LABEL_CHARS_MAX: usize = 40;
/// Maximum number of access rules that are kept from one file.
const RULES_MAX: usize = 64;
/// Maximum number of payment schemes that are kept from one file.
const PAYMENTS_MAX: usize = 20;

/// Maximum number of lines that are read. Later lines of long files are about other subjects.
const LINES_MAX: usize = 200;

/// Maximum number of lines at the start of a file that may name the site.
const HEAD_LINES_MAX: usize = 20;

/// Reads the labelled lines of one text.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about the current line")]
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// Whether the following rules apply to one agent, not to all.
    is_for_one: bool,
    /// Whether the line is inside a block of code.
    is_code: bool,
    /// Whether the line is below a heading that announces a description of the site.
    is_about: bool,
    /// What the heading above the line announces.
    topic: Topic,
    /// Whether the line is after the first heading, list or paragraph.
    is_past_start: bool,
    /// The lines of the description so far.
    paragraph: String,
    /// The e-mail addresses of the text. If there is only one, it is the contact of the site.
    emails: Vec<String>,
    /// The first telephone number in a line with an e-mail address.
    phone: Option<String>,
    /// Headers of credentials, and the part of the service that each is for: ("x-gate-sig", "gate").
    subjects: Vec<(String, String)>,
    /// Whether a line denies the training of commercial models, and another line permits training.
    denies_commercial: bool,
    permits_training: bool,
    lines_read: usize,
}

impl Labels {
    /// Keeps a prohibition that applies to all agents, from a line of a file about the use of a site. The sentence may begin on the line
    /// above.
    pub(crate) fn read_prohibition(&self, above: &str, line: &str, draft: &mut Draft<'_>) {
        if self.is_code
            || self.is_for_one
            || line.starts_with('|')
            || !draft.manifest.policies.training.is_unset()
        {
            return;
        }
        let bare = |line: &'_ str| line.trim_start_matches(['#', '-', '*', '>', ' ']).to_owned();
        let goes_on = !above.is_empty() && !above.ends_with(['.', ':', '!', '-', '=']);
        let whole = || [bare(above), bare(line)].join(" ");
        if terms::denies_training_in(line) || (goes_on && terms::denies_training_in(&whole())) {
            draft.manifest.policies.training = PolicyChoice::Deny;
        }
    }

    /// Reads one line.
    pub(crate) fn read_line(&mut self, line: &str, draft: &mut Draft<'_>) {
        self.lines_read += 1;
        if line.starts_with("```") {
            self.is_code = !self.is_code;
        }
        if self.is_code || self.lines_read > LINES_MAX {
            return;
        }
        self.read_words(line, draft);
        if line.starts_with('#') {
            self.topic = Topic::of(line);
        }
        self.read_openness(line, draft);
        self.subjects.extend(read_credential_headers(line, draft));
        let payments = &mut draft.manifest.payments;
        if !payments.iter().any(payment_words::has_asset) {
            let stated = payment_words::in_sentence(line);
            if payments.is_empty() || stated.iter().any(payment_words::has_asset) {
                payments.retain(|payment| !payment_words::is_only_scheme(payment));
                draft.keep_all(stated);
            }
        }
        read_requirement(line, draft);
        let Some((label, value)) = labelled(line) else { return };
        match self.topic {
            Topic::Credentials if read_scheme(&label, &value, draft) => return,
            Topic::Attribution if read_attribution(&label, &value, draft) => return,
            Topic::Limits => read_limit(&label, &value, draft),
            Topic::Contracts => read_contract(&label, &value, draft),
            _ => {}
        }
        self.read_training(&label, &value);
        let manifest = &mut draft.manifest;
        match label.as_str() {
            "user agent" | "agent" | "engine" | "bot" => self.is_for_one = value != "*",
            "allow" | "disallow" if !self.is_for_one => {
                let rules = if label == "allow" {
                    &mut manifest.policies.access_allow
                } else {
                    &mut manifest.policies.access_disallow
                };
                if let Some(rule) = draft::name(Some(&value)).filter(|_| rules.len() < RULES_MAX)
                    && !rules.contains(&rule)
                {
                    rules.push(rule);
                }
            }
            label if is_of_site_contact(label) => header::sort_contact_words(&mut manifest.contact, &value),
            "name" | "title" | "site name" if !self.is_for_one => self.read_name(line, &value, draft),
            "content signal" | "content usage" if !self.is_for_one => terms::read_signals(&value, draft),
            "last updated" | "updated" | "last modified" | "last update" if has_year(&value) => {
                manifest.updated_at = manifest.updated_at.take().or_else(|| draft::name(Some(&value)));
            }
            "description" | "site description" | "summary" if !value.contains("://") => {
                manifest.description =
                    manifest.description.take().or_else(|| draft::description(Some(&value)));
            }
            "operator" | "owner" | "author" | "publisher" | "provider" | "organization" | "company" => {
                let name = draft::name(Some(&value)).filter(|name| !name.contains("://"));
                manifest.provider.name = manifest.provider.name.take().or(name);
            }
            "language" | "languages" => {
                manifest.language = manifest.language.take().or_else(|| language::language_in(&value));
            }
            "version" => {
                manifest.document_version =
                    manifest.document_version.take().or_else(|| draft::name(Some(&value)));
            }
            _ => read_terms(&label, &value, draft),
        }
    }
}

impl Labels {
    /// Records what a line says about the training of some models: `Scraping: allowed for non-commercial AI training`.
    fn read_training(&mut self, label: &str, value: &str) {
        if label != "commercial training" && !text::has_four(value, *b"rain") {
            return;
        }
        let choice = terms::choice_of(&Value::from(value));
        if label == "commercial training" {
            self.denies_commercial |= choice == PolicyChoice::Deny;
        } else {
            let permits = matches!(choice, PolicyChoice::Allow | PolicyChoice::Conditional);
            self.permits_training |= permits && value.to_ascii_lowercase().contains("training");
        }
    }

    /// Reads a sentence below a heading about authentication that says that no credentials are needed.
    fn read_openness(&self, line: &str, draft: &mut Draft<'_>) {
        // A row of a table of schemes states one of several alternatives.
        let is_row = || auth_sentences::scheme_of_row(line).is_some();
        let is_sentence = self.topic == Topic::Credentials && !line.starts_with('#') && !is_row();
        if is_sentence && draft.manifest.auth.is_empty() && lenient::says_open(line) {
            draft.keep(Auth::new(AuthScheme::None));
        }
    }

    /// Reads a line such as `Name: Acme` at the start of a file. It is the name of the site if there is no title, or if the title names the
    /// file: `# llms.txt of Acme`.
    fn read_name(&self, line: &str, value: &str, draft: &mut Draft<'_>) {
        let is_plain = line.starts_with(char::is_alphabetic) && !value.contains("://");
        let titles_file = |name: &String| {
            let folded = name.to_ascii_lowercase();
            ["llms.txt", "agents.txt", "ai.txt", "agent.txt", "discovery file"]
                .iter()
                .any(|file| folded.contains(file))
        };
        let is_open = draft.manifest.name.as_ref().is_none_or(titles_file);
        if is_plain && is_open && self.lines_read <= HEAD_LINES_MAX && self.emails.is_empty() {
            draft.manifest.name = draft::name(Some(value)).or_else(|| draft.manifest.name.take());
        }
    }

    /// Reads the paragraph below a heading such as "Purpose", and e-mail addresses among the words of a line.
    fn read_words(&mut self, line: &str, draft: &mut Draft<'_>) {
        let is_heading = line.starts_with('#') || (line.starts_with('[') && line.ends_with(']'));
        if is_heading {
            let words = text::words(text::capped(line, LABEL_CHARS_MAX));
            let announces = |word: &String| ABOUT_WORDS.contains(&word.as_str());
            let is_title = line.starts_with("# ") && !self.is_past_start;
            let is_open = draft.manifest.description.is_none();
            self.is_about = is_open && (is_title || words.iter().any(announces));
        }
        let is_plain = !is_heading
            && !line.is_empty()
            && !line.starts_with(['-', '*', '|', '>', '{', '}', '"', ']', '/']);
        self.is_past_start |= is_plain;
        if self.is_about && is_plain && !line.ends_with(':') && labelled(line).is_none() {
            self.paragraph.push_str(text::capped(line, draft::DESCRIPTION_CHARS_MAX));
            self.paragraph.push(' ');
            self.is_about = self.paragraph.len() < draft::LINE_BYTES_MAX;
        } else if !is_plain && !self.paragraph.is_empty() {
            self.end_paragraph(draft);
        }
        for word in line.split_whitespace().filter(|word| word.contains('@') && !word.contains('`')) {
            let word = word.trim_matches(['<', '>', '(', ')', ',', ';', '"', '.', '|', ':']);
            let word = word.strip_prefix("mailto:").unwrap_or(word);
            let is_example = word.contains("@example.") || word.starts_with("git@") || word.contains("://");
            if is_email(word) && !is_example && self.phone.is_none() {
                self.phone = phone_in(line);
            }
            if is_email(word)
                && !is_example
                && self.emails.len() < EMAILS_MAX
                && !self.emails.iter().any(|e| e == word)
            {
                self.emails.push(text::capped(word, draft::NAME_CHARS_MAX).to_owned());
            }
        }
    }

    fn end_paragraph(&mut self, draft: &mut Draft<'_>) {
        let paragraph = std::mem::take(&mut self.paragraph);
        let manifest = &mut draft.manifest;
        manifest.description = manifest.description.take().or_else(|| draft::description(Some(&paragraph)));
        self.is_about = false;
    }

    /// Keeps the only e-mail address of the text as the contact, and limits credentials to the calls that they are for.
    pub(crate) fn finish(mut self, draft: &mut Draft<'_>) {
        self.end_paragraph(draft);
        let training = &mut draft.manifest.policies.training;
        if self.denies_commercial && self.permits_training && *training == PolicyChoice::Deny {
            *training = PolicyChoice::Conditional;
        }
        self.subjects.iter().for_each(|(header, subject)| limit_to(header, subject, draft));
        if let [only] = self.emails.as_slice()
            && draft.manifest.contact.email.is_none()
        {
            draft.manifest.contact.email = Some(only.clone());
        }
        let contact = &mut draft.manifest.contact;
        if let Some(email) = &contact.email
            && self.emails.contains(email)
        {
            contact.other = contact.other.take().or(self.phone);
        }
    }
}

/// Whether a label names the general contact, also with a word before it: "preferred public contact". Other contacts are for one purpose.
fn is_of_site_contact(label: &str) -> bool {
    let words = label.strip_suffix(" contact");
    CONTACT_LABELS.contains(&label)
        || words.is_some_and(|words| words.split(' ').all(|word| GENERAL_WORDS.contains(&word)))
}

/// Labels of the general contact.
const CONTACT_LABELS: &[&str] =
    &["contact", "email", "e mail", "support", "contact email", "site contact", "phone"];
/// Words before "contact" that state no purpose.
const GENERAL_WORDS: &[&str] =
    &["preferred", "public", "primary", "main", "general", "human", "project", "official", "our"];

/// The telephone number in a line, in international form: `+7 987 217-02-02`.
fn phone_in(line: &str) -> Option<String> {
    let (_, after) = line.split_once('+')?;
    let is_part = |letter: char| letter.is_ascii_digit() || matches!(letter, ' ' | '-' | '(' | ')');
    let end = after.find(|letter| !is_part(letter)).unwrap_or(after.len());
    let number = text::capped(after.get(..end)?, LABEL_CHARS_MAX).trim_end_matches([' ', '-', '(']);
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    let is_number = number.starts_with(|letter: char| letter.is_ascii_digit()) && (8..=15).contains(&digits);
    is_number.then(|| ["+", number].concat())
}

/// Keeps the first limit of a text: `Anonymous: 100 requests/minute`.
fn keep_limit(value: &str, draft: &mut Draft<'_>) {
    let limit = lenient::rate_limit(&Value::String(value.to_owned()));
    let limit = limit.filter(|limit| limit.requests.is_some());
    draft.manifest.rate_limit = draft.manifest.rate_limit.take().or(limit);
}

/// Words of headings above the description of a site.
const ABOUT_WORDS: &[&str] =
    &["purpose", "about", "overview", "description", "introduction", "summary", "identity"];
/// Maximum number of e-mail addresses of one text that are compared.
const EMAILS_MAX: usize = 8;

/// Whether a text contains a date, which has at least a year.
fn has_year(text: &str) -> bool {
    text.as_bytes().windows(4).any(|four| four.iter().all(u8::is_ascii_digit))
}

/// The feature that contains how a site wants to be cited.
const CITATION: &str = "citation";

/// Reads a labelled line about credentials, payment, limits or terms of use.
fn read_terms(label: &str, value: &str, draft: &mut Draft<'_>) {
    match label {
        "auth" | "authentication" | "authorization" | "api key" | "api key format" => {
            let stated = Value::String(value.to_owned());
            // The label names the scheme if the value does not.
            let in_value = lenient::auth_in_words([value]);
            let by_words = if in_value.is_empty() { lenient::auth_in_words([label]) } else { in_value };
            let found = if by_words.is_empty() { lenient::auth(&stated) } else { by_words };
            let known = found.into_iter().filter(|auth| auth.scheme != AuthScheme::Other);
            if draft.manifest.auth.is_empty() {
                draft.keep_all(known);
                if draft.manifest.auth.iter().any(|auth| auth.scheme == AuthScheme::Payment) {
                    read_payments(value, draft);
                }
            }
        }
        "o auth" | "oauth" | "o auth2" | "oauth2" | "o auth 2" if value.contains("/.well-known/oauth-") => {
            let is_known = |auth: &Auth| auth.scheme == AuthScheme::OAuth2;
            if !draft.manifest.auth.iter().any(is_known) {
                draft.keep(Auth::new(AuthScheme::OAuth2));
            }
        }
        "payment" | "payments" | "payment protocol" | "payment method" | "payment methods" => {
            read_payments(value, draft);
        }
        "rate limit" | "rate limits" | "rate limiting" | "free tier" => {
            keep_limit(value, draft);
        }
        "license" | "licence" | "content license" => {
            let license = draft::name(Some(value)).filter(|text| !text.contains("://"));
            let other = &mut draft.manifest.features.other;
            other.extend(license.map(|license| ("license".to_owned(), Value::String(license))));
        }
        "training"
        | "ai training"
        | "ai train"
        | "allow training"
        | "model training"
        | "commercial training" => {
            if label == "commercial training" {
                keep_use(label, value, draft);
            }
            let choice = terms::choice_of(&Value::String(value.to_owned()));
            if draft.manifest.policies.training.is_unset() {
                draft.manifest.policies.training = choice;
            }
        }
        "citation" | "cite as" | "preferred citation" => {
            let (stated, other) = (draft::name(Some(value)), &mut draft.manifest.features.other);
            if let Some(stated) = stated.filter(|_| !other.contains_key(CITATION)) {
                other.insert(CITATION.to_owned(), Value::String(stated.clone()));
                draft.manifest.policies.attribution.get_or_insert(stated);
            }
        }
        "crawling" | "scraping" | "indexing" | "caching" | "redistribution" | "commercial use" => {
            keep_use(label, value, draft);
        }
        "attribution" => {
            // A line about how to cite implies permission, unless another line states it.
            let citation = draft.manifest.features.other.get(CITATION).and_then(Value::as_str);
            let stated = draft.manifest.policies.attribution.as_deref();
            if stated.is_none() || stated == citation {
                draft.manifest.policies.attribution = draft::name(Some(value));
            }
        }
        "terms" | "terms of service" | "terms of use" | "privacy" | "privacy policy" => {
            keep_page(label, value, draft);
        }
        _ => {}
    }
}

/// Keeps the address of the terms or of the privacy policy.
fn keep_page(label: &str, value: &str, draft: &mut Draft<'_>) {
    let address = value.split_whitespace().find(|word| word.starts_with("https://") || word.starts_with('/'));
    let url = address.and_then(|address| draft.origin_url(address));
    let policies = &mut draft.manifest.policies;
    let page = if label.starts_with("terms") { &mut policies.terms_url } else { &mut policies.privacy_url };
    *page = page.take().or(url);
}

/// Keeps what a line permits or prohibits by the name of the use: `Crawling: allowed`.
fn keep_use(label: &str, value: &str, draft: &mut Draft<'_>) {
    let is_choice = !terms::choice_of(&Value::from(value)).is_unset();
    let stated = draft::name(Some(value)).filter(|_| is_choice);
    let kept = stated.map(|stated| (label.replace(' ', "_"), Value::String(stated)));
    draft.manifest.features.other.extend(kept);
}

/// The schemes of payment among the words of a value.
fn read_payments(value: &str, draft: &mut Draft<'_>) {
    for word in value.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        let payment = Payment { scheme: Some(word.to_owned()), ..Payment::default() };
        let known = &draft.manifest.payments;
        let is_same = |known: &Payment| known.scheme == payment.scheme;
        let is_new = known.len() < PAYMENTS_MAX && !known.iter().any(is_same);
        let is_scheme = auth::scheme(word) == AuthScheme::Payment && !word.eq_ignore_ascii_case("payment");
        if is_new && is_scheme {
            draft.keep(payment);
        }
    }
}

/// The label of a line in lower-case words, and its value without emphasis.
fn labelled(line: &str) -> Option<(String, String)> {
    let line = line.trim_start_matches(['-', '*', '+', '#', '>', ' ', '\t']);
    let (label, value) = line.split_once(':')?;
    if label.len() > LABEL_BYTES_MAX || label.contains(['"', '{', '|', '<']) {
        return None;
    }
    let label = text::words(label.trim_matches(['*', '_', '`', ' '])).join(" ");
    let value = text::capped(value, draft::DESCRIPTION_CHARS_MAX);
    let value = value.trim_matches(['*', '_', '`', ' ', '\t']);
    // `User-agent: *` means every agent.
    let value = if value.is_empty() && line.trim_end().ends_with(" *") { "*" } else { value };
    (!label.is_empty() && !value.is_empty()).then(|| (label, value.to_owned()))
}
