//! Removes the markup of HTML and Markdown from a text.
//!
//! Only what `CommonMark` or HTML defines as markup is removed, because identifiers and formats of keys have the same characters. The end of
//! a tag, a link or an emphasis is searched in a limited part of the text.

/// Maximum number of bytes in which the end of a tag or link is searched, so that the work is linear in the text.
const MARKUP_BYTES_MAX: usize = 512;

/// Number of tags and links without an end after which the search stops.
const LOOKAHEAD_FAILURES_MAX: usize = 64;

fn nearby(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MARKUP_BYTES_MAX)).unwrap_or(text)
}

/// Whether a byte may be markup, or begins a line that may.
const fn is_markup(byte: u8) -> bool {
    matches!(byte, b'<' | b'[' | b']' | b'&' | b'#' | b'>' | b'`' | b'*' | b'_' | b'\n')
}

/// Removes HTML tags, Markdown punctuation and link targets; keeps link texts.
pub(super) fn without_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut at_line_start = true;
    let mut failures_left = LOOKAHEAD_FAILURES_MAX;
    let mut emphasis = Emphasis::default();
    while !rest.is_empty() {
        let plain = rest.bytes().position(is_markup).unwrap_or(rest.len());
        let (run, marked) = rest.split_at_checked(plain).unwrap_or((rest, ""));
        out.push_str(run);
        at_line_start &= run.bytes().all(|byte| byte == b' ');
        rest = marked;
        let Some(letter) = rest.chars().next() else { break };
        let after = rest.get(letter.len_utf8()..).unwrap_or_default();
        let kept = out.len();
        rest = match letter {
            '<' | '[' | ']' if failures_left == 0 => {
                out.push(letter);
                after
            }
            '<' => skip_tag(after, &mut out),
            '&' => skip_entity(after, &mut out),
            '#' if at_line_start && is_heading(after) => after,
            '>' if at_line_start => after,
            '`' => code_span(after, &mut out),
            '*' | '_' => emphasis.skip(rest, letter, &mut out),
            ']' if after.starts_with('(') => skip_target(after, &mut out),
            '[' if nearby(after).contains("](") => after,
            _ => {
                out.push(letter);
                after
            }
        };
        // The character was kept, so its end was not found.
        if matches!(letter, '<' | '[' | ']') && out.get(kept..).is_some_and(|new| new.starts_with(letter)) {
            failures_left = failures_left.saturating_sub(1);
        }
        at_line_start = letter == '\n' || (at_line_start && matches!(letter, '#' | '>' | ' '));
    }
    out
}

/// `after` begins after a backquote. Keeps the content of a code span unchanged; removes other backquotes.
fn code_span<'t>(after: &'t str, out: &mut String) -> &'t str {
    match nearby(after).split_once('`') {
        Some((code, _)) if !code.is_empty() && !code.contains('\n') => {
            out.push_str(code);
            after.get(code.len() + 1..).unwrap_or_default()
        }
        _ => after,
    }
}

/// `after` begins after a `<`. Skips a tag, and the content of scripts and styles; keeps the address of an autolink, a lone `<`, and words
/// in brackets that are no tag, such as `<slug>` and `Map<string, Room>`.
fn skip_tag<'t>(after: &'t str, out: &mut String) -> &'t str {
    let inner = nearby(after).find('>').and_then(|end| after.get(..end));
    let Some(tag) = inner.filter(|tag| is_tag(tag) || is_autolink(tag)) else {
        out.push('<');
        return after;
    };
    let rest = after.get(tag.len() + 1..).unwrap_or_default();
    if is_autolink(tag) {
        out.push_str(tag);
        return rest;
    }
    out.push(' ');
    for (open, close) in [("script", "</script"), ("style", "</style")] {
        if tag.get(..open.len()).is_some_and(|name| name.eq_ignore_ascii_case(open)) {
            // Without an end tag, it is a quotation in a text and not a script.
            return rest.find(close).and_then(|at| rest.get(at..)).unwrap_or(rest);
        }
    }
    rest
}

/// Whether the text between `<` and `>` is an address (`CommonMark`, "Autolinks").
fn is_autolink(text: &str) -> bool {
    (text.starts_with("https://") || text.starts_with("http://")) && !text.contains(char::is_whitespace)
}

/// Whether the text between `<` and `>` is a tag: of an element of HTML, or of another name with attributes, a slash or an exclamation mark.
fn is_tag(text: &str) -> bool {
    if text.starts_with(['/', '!']) {
        return true;
    }
    let name = text.split([' ', '\t', '\n', '/']).next().unwrap_or_default();
    let is_element = || HTML_ELEMENTS.split(' ').any(|element| name.eq_ignore_ascii_case(element));
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let has_attributes = || text.len() > name.len() && (text.contains('=') || text.ends_with('/'));
    name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && is_name(name)
        && (is_element() || has_attributes())
}

/// The elements of HTML (WHATWG, section "Elements"), including obsolete ones.
const HTML_ELEMENTS: &str = "a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink \
    blockquote body br button canvas caption center cite code col colgroup data datalist dd del details \
    dfn dialog dir div dl dt em embed fieldset figcaption figure font footer form frame frameset h1 h2 \
    h3 h4 h5 h6 head header hgroup hr html i iframe image img input ins isindex kbd keygen label legend \
    li link listing main map mark marquee math menu menuitem meta meter nav nobr noembed noframes \
    noscript object ol optgroup option output p param picture plaintext pre progress q rp rt ruby s samp \
    script search section select slot small source span strike strong style sub summary sup svg table \
    tbody td template textarea tfoot th thead time title tr track tt u ul var video wbr xmp";

/// `after` begins after an `&`. Decodes the entities that are common in prose, and keeps others.
fn skip_entity<'t>(after: &'t str, out: &mut String) -> &'t str {
    for (entity, letter) in [
        ("amp;", '&'),
        ("lt;", '<'),
        ("gt;", '>'),
        ("quot;", '"'),
        ("#39;", '\''),
        ("apos;", '\''),
        ("nbsp;", ' '),
    ] {
        if let Some(rest) = after.strip_prefix(entity) {
            out.push(letter);
            return rest;
        }
    }
    out.push('&');
    after
}

/// Whether the text after a `#` at the start of a line continues a heading: a space follows the last `#` (`CommonMark`, "ATX headings").
fn is_heading(after: &str) -> bool {
    let rest = after.trim_start_matches('#');
    rest.is_empty() || rest.starts_with(char::is_whitespace)
}

/// Characters before a word that may be emphasised.
const OPENING_MARKS: [char; 13] =
    ['(', '[', '{', '"', '\'', '\u{201c}', '\u{2018}', '\u{2014}', '\u{2013}', '-', ':', '|', '>'];

/// The delimiters of emphasis in Markdown. They are markup only in pairs around words: `_quiet_`, `**loud**`. Every other underscore or
/// star is a part of the text: `agent_`, `**kwargs`, `5* hotel`.
struct Emphasis {
    /// Number of bytes from the start of each closing delimiter to the end of the text.
    closing: Vec<usize>,
    failures_left: usize,
}

impl Default for Emphasis {
    fn default() -> Self {
        Self { closing: Vec::new(), failures_left: LOOKAHEAD_FAILURES_MAX }
    }
}

impl Emphasis {
    /// `rest` begins with a mark. Skips a delimiter and keeps other marks.
    fn skip<'t>(&mut self, rest: &'t str, mark: char, out: &mut String) -> &'t str {
        let after = rest.trim_start_matches(mark);
        let length = rest.len() - after.len();
        self.closing.retain(|left| *left <= rest.len());
        if self.closing.contains(&rest.len()) {
            return after;
        }
        let is_wide = length > 1 && mark == '*';
        let may_open = out.chars().next_back().is_none_or(|before| {
            before.is_whitespace()
                || OPENING_MARKS.contains(&before)
                || (is_wide && !matches!(before, '/' | '\\'))
        });
        let begins_word = after.chars().next().is_some_and(|next| {
            !next.is_whitespace() && (length > 1 || !matches!(next, '.' | ',' | ';' | ':' | ')' | ']' | '}'))
        });
        if may_open && begins_word && self.failures_left > 0 {
            if let Some(at) = closing_delimiter(after, mark, length) {
                self.closing.push(after.len() - at);
                return after;
            }
            self.failures_left -= 1;
        }
        out.extend(std::iter::repeat_n(mark, length));
        after
    }
}

/// The position of the delimiter that closes the emphasis at the start of a text: as long as the opening one, in the same paragraph, and at
/// the end of a word.
fn closing_delimiter(text: &str, mark: char, length: usize) -> Option<usize> {
    let paragraph = nearby(text).split("\n\n").next()?;
    let mut at = 0;
    while let Some(found) = paragraph.get(at..)?.find(mark) {
        let start = at + found;
        let after = text.get(start..)?.trim_start_matches(mark);
        at = text.len() - after.len();
        let is_after_word =
            paragraph.get(..start)?.chars().next_back().is_some_and(|before| !before.is_whitespace());
        let is_inside = after.chars().next().is_some_and(char::is_alphanumeric);
        if at - start == length && is_after_word && (!is_inside || (length > 1 && mark == '*')) {
            return Some(start);
        }
    }
    None
}

/// Skips the target of a Markdown link; `after` begins after its `]`.
fn skip_target<'t>(after: &'t str, out: &mut String) -> &'t str {
    let Some(end) = nearby(after).find(')') else {
        out.push(']');
        return after;
    };
    after.get(end + 1..).unwrap_or_default()
}
