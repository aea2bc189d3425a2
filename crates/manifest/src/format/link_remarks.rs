//! The titles of addresses in lines with more words than a label: `- Register: open an issue at https://…`, `- https://… — dashboard.
//! Data: https://…`.

/// Marks of list items and headings.
const ITEM_MARKS: [char; 7] = ['-', '*', '+', '#', '>', ' ', '\t'];
/// Maximum length in bytes of a label before an address, and of the label of an item whose address follows other words.
const LABEL_BYTES_MAX: usize = 100;
const ITEM_LABEL_BYTES_MAX: usize = 60;
/// Ends of the clause before a label.
const CLAUSE_ENDS: &[&str] = &[". ", "; ", ") ", " | ", " \u{2014} ", " \u{2013} ", ", "];
/// Separators between an address and the remark behind it.
const SEPARATORS: &[&str] = &["\u{2014} ", "\u{2013} ", "- ", ": ", "\u{2192} "];

/// The titles of the addresses of a line, which are given in their order.
pub(super) fn of_line<'t>(line: &'t str, addresses: &[&'t str]) -> Vec<(&'t str, String)> {
    let item = line.trim_start_matches(ITEM_MARKS);
    let is_item = item.len() < line.len() && !line.starts_with('#');
    let mut places = Vec::with_capacity(addresses.len());
    let mut from = 0;
    for address in addresses {
        let Some(start) = item.get(from..).and_then(|rest| rest.find(*address)) else { return Vec::new() };
        places.push((from + start, from + start + address.len()));
        from += start + address.len();
    }
    let between = |from: usize, to: usize| item.get(from..to).unwrap_or_default();
    let label_before = |at: usize| {
        let end = at.checked_sub(1).and_then(|before| places.get(before)).map_or(0, |place| place.1);
        label_in(between(end, places.get(at)?.0), at == 0)
    };
    let mut found = Vec::new();
    for (at, (address, (start, end))) in addresses.iter().zip(&places).enumerate() {
        let next = places.get(at + 1).map(|place| place.0);
        let title = label_before(at).or_else(|| {
            if at > 0 {
                return None;
            }
            let next_label = label_before(at + 1);
            if between(0, *start).trim_matches(['<', '`', '*', '(', ' ']).is_empty() {
                let is_last = next.is_none();
                let behind = between(*end, next.unwrap_or(item.len()));
                return remark_in(behind, next_label).filter(|_| is_last || next_label.is_some());
            }
            let until = if next.is_some() { *end } else { item.len() };
            item.get(..until).filter(|item| is_item && has_label(item) && address.contains("://"))
        });
        let in_brackets = || {
            let behind = between(*end, item.len()).strip_prefix(')')?.trim_start_matches('/');
            let before = between(0, *start).strip_suffix('(')?.trim_end();
            (is_item && next.is_none() && !before.is_empty()).then(|| [before, behind].concat())
        };
        let title = in_brackets().or_else(|| title.map(str::to_owned));
        found.extend(title.map(|title| (*address, title)));
    }
    found
}

/// The label at the end of the text before an address: `Data` in `— dashboard. Data: `.
fn label_in(before: &str, is_first: bool) -> Option<&str> {
    let label = before.trim_end_matches([' ', '`', '<', '*', '(']).strip_suffix([':', '\u{ff1a}'])?;
    // "base URL (default: https://…)"
    let open = label.rsplit_once(" (").filter(|(_, inner)| !inner.contains(')'));
    let label = open.map_or(label, |(label, _)| label);
    let ends = CLAUSE_ENDS.iter().filter(|end| !(is_first && **end == ", "));
    let start = ends.filter_map(|end| Some(label.rfind(end)? + end.len())).max().unwrap_or(0);
    let label =
        label.get(start..)?.trim_matches(|letter: char| letter.is_whitespace() || ",.;*`)".contains(letter));
    (!label.is_empty() && label.len() <= LABEL_BYTES_MAX).then_some(label)
}

/// The remark behind the first address of a line, without the label of the next address.
fn remark_in<'t>(behind: &'t str, next_label: Option<&str>) -> Option<&'t str> {
    let behind = behind.trim_start_matches(['>', '`', '*', ')', ' ']);
    let remark = SEPARATORS.iter().find_map(|separator| behind.strip_prefix(separator))?;
    let end = next_label.and_then(|label| remark.rfind(label)).unwrap_or(remark.len());
    let remark = remark.get(..end)?.trim_end_matches([' ', '.', ';', ',', '(']);
    (!remark.is_empty()).then_some(remark)
}

/// Whether an item begins with a label: "Register a room (free): open an issue …"
fn has_label(item: &str) -> bool {
    item.split_once(": ").is_some_and(|(label, _)| {
        !label.is_empty()
            && label.len() <= ITEM_LABEL_BYTES_MAX
            && !label.contains(['"', '{', '/'])
            && !label.contains(". ")
            && label.starts_with(|letter: char| letter.is_alphabetic() || "*`".contains(letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_addresses_by_labels_and_remarks() {
        let long = "x".repeat(150);
        let (a, b) = ("https://a.example/x", "https://a.example/y");
        for (line, expected) in [
            (
                format!("- Register: open an issue on {a} today"),
                vec![(a, format!("Register: open an issue on {a} today"))],
            ),
            (
                format!("- {a} \u{2014} dashboard. Data: {b}"),
                vec![(a, "dashboard".to_owned()), (b, "Data".to_owned())],
            ),
            (format!("- {a} \u{2014} {long}"), vec![(a, long)]),
            (format!("Rooms: {a}; halls: {b}"), vec![(a, "Rooms".to_owned()), (b, "halls".to_owned())]),
            (format!("Read {a}: it is new"), vec![]),
            (format!("- {a} and {b}"), vec![]),
            (format!("- All rooms ({a}) \u{2014} a list"), vec![(a, "All rooms \u{2014} a list".to_owned())]),
            (format!("SHOP_URL - base URL (default: {a})"), vec![(a, "SHOP_URL - base URL".to_owned())]),
            (format!("Rooms, if free: {a}"), vec![(a, "Rooms, if free".to_owned())]),
        ] {
            let addresses: Vec<&str> = [a, b].into_iter().filter(|address| line.contains(address)).collect();
            let found = of_line(&line, &addresses);
            assert_eq!(found, expected, "{line}");
        }
    }
}
