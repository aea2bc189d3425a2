//! Rules against paths: normalised alike on both sides, matched from the first octet, longest wins (RFC 9309 §2.2.2-3).
//!
//! Linear in pattern and path; there is no backtracking that a hostile file could make expensive.

/// A rule's path pattern: `*` stands for anything, a final `$` for the end, everything else for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern(String);

impl Pattern {
    /// Normalises the value of an Allow or Disallow line. A `$` before the end is a plain character.
    pub(super) fn parse(value: &[u8]) -> Self {
        let (inner, end) = value.strip_suffix(b"$").map_or((value, ""), |inner| (inner, "$"));
        Self(normalise(inner, b"*") + end)
    }

    /// The pattern with a slash before it, for values that forgot it.
    pub(super) fn rooted(self) -> Self {
        if self.0.starts_with(['/', '*']) { self } else { Self(format!("/{}", self.0)) }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Octets of the pattern; the more there are, the more specific it is.
    pub(super) fn octets(&self) -> usize {
        self.0.len()
    }

    /// Whether a normalised path matches. Each piece between two `*` is taken where it first occurs, which leaves the
    /// most room for those after it.
    pub(super) fn matches(&self, path: &NormalPath) -> bool {
        let (pattern, anchored) =
            self.0.strip_suffix('$').map_or((self.0.as_str(), false), |pattern| (pattern, true));
        let mut pieces = pattern.split('*');
        let Some(mut rest) = path.0.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
        let Some(last) = pieces.next_back() else { return !anchored || rest.is_empty() };
        for piece in pieces {
            match rest.split_once(piece) {
                Some((_, tail)) => rest = tail,
                None => return false,
            }
        }
        if anchored { rest.ends_with(last) } else { rest.contains(last) }
    }
}

/// A path and query in the form that patterns are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NormalPath(String);

impl NormalPath {
    /// Normalises the path and query of a request; a fragment is dropped. A literal `*` or `$` is encoded, since these
    /// mean something else in a pattern (§2.2.3 tells owners to write `%2A` and `%24`).
    pub(super) fn parse(path_and_query: &str) -> Self {
        let path = path_and_query.split('#').next().unwrap_or_default();
        let normal = normalise(path.as_bytes(), b"");
        Self(if normal.starts_with('/') { normal } else { format!("/{normal}") })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Decodes escaped unreserved characters, and escapes every octet that RFC 3986 does not permit as it is, with
/// upper-case digits. `*` and `$` are escaped too unless they are `kept`.
fn normalise(value: &[u8], kept: &[u8]) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match escaped(*first, tail) {
            Some((octet, after)) => {
                rest = after;
                push(&mut out, octet, is_unreserved(octet));
            }
            None => push(&mut out, *first, is_plain(*first) || kept.contains(first)),
        }
    }
    out
}

/// The octet that `%` and two hexadecimal digits stand for, and what follows them.
fn escaped(first: u8, tail: &[u8]) -> Option<(u8, &[u8])> {
    let (b'%', [high, low, after @ ..]) = (first, tail) else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let octet = u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?;
    Some((octet, after))
}

fn push(out: &mut String, octet: u8, plain: bool) {
    if plain {
        out.push(char::from(octet));
    } else {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        out.push('%');
        out.extend([octet >> 4, octet & 15].map(|half| char::from(DIGITS[usize::from(half)])));
    }
}

const fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

/// Unreserved and reserved characters of RFC 3986 §2.2-3 save `*` and `$`, and a stray `%`.
const fn is_plain(octet: u8) -> bool {
    is_unreserved(octet)
        || matches!(
            octet,
            b':' | b'/'
                | b'?'
                | b'#'
                | b'['
                | b']'
                | b'@'
                | b'!'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'+'
                | b','
                | b';'
                | b'='
                | b'%'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Pattern::parse(pattern.as_bytes()).matches(&NormalPath::parse(path))
    }

    #[test]
    fn patterns_match_from_the_first_octet() {
        let table = [
            ("/", "/anything?at=all", true),
            ("/fish", "/fish", true),
            ("/fish", "/fish.html", true),
            ("/fish", "/fish/salmon.html", true),
            ("/fish", "/fishheads/yummy.html", true),
            ("/fish", "/fish.php?id=anything", true),
            ("/fish", "/Fish.asp", false),
            ("/fish", "/catfish", false),
            ("/fish", "/?id=fish", false),
            ("/fish*", "/fishheads", true),
            ("/fish*", "/catfish", false),
            ("/fish/", "/fish/", true),
            ("/fish/", "/fish/?id=anything", true),
            ("/fish/", "/fish", false),
            ("/fish/", "/fish.html", false),
            ("/*.php", "/index.php", true),
            ("/*.php", "/folder/any.php.file.html", true),
            ("/*.php", "/", false),
            ("/*.php", "/windows.PHP", false),
            ("/*.php$", "/folder/filename.php", true),
            ("/*.php$", "/filename.php?parameters", false),
            ("/*.php$", "/filename.php/", false),
            ("/*.php$", "/filename.php5", false),
            ("/fish*.php", "/fishheads/catfish.php?parameters", true),
            ("/fish*.php", "/Fish.PHP", false),
            ("*", "/x", true),
            ("*.gif$", "/a/b.gif", true),
            ("/$", "/", true),
            ("/$", "/x", false),
            ("/*ab*ab$", "/abab", true),
            ("/*aba*ba$", "/abab", false),
            ("", "/x", true),
        ];
        for (pattern, path, wanted) in table {
            assert_eq!(matches(pattern, path), wanted, "{pattern} {path}");
        }
    }

    #[test]
    fn encodings_meet_on_both_sides() {
        let table = [
            ("/foo/bar/ツ", "/foo/bar/%E3%83%84", true),
            ("/foo/bar/%e3%83%84", "/foo/bar/ツ", true),
            ("/foo/bar/%62%61%7A", "/foo/bar/baz", true),
            ("/foo/bar/baz", "/foo/bar/%62%61%7A", true),
            ("/a%2fb", "/a%2Fb", true),
            ("/a%2Fb", "/a/b", false),
            ("/a b", "/a%20b", true),
            ("/a|b", "/a%7Cb", true),
            ("/with-%2A.html", "/with-*.html", true),
            ("/with-%24", "/with-$", true),
            ("/a$b", "/a$b/c", true),
            ("/a$b", "/a", false),
            ("/100%", "/100%", true),
            ("/%zz", "/%zz", true),
            ("/x?q=http://a.example?b&c", "/x?q=http://a.example?b&c", true),
        ];
        for (pattern, path, wanted) in table {
            assert_eq!(matches(pattern, path), wanted, "{pattern} {path}");
        }
    }

    #[test]
    fn hostile_patterns_cost_no_more_than_others() {
        let pattern = "/".to_owned() + &"a*".repeat(50_000) + "b$";
        assert!(!matches(&pattern, &("/".to_owned() + &"a".repeat(100_000))));
    }
}
