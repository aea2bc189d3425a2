//! Link headers (RFC 8288 §3), read in one pass.

use super::{HREF_BYTES_MAX, LINKS_MAX, PARAMETER_BYTES_MAX, WebLink, relations};

/// Reads the members of one Link header.
pub fn link_header(value: &str) -> Vec<WebLink> {
    let mut links = Vec::new();
    let mut rest = value;
    while let Some((_, after)) = rest.split_once('<') {
        let Some((href, parameters)) = after.split_once('>') else { break };
        let end = end_of_member(parameters);
        let (own, next) = parameters.split_at(end);
        rest = next;
        let href = href.trim();
        if href.len() > HREF_BYTES_MAX {
            continue;
        }
        let rels = relations(&parameter(own, "rel").unwrap_or_default());
        links.push(WebLink { rels, href: href.to_owned(), media_type: parameter(own, "type") });
        if links.len() >= LINKS_MAX {
            break;
        }
    }
    links
}

/// The end of a member: the first comma outside quotes.
fn end_of_member(parameters: &str) -> usize {
    let mut quoted = false;
    for (at, character) in parameters.char_indices() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => return at,
            _ => {}
        }
    }
    parameters.len()
}

fn parameter(parameters: &str, name: &str) -> Option<String> {
    let value = parameters.split(';').find_map(|part| {
        let (key, value) = part.split_once('=')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"'))
    });
    value.filter(|value| value.len() <= PARAMETER_BYTES_MAX).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_commas_in_quoted_parameters() {
        let links = link_header("</a>; title=\"one, two\"; rel=\"ard agent\", </b>; rel=mcp");
        assert_eq!(links.len(), 2);
        assert_eq!(links[0].rels, ["ard", "agent"]);
        assert_eq!(links[1].href, "/b");
    }
}
