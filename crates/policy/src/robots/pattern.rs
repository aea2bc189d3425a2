//! The normal form in which rules are compared with paths (RFC 9309 §2.2.2-3).
//!
//! Percent-encodings are normalised, and the end of a path is the character [`END`]. A rule with a final `$` also ends with this character.
//! So every rule is a prefix with wildcards, and can be matched in linear time without a regular expression.

/// Marks the end of a path. The character cannot appear in a normal form, because there it is encoded as `%7C`.
const END: char = '|';

/// A rule's pattern: `*` matches any bytes, [`END`] the end of the path, everything else itself.
#[derive(Debug, Clone)]
pub(super) struct Pattern(String);

impl Pattern {
    /// Normalises the value of an Allow or Disallow line. A `$` before the end is a plain character.
    pub(super) fn parse(value: &[u8]) -> Self {
        let (inner, is_anchored) = value.strip_suffix(b"$").map_or((value, false), |inner| (inner, true));
        let mut pattern = normalise(inner, b"*");
        pattern.extend(is_anchored.then_some(END));
        Self(pattern)
    }

    /// The pattern with a leading slash.
    pub(super) fn rooted(self) -> Self {
        if self.0.starts_with(['/', '*']) { self } else { Self(format!("/{}", self.0)) }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The length of the pattern, by which rules are ranked.
    pub(super) const fn bytes(&self) -> usize {
        self.0.len()
    }

    pub(super) fn wildcards(&self) -> usize {
        self.0.bytes().filter(|byte| *byte == b'*').count()
    }
}

/// A path and query in normal form.
#[derive(Debug)]
pub(super) struct NormalPath(String);

impl NormalPath {
    /// Normalises the path and query of a request and drops a fragment. A literal `*` or `$` is encoded, because these have a meaning in
    /// patterns (§2.2.3 tells site owners to write `%2A` and `%24`).
    pub(super) fn parse(path_and_query: &str) -> Self {
        let path = path_and_query.split('#').next().unwrap_or_default();
        let normal = normalise(path.as_bytes(), b"");
        let slash = if normal.starts_with('/') { "" } else { "/" };
        Self(format!("{slash}{normal}{END}"))
    }

    pub(super) fn is_robots(&self) -> bool {
        self.0.strip_suffix(END) == Some("/robots.txt")
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Decodes percent-encoded unreserved characters, and encodes every byte that RFC 3986 does not permit, with upper-case
/// digits. `*` and `$` are encoded too unless they are `kept`.
fn normalise(value: &[u8], kept: &[u8]) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match escaped(*first, tail) {
            Some((byte, after)) => {
                rest = after;
                push(&mut out, byte, is_unreserved(byte));
            }
            None => push(&mut out, *first, is_plain(*first) || kept.contains(first)),
        }
    }
    out
}

/// The byte that `%` and two hexadecimal digits encode, and the bytes after them.
fn escaped(first: u8, tail: &[u8]) -> Option<(u8, &[u8])> {
    let (b'%', [high, low, after @ ..]) = (first, tail) else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?;
    Some((byte, after))
}

fn push(out: &mut String, byte: u8, plain: bool) {
    if plain {
        out.push(char::from(byte));
    } else {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        out.push('%');
        out.extend([byte >> 4, byte & 15].map(|half| char::from(DIGITS[usize::from(half)])));
    }
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Unreserved and reserved characters of RFC 3986 §2.2-3 except `*` and `$`, and a stray `%`.
const fn is_plain(byte: u8) -> bool {
    is_unreserved(byte)
        || matches!(
            byte,
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
    use super::super::{PRODUCT_TOKEN, RobotsFile};

    fn matches(pattern: &str, path: &str) -> bool {
        let body = format!("User-agent: *\nDisallow: {pattern}\n");
        !RobotsFile::parse(body.as_bytes(), PRODUCT_TOKEN).decide(path).is_allowed()
    }

    #[test]
    fn patterns_match_from_the_first_byte() {
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
            ("/x*$", "/xy", true),
            ("/a|b", "/a", false),
            ("/a", "/a|b", true),
        ];
        for (pattern, path, expected) in table {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn equal_characters_match_in_any_encoding() {
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
        for (pattern, path, expected) in table {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn matches_a_hostile_pattern_in_linear_time() {
        let pattern = "/".to_owned() + &"a*".repeat(50_000) + "b$";
        assert!(!matches(&pattern, &("/".to_owned() + &"a".repeat(100_000))));
    }
}
