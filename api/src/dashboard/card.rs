//! One result as a card: description, site, call, safety, freshness, and which values are inferred.

use indexer::{Group, GroupMember, Grouping, Hit};
use manifest::IdentityMark;
use manifest::model::{CapabilityKind, Protocol, SemanticType, TypeSource};

use super::time::Moment;
use super::type_words::type_words;
use super::{icons, labels};
use crate::answers::caution::{Elsewhere, Money};
use crate::answers::claim::OwnerMark;
use crate::declared_by::declared_by;
use crate::page_context::PageContext;
use crate::search_counts::SiteOwners;

/// Maximum length of a description on a card, in characters; the capability's page shows all of it.
const DOES_CHARS_MAX: usize = 280;

/// Maximum length of the heading of a card, in characters: three lines on a phone.
const HEADING_CHARS_MAX: usize = 120;

/// Maximum length of the name of a grouped result, in characters.
const MEMBER_CHARS_MAX: usize = 80;

/// Two words are forms of the same word if they share a stem of at least `STEM_CHARS_MIN` characters and their endings have at most this
/// many.
const ENDING_CHARS_MAX: usize = 2;
const STEM_CHARS_MIN: usize = 3;

/// A small label with an optional tooltip, which screen readers also read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) class: &'static str,
    /// An icon as SVG, or nothing.
    pub(crate) icon: &'static str,
    pub(crate) text: String,
    /// Marks a value as inferred and states how.
    pub(crate) inferred: Option<String>,
}

impl Tag {
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { class: "plain", icon: "", text: text.into(), inferred: None }
    }
}

/// Whether any of the labels marks a value as inferred.
pub(crate) fn has_inferred(tags: &[Tag]) -> bool {
    tags.iter().any(|tag| tag.inferred.is_some())
}

/// A fact about a site next to its name: an icon and words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) class: &'static str,
    pub(crate) icon: &'static str,
    pub(crate) text: &'static str,
}

/// The badge of a site whose owner proved control of the domain, shown next to site names in lists. The page of the site states how and
/// when.
pub(crate) const OWNER_MARK: Mark = Mark { class: "found", icon: icons::KEY, text: "verified owner" };

/// How a capability is called, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// `POST`, `MCP tool`.
    pub(crate) verb: String,
    pub(crate) address: String,
}

#[derive(Debug)]
pub(crate) struct Card {
    pub(crate) id: String,
    /// The title, or else the name, with highlighted words of the request, escaped.
    pub(crate) name_html: String,
    /// Publisher's text with highlighted words, escaped (see `marked`).
    pub(crate) snippet_html: Option<String>,
    pub(crate) does: String,
    /// Whether the description says no more than the name.
    pub(crate) repeats_name: bool,
    pub(crate) site: String,
    pub(crate) site_icon: String,
    /// Facts about the site: its owner and its agent endpoints.
    pub(crate) site_marks: Vec<Mark>,
    pub(crate) format: &'static str,
    pub(crate) format_icon: &'static str,
    pub(crate) call: Option<Call>,
    pub(crate) tags: Vec<Tag>,
    pub(crate) updated: Moment,
    /// Whether the manifest has not changed since it was first seen.
    pub(crate) is_new: bool,
    pub(crate) status: &'static str,
    /// A sentence with the number of results that are grouped under this one.
    pub(crate) others: Option<String>,
    /// The best of the grouped results: the id, and a text with name and site.
    pub(crate) members: Vec<(String, String)>,
}

/// The card of a result. Only `words`, the words of the request, are highlighted.
pub(crate) fn card(hit: &Hit, words: &str, context: &PageContext) -> Card {
    let snippet = Some(marked(&hit.snippet, words)).filter(|snippet| !snippet.is_empty());
    Card {
        id: hit.id.to_string(),
        name_html: marked_name(&shortened(hit.heading(), HEADING_CHARS_MAX), words),
        snippet_html: snippet,
        does: shortened(hit.description.as_deref().unwrap_or_default(), DOES_CHARS_MAX),
        repeats_name: hit.description.as_deref().is_some_and(|does| repeats(does, hit.heading())),
        site: hit.site.to_string(),
        site_icon: icons::of_site(hit.site.as_str(), 40),
        site_marks: site_marks(hit, &context.owners),
        format: hit.format.label(),
        format_icon: icons::format(hit.format),
        call: call(hit),
        tags: tags(hit),
        updated: Moment::new(hit.updated_at, context.now),
        is_new: hit.first_seen_at == hit.updated_at,
        status: hit.status.label(),
        others: hit.group.as_ref().map(others),
        members: hit.group.iter().flat_map(|group| &group.members).map(member).collect(),
    }
}

/// Whether a description says no more than the name.
pub(crate) fn repeats(description: &str, name: &str) -> bool {
    let plain = |text: &str| text.trim().trim_end_matches('.').to_lowercase();
    plain(description) == plain(name)
}

/// The badge of a site with an agent endpoint; `None` for protocols of single calls, such as HTTP.
pub(crate) fn endpoint_mark(protocol: Protocol) -> Option<Mark> {
    let text = labels::agent_endpoint(protocol)?;
    Some(Mark { class: "plain", icon: icons::protocol(protocol), text })
}

fn site_marks(hit: &Hit, owners: &SiteOwners) -> Vec<Mark> {
    let owner = owners.of(&hit.site).filter(|_| hit.is_published_by_site()).map(|_| OWNER_MARK);
    let endpoints = hit.site_endpoints.iter().filter_map(|protocol| endpoint_mark(*protocol));
    owner.into_iter().chain(endpoints).collect()
}

fn others(group: &Group) -> String {
    let (one, many) = match group.by {
        Grouping::Site => ("more result of this site", "more results of this site"),
        Grouping::Copies | Grouping::None => ("near copy", "near copies"),
    };
    format!("and {}", labels::counted(group.others, one, many))
}

fn member(member: &GroupMember) -> (String, String) {
    let shown = format!("{} · {}", member.name, member.site);
    (member.id.to_string(), shortened(&shown, MEMBER_CHARS_MAX))
}

fn call(hit: &Hit) -> Option<Call> {
    let address = hit.endpoint.clone()?;
    let protocol = hit.protocol.map_or("", labels::protocol);
    let verb = hit.method.clone().unwrap_or_else(|| protocol.to_owned());
    Some(Call { verb, address })
}

/// The other site to which a result refers.
fn elsewhere(hit: &Hit) -> Option<Elsewhere> {
    Elsewhere::of(hit.format, &hit.native_id, hit.endpoint.as_deref(), &hit.site)
}

/// Why a capability cannot be called by its declaration alone.
fn not_callable(hit: &Hit) -> &'static str {
    match hit.protocol {
        _ if hit.endpoint.is_none() => "no address to call",
        Some(Protocol::Mcp) if hit.kind != CapabilityKind::Tool => "tools not listed",
        Some(Protocol::Mcp) => "address not public",
        _ if hit.method.is_none() => "method not stated",
        _ => "address not public",
    }
}

pub(crate) fn elsewhere_tag(elsewhere: &Elsewhere) -> Tag {
    match elsewhere {
        Elsewhere::Calls(site) => Tag { class: "denied", ..Tag::plain(format!("calls {site}")) },
        Elsewhere::Lists(site) => Tag::plain(format!("entry for {site}")),
    }
}

pub(crate) fn money_tag(money: Money) -> Tag {
    match money {
        Money::Moves => Tag { class: "denied", ..Tag::plain("may move money") },
        Money::MayCost => Tag { class: "stale", ..Tag::plain("may cost money") },
    }
}

pub(crate) fn orders_tag() -> Tag {
    Tag { class: "stale", ..Tag::plain("its text gives orders to AI models") }
}

pub(crate) fn tags(hit: &Hit) -> Vec<Tag> {
    let elsewhere = elsewhere(hit);
    // an entry of a catalog has no effect itself
    let is_entry = matches!(elsewhere, Some(Elsewhere::Lists(_)));
    let mut tags: Vec<Tag> = (!is_entry).then(|| safety_tag(hit)).into_iter().collect();
    tags.extend(elsewhere.as_ref().map(elsewhere_tag));
    tags.extend(Money::of(&hit.name, &hit.semantic_types, hit.safety).map(money_tag));
    tags.extend(labels::confirmation(hit.confirmation).map(Tag::plain));
    if hit.handoff {
        tags.push(Tag::plain("completed by a person"));
    }
    if !is_entry {
        tags.push(Tag::plain(labels::auth_needed(&hit.auth, hit.auth_required)));
    }
    if !hit.invocable && !is_entry {
        tags.push(Tag::plain(not_callable(hit)));
    }
    if hit.deprecated {
        tags.push(Tag { class: "stale", icon: "", text: "deprecated".to_owned(), inferred: None });
    }
    if hit.degraded {
        tags.push(Tag {
            class: "stale",
            icon: "",
            text: "impaired at the moment".to_owned(),
            inferred: None,
        });
    }
    tags.extend(hit.addresses_reader.then(orders_tag));
    tags.extend(labels::source(hit.source).map(Tag::plain));
    tags.extend(hit.identity_marks.iter().filter_map(|mark| identity_tag(*mark)));
    tags.extend(declared_tag(hit));
    tags.extend(hit.semantic_types.iter().map(type_tag));
    tags
}

/// A conspicuous badge: a verified publisher, or a reason for doubt.
pub(crate) fn identity_tag(mark: IdentityMark) -> Option<Tag> {
    let class = if mark == IdentityMark::Verified { "found" } else { "stale" };
    let text = labels::identity(mark)?.to_owned();
    Some(Tag { class, icon: "", text, inferred: None })
}

/// Who declares a capability, if not the site itself.
fn declared_tag(hit: &Hit) -> Option<Tag> {
    let is_of_users = hit.is_of_site() && !hit.is_published_by_site();
    is_of_users.then(|| Tag::plain(declared_by(hit.publisher, &hit.host, &hit.site)))
}

/// The badge of a site whose owner proved control of the domain: how, and since when.
pub(crate) fn owner_tag(owner: &OwnerMark) -> Tag {
    let text = format!("owner verified by {} since {}", labels::proof(owner.by), owner.since.date_naive());
    Tag { class: "found", icon: icons::KEY, text, inferred: None }
}

fn safety_tag(hit: &Hit) -> Tag {
    let inferred = hit.safety_source == TypeSource::Inferred && hit.safety != manifest::SafetyClass::Unknown;
    Tag {
        class: hit.safety.as_str(),
        icon: icons::safety(hit.safety),
        text: labels::safety(hit.safety).to_owned(),
        inferred: inferred.then(|| "inferred, not declared by the publisher".to_owned()),
    }
}

pub(crate) fn type_tag(semantic_type: &SemanticType) -> Tag {
    let inferred = (semantic_type.source == TypeSource::Inferred).then(|| {
        let rule = semantic_type.rule.as_deref().map(|rule| format!(" by rule {rule}")).unwrap_or_default();
        format!("inferred{rule}, confidence {:.0} %", semantic_type.confidence * 100.0)
    });
    Tag { class: "type", icon: "", text: type_words(&semantic_type.name), inferred }
}

/// A snippet of the index as HTML with no markup except `<mark>`. The index has already escaped it; all other characters that could open or
/// close an element or an attribute are escaped here again. Marks are removed from words that are not in the request, such as synonyms.
fn marked(snippet: &str, words: &str) -> String {
    let wanted: Vec<String> = words.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
    // a part of an identifier such as `search_flights` is no word
    let joins = |letter: char| letter == '_';
    let mut html = String::with_capacity(snippet.len());
    for (index, part) in snippet.split("<mark>").enumerate() {
        if index == 0 {
            html.push_str(&inert(part));
            continue;
        }
        let (inside, after) = part.split_once("</mark>").unwrap_or((part, ""));
        let is_part = html.ends_with(joins) || after.starts_with(joins);
        if !is_part && wanted.iter().any(|word| is_form_of(&inside.to_lowercase(), word)) {
            html.extend(["<mark>", &inert(inside), "</mark>"]);
        } else {
            html.push_str(&inert(inside));
        }
        html.push_str(&inert(after));
    }
    html
}

/// A name, escaped, with the words of the request marked. Short words, such as "a", begin too many words of names.
fn marked_name(name: &str, words: &str) -> String {
    let long: Vec<&str> = words.split(|c: char| !c.is_alphanumeric()).filter(|word| is_long(word)).collect();
    marked(&with_marks(name), &long.join(" "))
}

fn is_long(word: &str) -> bool {
    word.chars().count() >= STEM_CHARS_MIN || !word.is_ascii()
}

/// A text, escaped, with each of its longer words marked.
fn with_marks(text: &str) -> String {
    let mut marked = String::with_capacity(text.len() * 2);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let is_word = letter.is_alphanumeric();
        let end = rest.find(|c: char| c.is_alphanumeric() != is_word).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        if is_word && is_long(part) {
            marked.extend(["<mark>", part, "</mark>"]);
        } else {
            marked.push_str(&inert(&part.replace('&', "&amp;")));
        }
        rest = after;
    }
    marked
}

/// Whether two words differ only in their endings, as `flights` and `flight` do. In scripts without spaces, such as Chinese, one
/// contains the other.
fn is_form_of(found: &str, wanted: &str) -> bool {
    let shorter = found.chars().count().min(wanted.chars().count());
    let common = found.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
    let has_same_stem =
        shorter > 0 && common >= shorter.saturating_sub(ENDING_CHARS_MAX).max(shorter.min(STEM_CHARS_MIN));
    let is_part = !wanted.is_ascii() && (found.contains(wanted) || wanted.contains(found));
    has_same_stem || (is_part && shorter > 0)
}

fn inert(text: &str) -> String {
    text.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

/// The beginning of a text, truncated between words.
pub(crate) fn shortened(text: &str, chars_max: usize) -> String {
    let Some((cut, _)) = text.char_indices().nth(chars_max) else { return text.to_owned() };
    let start = text.get(..cut).unwrap_or_default();
    let whole_words = start.rsplit_once(char::is_whitespace).map_or(start, |(words, _)| words);
    let whole_words = whole_words.trim_end_matches([',', ';', ':', '.', ' ', '(']);
    format!("{whole_words}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippet_keeps_only_its_marks() {
        assert_eq!(marked("<mark>Book</mark> a &lt;b&gt;", "book flight"), "<mark>Book</mark> a &lt;b&gt;");
        assert_eq!(
            marked("<script>x</script> <mark onclick=\"x\">a</mark> <mark>b", "b"),
            "&lt;script&gt;x&lt;/script&gt; &lt;mark onclick=&quot;x&quot;&gt;a&lt;/mark&gt; <mark>b</mark>"
        );
    }

    #[test]
    fn highlights_only_words_of_the_request() {
        let snippet = "<mark>Reserves</mark> a seat: <mark>booking</mark> of <mark>flights</mark>, <mark>calendar</mark>";
        assert_eq!(
            marked(snippet, "book flight"),
            "Reserves a seat: <mark>booking</mark> of <mark>flights</mark>, calendar"
        );
        assert_eq!(marked("<mark>Flüge</mark> <mark>Flug</mark>", "flug"), "Flüge <mark>Flug</mark>");
        assert_eq!(marked("<mark>预订</mark>", "预订航班"), "<mark>预订</mark>");
        assert_eq!(marked("<mark>a</mark>", ""), "a");
    }

    #[test]
    fn a_description_that_repeats_the_name_is_recognised() {
        assert!(
            repeats("Cancel an order.", "Cancel an order") && repeats("cancel an order", "Cancel an order")
        );
        assert!(!repeats("Cancels an order", "Cancel an order") && !repeats("", "Cancel an order"));
    }

    #[test]
    fn names_are_highlighted_too() {
        let name = marked_name;
        assert_eq!(name("Add and book", "add a book"), "<mark>Add</mark> and <mark>book</mark>");
        assert_eq!(name("Reserve a table", "reserve a table"), "<mark>Reserve</mark> a <mark>table</mark>");
        assert_eq!(name("Search flights", "a flight"), "Search <mark>flights</mark>");
        assert_eq!(name("search_flights <b>&\"", "flights"), "search_flights &lt;b&gt;&amp;&quot;");
        assert_eq!(name("预订航班", "预订"), "<mark>预订航班</mark>");
        assert_eq!(name("", "x"), "");
        assert_eq!(
            marked("Uses search_<mark>flights</mark> for <mark>flights</mark>", "flight"),
            "Uses search_flights for <mark>flights</mark>"
        );
    }

    #[test]
    fn long_texts_are_truncated_at_word_boundaries() {
        assert_eq!(shortened("one two three", 9), "one two…");
        assert_eq!(shortened("one, two; three", 9), "one…");
        assert_eq!(shortened("one", 9), "one");
        assert_eq!(shortened(&"é".repeat(20), 5), "ééééé…");
    }
}
