//! Texts of rules and of the API, in which backticks mark code.

/// The text as HTML: escaped, with each part between two backticks as code.
pub(super) fn inline_code(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, inside, after)) = first_code(rest) {
        html.push_str(&escaped(before));
        html.extend(["<code>", &escaped(inside), "</code>"]);
        rest = after;
    }
    html.push_str(&escaped(rest));
    html
}

/// The text before the first code span, the code, and the text after it.
fn first_code(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (inside, after) = rest.split_once('`')?;
    Some((before, inside, after))
}

fn escaped(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_between_backticks_is_code_and_everything_is_escaped() {
        assert_eq!(inline_code("`intent` is missing"), "<code>intent</code> is missing");
        assert_eq!(inline_code("<b>`<i>`&\"'"), "&lt;b&gt;<code>&lt;i&gt;</code>&amp;&quot;&#39;");
        assert_eq!(inline_code("one ` alone"), "one ` alone");
    }
}
