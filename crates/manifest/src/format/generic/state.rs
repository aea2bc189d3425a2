//! The state of an element: whether its calls work.

use crate::object::Object;
use crate::text;

/// Whether the status of an element says that its calls do not work: `"status": "suspended"`.
pub(super) fn is_down(element: &Object<'_>) -> bool {
    const STATES: &[&str] = &[
        "suspended",
        "planned",
        "upcoming",
        "coming soon",
        "disabled",
        "offline",
        "down",
        "paused",
        "retired",
        "discontinued",
        "unavailable",
        "deployment pending",
        "pending deployment",
        "not yet live",
        "inactive",
    ];
    element.text("status").is_some_and(|status| {
        let folded =
            text::capped(status.trim(), STATUS_CHARS_MAX).replace(['_', '-'], " ").to_ascii_lowercase();
        STATES.contains(&folded.as_str())
    })
}

/// Maximum number of characters of a status that is compared.
const STATUS_CHARS_MAX: usize = 40;
