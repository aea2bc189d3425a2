//! Limits how far the YAML parser may read ahead of the event that it returns.
//!
//! A collection in flow style may turn out to be a key when it ends. Until then, the parser keeps all tokens of the collection, and
//! searches the open collections for every token. The window bounds characters, tokens and open collections between two events; beyond it,
//! the parser gets the end of the text, and the reader reports that the budget is exceeded.

use std::cell::Cell;
use std::rc::Rc;
use std::str;

use crate::budget::{Measure, OverBudget};

/// Maximum number of characters between two events: sixteen times the longest string that is kept.
const CHARS_MAX: usize = 1_024 * 1_024;
/// Maximum number of characters between two events that begin or end tokens. A token takes about 110 bytes while it waits, so that these
/// take 22 MiB at most; an example of half a mebibyte in flow style is within this limit.
const MARKS_MAX: usize = 200_000;
/// Maximum number of brackets that are open between two events: twice the depth that is read, as brackets in texts are counted too.
const OPEN_MAX: usize = 2 * crate::json::DEPTH_MAX;

/// The number of characters, tokens and open collections since the last event.
#[derive(Debug, Default)]
pub(super) struct Window {
    chars: Cell<usize>,
    marks: Cell<usize>,
    open: Cell<usize>,
    exceeded: Cell<Option<OverBudget>>,
}

impl Window {
    /// Begins a new window: the parser returned an event.
    pub(super) fn reopen(&self) {
        self.chars.set(0);
        self.marks.set(0);
        self.open.set(0);
    }

    /// The limit that was exceeded, if any. The parser then gets no more text.
    pub(super) const fn exceeded(&self) -> Option<OverBudget> {
        self.exceeded.get()
    }

    /// Counts a character that the parser reads. Returns false if a limit is exceeded.
    fn admit(&self, letter: char) -> bool {
        let chars = self.chars.get() + 1;
        self.chars.set(chars);
        match letter {
            '[' | '{' => {
                self.open.set(self.open.get() + 1);
                self.marks.set(self.marks.get() + 1);
            }
            ']' | '}' => {
                self.open.set(self.open.get().saturating_sub(1));
                self.marks.set(self.marks.get() + 1);
            }
            ',' | ':' | '?' | '&' | '*' | '!' | '\'' | '"' => self.marks.set(self.marks.get() + 1),
            _ => {}
        }
        for (measure, limit, measured) in [
            (Measure::Depth, OPEN_MAX, self.open.get()),
            (Measure::Lookahead, MARKS_MAX, self.marks.get()),
            (Measure::Lookahead, CHARS_MAX, chars),
        ] {
            if measured > limit {
                self.exceeded.set(Some(OverBudget { measure, limit, measured }));
                return false;
            }
        }
        true
    }
}

/// The characters of a text, as long as the window admits them.
pub(super) struct Chars<'t> {
    rest: str::Chars<'t>,
    window: Rc<Window>,
}

impl<'t> Chars<'t> {
    pub(super) fn new(text: &'t str, window: Rc<Window>) -> Self {
        Self { rest: text.chars(), window }
    }
}

impl Iterator for Chars<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        if self.window.exceeded.get().is_some() {
            return None;
        }
        self.rest.next().filter(|letter| self.window.admit(*letter))
    }
}
