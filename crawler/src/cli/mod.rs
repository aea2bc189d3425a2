//! The command line: what may be typed, what it means, and what each command does.

mod duration;
mod file;
pub mod flags;
pub mod settings;

pub use flags::Flags;
pub use settings::{Settings, UsageError, Verbosity};
