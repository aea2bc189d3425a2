//! Credentials that a text states for all its calls, or for those of one section: "All requests need `Authorization: Bearer …`",
//! a header in the code below `## Authentication`, "No API key is needed."
//!
//! A statement in a section with calls applies to these calls. A statement in a section about authentication applies to the calls of the
//! enclosing section. Any other statement applies to all calls. Sentences with a condition, about a part of the calls, or about the
//! credentials of another service are ignored.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::auth_remarks::AuthRemarks;
use super::auth_sentences::{self, LinePosition};
use crate::draft::{self, Draft};
use crate::format::lenient::{self, Optional};
use crate::format::{listed_calls, needed_credentials};
use crate::model::{
    AppliesTo, Auth, AuthScheme, Capability, CapabilityAuth, Cost, Manifest, Payment, Tristate,
};
use crate::text;

/// Maximum number of sections of one text that are distinguished, and maximum number of credentials that are kept.
const SECTIONS_MAX: usize = 1_000;
const CREDENTIALS_MAX: usize = 8;

/// The lines below one heading.
#[derive(Debug)]
struct Section {
    level: usize,
    /// Number of calls above the heading.
    first: usize,
    is_of_auth: bool,
    /// The credentials that the heading states for its calls: "Authenticated (API key)".
    needed: CapabilityAuth,
    /// Whether a line says that the calls need no credentials.
    is_said_open: bool,
}

/// Collects the credentials of a text, line by line.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a text")]
#[derive(Debug, Default)]
pub(crate) struct StatedAuth {
    sections: Vec<Section>,
    /// The section in which each of the known credentials was stated; none above the first heading.
    places: Vec<Option<usize>>,
    /// Positions of credentials in lines or sections that state conditionally what calls need.
    conditional: HashSet<usize>,
    /// Credentials that their line or section calls optional, by their position.
    optional: HashMap<usize, Optional>,
    /// Whether the line above, or its section, calls credentials optional.
    is_optional: Option<Optional>,
    /// Whether the line above, or its section, has a condition.
    has_condition: bool,
    is_code: bool,
    /// Whether a sentence says that every call must be paid.
    is_paid: bool,
    /// Whether any line shows the header of a credential.
    shows_credential: bool,
    remarks: AuthRemarks,
}

impl StatedAuth {
    /// Reads a line with its indentation, before any other parser does.
    pub(crate) fn read_line(&mut self, line: &str, draft: &mut Draft<'_>) {
        let (is_nested, line) = (line.starts_with([' ', '\t']), line.trim());
        self.place(draft);
        self.shows_credential |= text::has_four(line, *b"Bear") && line.contains("uthorization: Bearer ");
        if line.starts_with("```") {
            self.is_code = !self.is_code;
            return;
        }
        let is_of_auth = self.sections.last().is_some_and(|section| section.is_of_auth);
        if let Some(offered) = auth_sentences::scheme_of_row(line).filter(|_| is_of_auth && !self.is_code) {
            return self.read_offered(offered, draft);
        }
        if !self.is_code {
            self.remarks.read_line(line, is_of_auth, is_nested);
        }
        if line.starts_with('#') && !self.is_code {
            return self.read_heading(line, draft);
        }
        self.has_condition &= is_of_auth;
        self.is_optional = self.is_optional.filter(|_| is_of_auth);
        let is_intro = self.sections.iter().all(|section| section.level < 2);
        if line.len() > draft::LINE_BYTES_MAX || (self.is_code && !is_of_auth) {
            return;
        }
        if let Some(section) =
            self.sections.last_mut().filter(|section| section.level > 1 && !section.is_of_auth)
            && section.needed.required == Tristate::Unknown
        {
            section.needed = auth_sentences::labelled(line);
        }
        self.read_openness(line, draft.manifest.capabilities.len());
        let place = match (is_of_auth, is_intro) {
            (true, _) if self.is_code => LinePosition::CodeOfAuth,
            (true, _) => LinePosition::Auth,
            (_, true) => LinePosition::Intro,
            _ => LinePosition::Other,
        };
        self.has_condition |= auth_sentences::has_condition(line);
        self.read_optional(line, is_of_auth, draft);
        for stated in auth_sentences::stated_in(line, place) {
            self.keep(stated, draft);
        }
        // An item above the calls of a text is about all of them.
        let is_item = !is_nested && line.starts_with(['-', '*', '+']);
        if is_intro && is_item && draft.manifest.capabilities.is_empty() {
            self.read_item_of_intro(line, draft);
        }
    }

    /// Reads a row with one of several schemes. If `none` is among them, the others are optional, but it opens nothing.
    fn read_offered(&mut self, offered: Auth, draft: &mut Draft<'_>) {
        if offered.scheme == AuthScheme::None {
            self.is_optional = Some(Optional::Part);
            let here = self.sections.len().checked_sub(1);
            let of_section = self.places.iter().enumerate().filter(|(_, place)| **place == here);
            self.optional.extend(of_section.map(|(position, _)| (position, Optional::Part)));
        } else {
            self.keep(offered, draft);
        }
    }

    /// Keeps that an item says that no credentials are needed, with its text if it says who handles authentication.
    fn read_item_of_intro(&mut self, line: &str, draft: &mut Draft<'_>) {
        if !auth_sentences::says_calls_are_open(line) {
            return;
        }
        let item = line.trim_start_matches(['-', '*', '+', ' ']);
        let described = Some(item).filter(|item| item.contains(auth_sentences::HANDLED));
        let description = draft::description(described);
        self.keep(Auth { description, ..Auth::new(AuthScheme::None) }, draft);
    }

    /// Reads a line that says that the calls of its section need no credentials. A list item is only read above the calls, because below a
    /// call it applies to that call. If a later line of the section names a credential, the requirement becomes unknown. Above the calls, a
    /// line may also state what they need.
    fn read_openness(&mut self, line: &str, calls: usize) {
        let Some(section) =
            self.sections.last_mut().filter(|section| section.level > 1 && !section.is_of_auth)
        else {
            return;
        };
        let is_open = section.needed.required == Tristate::No && section.is_said_open;
        let may_say = section.needed == CapabilityAuth::default() && !section.is_said_open;
        if !is_open && !may_say || line.is_empty() {
            return;
        }
        let is_item = line.starts_with(['-', '*', '+']) && !line.starts_with("**");
        let says = || (!is_item || calls == section.first) && auth_sentences::says_calls_are_open(line);
        if may_say && says() {
            section.needed.required = Tristate::No;
            section.is_said_open = true;
        } else if may_say && calls == section.first {
            section.needed = auth_sentences::required_in(line);
        } else if is_open
            && auth_sentences::names_credential(line)
            && !auth_sentences::says_calls_are_open(line)
        {
            section.needed = CapabilityAuth::default();
        }
    }

    /// Reads a line that says that credentials are optional: a labelled line, or a line below a heading about credentials.
    fn read_optional(&mut self, line: &str, is_of_auth: bool, draft: &mut Draft<'_>) {
        let is_stated = is_of_auth || auth_sentences::label_of_auth(line).is_some();
        let found = lenient::optional_in(line).filter(|_| is_stated);
        let Some(optional) = found.or_else(|| not_required(line).filter(|_| is_of_auth)) else { return };
        self.is_optional = Some(optional);
        let here = self.sections.len().checked_sub(1);
        if is_of_auth {
            let of_section = self.places.iter().enumerate().filter(|(_, place)| **place == here);
            self.optional.extend(of_section.map(|(position, _)| (position, optional)));
            for stated in
                lenient::auth_in_words([line]).into_iter().filter(|auth| auth.scheme != AuthScheme::None)
            {
                self.keep(stated, draft);
            }
        }
    }

    /// Adds a credential to those of the same section.
    fn keep(&mut self, stated: Auth, draft: &mut Draft<'_>) {
        self.is_paid |= stated.scheme == AuthScheme::Payment;
        let here = self.sections.len().checked_sub(1);
        let known = &mut draft.manifest.auth;
        if let Some(same) = known.iter_mut().find(|known| known.scheme == stated.scheme) {
            if same.name.is_none() && stated.name.is_some() {
                (same.name, same.location) = (stated.name, stated.location);
            }
            same.authorize_url = same.authorize_url.take().or(stated.authorize_url);
            same.token_url = same.token_url.take().or(stated.token_url);
            return;
        }
        let is_alone = known.is_empty() || self.places.iter().all(|place| *place == here);
        if is_alone && known.len() < CREDENTIALS_MAX {
            draft.keep(stated);
            self.place(draft);
        }
    }

    /// Records the section of the credentials that the line above stated.
    fn place(&mut self, draft: &Draft<'_>) {
        let here = self.sections.len().checked_sub(1);
        let (known, count) = (self.places.len(), draft.manifest.auth.len());
        if self.has_condition && count > known {
            self.conditional.extend(known..count);
        }
        if let Some(optional) = self.is_optional {
            self.optional.extend((known..count).map(|position| (position, optional)));
        }
        self.places.resize(count.max(known), here);
    }

    fn read_heading(&mut self, line: &str, draft: &Draft<'_>) {
        let heading = line.trim_start_matches('#');
        self.has_condition = false;
        self.is_optional = None;
        if self.sections.len() < SECTIONS_MAX {
            let heading_text = text::capped(heading, draft::NAME_CHARS_MAX);
            self.sections.push(Section {
                level: line.len() - heading.len(),
                first: draft.manifest.capabilities.len(),
                is_of_auth: is_about_credentials(heading_text),
                needed: needed_below(heading_text),
                is_said_open: false,
            });
        }
    }

    /// The calls of a section and its subsections, as a range of the capabilities; `None` if there are no calls.
    fn calls_of(&self, place: Option<usize>, count: usize) -> Option<Range<usize>> {
        let place = place?;
        let section = self.sections.get(place)?;
        let around = |section: &Section| section.level.saturating_sub(1);
        let level = if section.is_of_auth { around(section) } else { section.level };
        let is_outer = |section: &&Section| section.level <= level;
        let start = self.sections.get(..=place)?.iter().rfind(is_outer)?;
        let end = self.sections.get(place + 1..)?.iter().find(is_outer).map_or(count, |next| next.first);
        (level > 1 && start.first < end).then_some(start.first..end)
    }

    /// Assigns the stated credentials to the calls of the text. The first `count` capabilities are calls in the sections in which they were
    /// read; later ones belong to no section.
    pub(crate) fn finish(mut self, count: usize, draft: &mut Draft<'_>) {
        self.place(draft);
        draft.manifest.capabilities.iter_mut().for_each(needed_credentials::set_described);
        let manifest = &mut draft.manifest;
        // "No API key" is ignored in a text whose requests have a token.
        let is_none = |auth: &Auth| auth.scheme == AuthScheme::None;
        if self.shows_credential && !manifest.auth.is_empty() && manifest.auth.iter().all(is_none) {
            manifest.auth.clear();
            manifest.auth.push(Auth {
                applies_to: AppliesTo::OptionalIds { ids: Vec::new() },
                ..auth_sentences::in_header(AuthScheme::Bearer, "Authorization")
            });
        }
        // The statements of an inner section take precedence.
        for (at, section) in self.sections.iter().enumerate().rev() {
            if section.needed.required != Tristate::Unknown {
                let calls = self.calls_of(Some(at), count).unwrap_or_default();
                let calls = manifest.capabilities.get_mut(calls).unwrap_or_default();
                for call in calls.iter_mut().filter(|call| is_unstated(call)) {
                    if is_open(call) {
                        call.auth.required = Tristate::No;
                    } else {
                        call.auth.clone_from(&section.needed);
                    }
                }
            }
        }
        let calls = &manifest.capabilities;
        for (auth, place) in manifest.auth.iter_mut().zip(&self.places) {
            let of_section = self
                .calls_of(*place, count)
                .filter(|calls| auth.applies_to == AppliesTo::All && calls.len() < count);
            if let Some(calls) = of_section.and_then(|range| calls.get(range)) {
                let ids = calls.iter().map(|call| call.native_id.clone()).collect();
                auth.applies_to = AppliesTo::Ids { ids };
            }
        }
        self.apply_optional(count, manifest);
        apply(manifest, &self.conditional, self.is_paid);
        keep_key_arguments(draft);
        self.remarks.finish(draft);
    }

    /// Restricts optional credentials. If all credentials are optional for all calls, calls without a statement need none.
    fn apply_optional(&self, count: usize, manifest: &mut Manifest) {
        for (position, auth) in manifest.auth.iter_mut().enumerate() {
            if self.optional.contains_key(&position) && auth.scheme != AuthScheme::None {
                auth.applies_to = AppliesTo::OptionalIds { ids: Vec::new() };
            }
        }
        let is_free = |(position, auth): (usize, &Auth)| {
            auth.scheme == AuthScheme::None || self.optional.get(&position) == Some(&Optional::All)
        };
        if self.optional.is_empty()
            || !manifest.auth.iter().enumerate().all(is_free)
            || manifest.payments.iter().any(|payment| payment.plan.is_none())
        {
            return;
        }
        let offered: Vec<AuthScheme> = manifest
            .auth
            .iter()
            .map(|auth| auth.scheme)
            .filter(|scheme| *scheme != AuthScheme::None)
            .collect();
        for position in self.optional.keys() {
            let place = self.places.get(*position).copied().flatten();
            let calls = self.calls_of(place, count).unwrap_or(0..count);
            for call in manifest
                .capabilities
                .get_mut(calls)
                .unwrap_or_default()
                .iter_mut()
                .filter(|call| is_unstated(call))
            {
                call.auth.required = Tristate::No;
                call.auth.schemes.clone_from(&offered);
            }
        }
    }
}

/// For which calls a line says that the credentials next to it are not required: "Required: No", "Required: No (public calls)".
fn not_required(line: &str) -> Option<Optional> {
    let (label, value) = line.trim_start_matches(['-', '*', '+', ' ']).split_once(':')?;
    if !label.trim_matches(['*', ' ']).eq_ignore_ascii_case("required") {
        return None;
    }
    let value = value.trim_matches(['*', '`', ' ', '.']);
    let (word, remark) = value.split_once([' ', ',', ';']).unwrap_or((value, ""));
    let is_no = ["no", "false", "optional", "never"].iter().any(|known| word.eq_ignore_ascii_case(known));
    is_no.then_some(if remark.is_empty() { Optional::All } else { Optional::Part })
}

/// Whether a call states that it needs no credentials.
fn is_open(call: &Capability) -> bool {
    call.description.as_deref().is_some_and(lenient::says_call_is_open)
}

/// Assigns credentials to each call that states none.
fn apply(manifest: &mut Manifest, conditional: &HashSet<usize>, is_paid: bool) {
    let is_credential = |auth: &Auth| match auth.scheme {
        AuthScheme::Other | AuthScheme::Unknown => false,
        // A label that names a payment scheme does not state which calls must be paid.
        AuthScheme::Payment => is_paid,
        _ => true,
    };
    let sure = manifest
        .auth
        .iter()
        .enumerate()
        .filter(|(at, auth)| is_credential(auth) && !conditional.contains(at));
    let credentials: Vec<(AuthScheme, Option<HashSet<&str>>)> = sure
        .take(CREDENTIALS_MAX)
        .filter_map(|(_, auth)| match &auth.applies_to {
            AppliesTo::All => Some((auth.scheme, None)),
            AppliesTo::Ids { ids } => Some((auth.scheme, Some(ids.iter().map(String::as_str).collect()))),
            AppliesTo::OptionalIds { .. } => None,
        })
        .collect();
    let registered =
        manifest.auth.iter().filter_map(|auth| auth.registration_url.as_deref()).take(CREDENTIALS_MAX);
    let registered: Vec<&str> = registered.collect();
    let is_paid_text =
        manifest.auth.iter().any(|auth| auth.scheme == AuthScheme::Payment) || !manifest.payments.is_empty();
    for call in manifest.capabilities.iter_mut().filter(|call| is_unstated(call)) {
        let applies = credentials
            .iter()
            .filter(|(_, ids)| ids.as_ref().is_none_or(|ids| ids.contains(call.native_id.as_str())));
        let mut schemes: Vec<AuthScheme> = applies.map(|(scheme, _)| *scheme).collect();
        schemes.sort_unstable();
        schemes.dedup();
        // A call with a price must be paid, so it is not open.
        let is_free = call.price.as_ref().and_then(Payment::cost) == Some(Cost::Free);
        let is_paid = is_paid_text && !is_free;
        let is_known_open =
            is_open(call) || registered.iter().any(|address| listed_calls::is_at(call, address));
        match schemes.as_slice() {
            [] if is_open(call) => call.auth.required = Tristate::No,
            [] => {}
            _ if is_known_open => call.auth.required = Tristate::No,
            [AuthScheme::None] if !is_paid => call.auth.required = Tristate::No,
            schemes if !is_free && !schemes.contains(&AuthScheme::None) && !obtains_credentials(call) => {
                call.auth.required = Tristate::Yes;
                call.auth.schemes = schemes.to_vec();
            }
            _ => {}
        }
    }
    limit_payment(manifest);
}

/// Keeps the key that tools accept as an argument, if the text states no other: `find_rooms(query, api_key)`.
fn keep_key_arguments(draft: &mut Draft<'_>) {
    const NAMES: &[&str] = &["api_key", "apiKey", "apikey"];
    let key_of = |call: &Capability| {
        let properties = call.parameters.as_ref()?.get("properties")?.as_object()?;
        NAMES.iter().find(|name| properties.contains_key(**name)).copied()
    };
    let is_argument = |call: &&Capability| call.invocation.method.is_none();
    let mut calls = draft.manifest.capabilities.iter().filter(is_argument);
    let Some(name) = calls.clone().find_map(key_of) else { return };
    if draft.manifest.auth.iter().any(|auth| auth.scheme != AuthScheme::None) {
        return;
    }
    let ids =
        calls.by_ref().filter(|call| key_of(call).is_some()).map(|call| call.native_id.clone()).collect();
    draft.keep(Auth {
        location: Some("argument".to_owned()),
        name: Some(name.to_owned()),
        applies_to: AppliesTo::OptionalIds { ids },
        ..Auth::new(AuthScheme::ApiKey)
    });
}

/// Restricts a payment that a text states for all calls to the calls that need it, if others are free.
fn limit_payment(manifest: &mut Manifest) {
    let needs = |call: &&Capability| call.auth.schemes.contains(&AuthScheme::Payment);
    let ids: Vec<String> =
        manifest.capabilities.iter().filter(needs).map(|call| call.native_id.clone()).collect();
    let is_payment =
        |auth: &&mut Auth| auth.scheme == AuthScheme::Payment && auth.applies_to == AppliesTo::All;
    if ids.is_empty() || ids.len() == manifest.capabilities.len() {
        return;
    }
    if let Some(payment) = manifest.auth.iter_mut().find(is_payment) {
        payment.applies_to = AppliesTo::Ids { ids };
    }
}

fn is_unstated(call: &Capability) -> bool {
    call.auth == CapabilityAuth::default()
}

/// Whether a call issues credentials, according to its name or the last word of its path. Such a call cannot need them.
fn obtains_credentials(call: &Capability) -> bool {
    const WORDS: &[&str] = &[
        "register",
        "registration",
        "signup",
        "login",
        "token",
        "challenge",
        "authenticate",
        "nonce",
        "account",
        "key",
        "keys",
    ];
    let endpoint = call.invocation.endpoint().map(listed_calls::path_of).unwrap_or_default();
    let last = endpoint.rsplit('/').next().unwrap_or_default();
    let names = [last, call.invocation.native.as_deref().unwrap_or_default()];
    let is_read = call.invocation.method.as_deref() == Some("GET");
    !is_read && names.iter().any(|name| text::words(name).iter().any(|word| WORDS.contains(&word.as_str())))
}

/// Whether a heading is about the credentials of the whole service.
fn is_about_credentials(heading: &str) -> bool {
    const PARTS: &[&str] = &["mcp", "a2a", "webhook", "webhooks", "admin", "partner", "partners", "without"];
    let words = text::words(heading);
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    let is_key = words.windows(2).any(|pair| pair[0] == "api" && matches!(pair[1].as_str(), "key" | "keys"));
    (is_key || has(&["authentication", "authorization", "auth"]))
        && needed_below(heading).required == Tristate::Unknown
        && !has(PARTS)
}

/// The credentials that a heading states for the calls below it: `### Public (no auth)`, `### Authenticated (Bearer token or API key)`.
fn needed_below(heading: &str) -> CapabilityAuth {
    let words = text::words(heading);
    let says = |pairs: &[[&str; 2]]| words.windows(2).any(|two| pairs.iter().any(|pair| two == pair));
    let is_public =
        || matches!(words.as_slice(), [only] if only == "public") || says(&[["public", "endpoints"]]);
    if lenient::says_open(heading) || says(&[["no", "auth"]]) || is_public() {
        return CapabilityAuth { required: Tristate::No, ..CapabilityAuth::default() };
    }
    let needs = words.first().is_some_and(|word| word == "authenticated")
        || says(&[
            ["requires", "auth"],
            ["requires", "authentication"],
            ["auth", "required"],
            ["authentication", "required"],
        ]);
    if !needs {
        return CapabilityAuth::default();
    }
    let folded = heading.to_ascii_lowercase();
    let named =
        [("bearer", AuthScheme::Bearer), ("api key", AuthScheme::ApiKey), ("oauth", AuthScheme::OAuth2)];
    let schemes =
        named.into_iter().filter(|(name, _)| folded.contains(name)).map(|(_, scheme)| scheme).collect();
    CapabilityAuth { required: Tristate::Yes, schemes, ..CapabilityAuth::default() }
}
