//! The clauses of a text about credentials.

/// Maximum number of clauses of one text.
const CLAUSES_MAX: usize = 50;

/// Splits a text into clauses, without the marks around them: "Create rooms. Needs a key (see /keys)." has three.
pub(crate) fn clauses(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(['\n', ';', '(', ')', '\u{2014}']).flat_map(|part| part.split(". "));
    let is_mark = |letter: char| letter.is_whitespace() || "*+>.:-_!".contains(letter);
    parts.map(move |part| part.trim_matches(is_mark)).filter(|clause| !clause.is_empty()).take(CLAUSES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_at_the_ends_of_sentences_and_around_remarks() {
        let of = |text| clauses(text).collect::<Vec<_>>();
        let text = "- Create rooms. Needs a key (see /keys.json); free \u{2014} no login!\n";
        assert_eq!(of(text), ["Create rooms", "Needs a key", "see /keys.json", "free", "no login"]);
        assert_eq!(of(". ; ()"), Vec::<&str>::new());
        assert_eq!(of(&"a;".repeat(CLAUSES_MAX + 1)).len(), CLAUSES_MAX);
    }
}
