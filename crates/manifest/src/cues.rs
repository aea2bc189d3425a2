//! Parts of words that a text must contain for a parser of sentences to find something in it. One pass over a text finds them all, so that
//! few texts are split into sentences and words.

use std::sync::LazyLock;

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton;
use aho_corasick::dfa::DFA;

/// What a text with a part may state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Cue {
    /// An instruction to send a credential: "Bearer", "Auth:", "X-API-Key".
    Instruction,
    /// An instruction to send a token, if the text also names a header.
    Token,
    /// A required credential: "requires", "needs", "with API-key", "with an API key", "uses a separate token", "the authenticated user".
    Requirement,
    /// A payment: "x402", "USDC on Base", "accepts", "payment".
    Payment,
    /// A further credential: "Also accepts".
    Alternative,
    Tool,
    McpServer,
    /// The header of a payment.
    PaymentHeader,
}

const PARTS: &[(&str, Cue)] = &[
    ("eare", Cue::Instruction),
    ("uth:", Cue::Instruction),
    ("-Key", Cue::Instruction),
    ("-key", Cue::Instruction),
    ("oken", Cue::Token),
    ("equi", Cue::Requirement),
    ("need", Cue::Requirement),
    ("Need", Cue::Requirement),
    ("h AP", Cue::Requirement),
    ("h ap", Cue::Requirement),
    ("n AP", Cue::Requirement),
    ("eparate ", Cue::Requirement),
    ("ed user", Cue::Requirement),
    ("-in user", Cue::Requirement),
    ("ifferent ", Cue::Requirement),
    ("402", Cue::Payment),
    (" on ", Cue::Payment),
    ("-on-", Cue::Payment),
    ("ccep", Cue::Payment),
    ("ayme", Cue::Payment),
    ("lso accept", Cue::Alternative),
    ("tool", Cue::Tool),
    ("MCP ", Cue::McpServer),
    ("Paym", Cue::PaymentHeader),
    ("PAYM", Cue::PaymentHeader),
];

/// `None` if the automaton cannot be built; every text then has every cue.
static AUTOMATON: LazyLock<Option<DFA>> =
    LazyLock::new(|| DFA::builder().build(PARTS.iter().map(|(part, _)| part)).ok());

/// The cues of one text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cues(u8);

impl Cues {
    const ALL: Self = Self(u8::MAX);

    pub(crate) fn of(text: &str) -> Self {
        let Some(automaton) = AUTOMATON.as_ref() else { return Self::ALL };
        let Ok(mut state) = automaton.start_state(Anchored::No) else { return Self::ALL };
        let mut found = 0;
        for byte in text.bytes() {
            state = automaton.next_state(Anchored::No, state, byte);
            if automaton.is_match(state) {
                for index in 0..automaton.match_len(state) {
                    let part = automaton.match_pattern(state, index).as_usize();
                    found |= PARTS.get(part).map_or(0, |(_, cue)| 1 << *cue as u8);
                }
            }
        }
        Self(found)
    }

    pub(crate) const fn has(self, cue: Cue) -> bool {
        self.0 & (1 << cue as u8) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_the_cues_of_the_parts_that_it_contains() {
        let parts = PARTS.iter().map(|(part, _)| ["x", part, "y"].concat());
        let others = ["", "TOOL", "It needs a tool on Base", "Also accepts tokens"].map(str::to_owned);
        for text in parts.chain(others) {
            let cues = Cues::of(&text);
            for (_, cue) in PARTS {
                let has_part = PARTS.iter().any(|(part, of)| of == cue && text.contains(part));
                assert_eq!(cues.has(*cue), has_part, "{text}: {cue:?}");
            }
        }
    }
}
