//! The name of this program in messages.

/// The name under which this program was started, for messages that suggest a command.
pub(super) fn program() -> String {
    let started = std::env::args_os().next().unwrap_or_default();
    let name = std::path::Path::new(&started).file_name().unwrap_or_default();
    if name.is_empty() { "crawler".to_owned() } else { name.to_string_lossy().into_owned() }
}
