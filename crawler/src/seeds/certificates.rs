//! Reads names from JSON: an array of names, or a dump of a certificate-transparency log, as one document or one object per line, as crt.sh
//! and certstream write them.
//!
//! The names of certificates are the strings under a few known members, at any depth; strings before the first member are names, too. The text is scanned byte by byte, so a
//! dump of any size or depth takes the memory of one string.

use std::io::{self, BufRead, Bytes};

/// JSON members whose strings are host names.
const MEMBERS: [&str; 6] = ["all_domains", "common_name", "dns_names", "name_value", "names", "domains"];
/// Maximum number of bytes of a string that are kept. crt.sh lists all names of a certificate in one string, and a name has at most 253
/// bytes.
const STRING_BYTES_MAX: usize = 64 * 1024;

/// Calls `each` with every name.
pub(super) fn each_name(source: impl BufRead, mut each: impl FnMut(&str)) -> io::Result<()> {
    let mut bytes = source.bytes();
    // the last string, and whether it or an earlier one is the name of such a member
    let (mut last, mut is_name) = (None::<String>, true);
    while let Some(byte) = bytes.next().transpose()? {
        match byte {
            b'"' => {
                pass_names(last.take(), is_name, &mut each);
                last = Some(string(&mut bytes)?);
            }
            b':' => is_name = last.take().is_some_and(|member| MEMBERS.contains(&member.as_str())),
            b',' | b']' | b'}' => {
                pass_names(last.take(), is_name, &mut each);
                is_name &= byte == b',';
            }
            _ => {}
        }
    }
    Ok(())
}

fn pass_names(text: Option<String>, is_name: bool, each: &mut impl FnMut(&str)) {
    let text = text.filter(|_| is_name).unwrap_or_default();
    text.split_whitespace().for_each(each);
}

/// Reads the rest of a string after its opening quote. Escapes that cannot be part of a host name become spaces or question marks.
fn string<R: BufRead>(bytes: &mut Bytes<R>) -> io::Result<String> {
    let mut text = Vec::new();
    while let Some(byte) = bytes.next().transpose()? {
        let byte = match byte {
            b'"' => break,
            b'\\' => match bytes.next().transpose()? {
                Some(b'n' | b'r' | b't') => b' ',
                Some(byte @ (b'"' | b'\\' | b'/')) => byte,
                _ => b'?',
            },
            byte => byte,
        };
        if text.len() < STRING_BYTES_MAX {
            text.push(byte);
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let mut names = Vec::new();
        each_name(text.as_bytes(), |name| names.push(name.to_owned())).unwrap();
        names
    }

    #[test]
    fn reads_the_names_of_an_array_of_certificates() {
        let text = r#"[{"issuer_name":"C=US, O=\"CA\", names","common_name":"a.example","name_value":"a.example\n*.b.example","id":7},
            {"common_name":"c.example"}]"#;
        assert_eq!(names(text), ["a.example", "a.example", "*.b.example", "c.example"]);
    }

    #[test]
    fn reads_an_array_of_names() {
        assert_eq!(names(r#" ["a.example", "b.example"] "#), ["a.example", "b.example"]);
        assert_eq!(
            names(r#"["a.example", {"x": "c.example", "names": ["d.example"]}]"#),
            ["a.example", "d.example"]
        );
    }

    #[test]
    fn reads_one_object_a_line() {
        let text = "{\"data\":{\"leaf_cert\":{\"all_domains\":[\"a.example\", \"b.example\"],\"extensions\":\"x\"}}}\n\
                    {\"dns_names\":[\"c.example\"]}\n";
        assert_eq!(names(text), ["a.example", "b.example", "c.example"]);
    }

    #[test]
    fn bounds_memory_for_endless_strings_and_nesting() {
        let text = format!("{}{{\"names\":[\"{}\",\"a.example\"", "[".repeat(100_000), "x".repeat(200_000));
        let found = names(&text);
        assert_eq!(found.iter().map(String::len).collect::<Vec<_>>(), [STRING_BYTES_MAX]);
        let text = format!("{text}]");
        assert_eq!(names(&text)[1], "a.example");
    }
}
