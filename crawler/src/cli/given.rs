//! Combines the flag and the key of the configuration file for one setting.

use super::file::ConfigFile;

/// A setting from a flag or from the file. Error messages use the name under which it was set.
pub(super) struct Given<T> {
    pub(super) name: String,
    pub(super) value: Option<T>,
}

/// The flag takes precedence over the file.
pub(super) fn given<T>(flag: &str, typed: Option<T>, filed: Option<T>, file: &ConfigFile) -> Given<T> {
    let name = if typed.is_none() && filed.is_some() { file.name_of(flag) } else { flag.to_owned() };
    Given { name, value: typed.or(filed) }
}

/// The flag takes precedence over the file. An empty list counts as not set.
pub(super) fn given_list<'a, T>(
    flag: &str,
    typed: &'a [T],
    filed: &'a [T],
    file: &ConfigFile,
) -> Given<&'a [T]> {
    let not_empty = |list: &'a [T]| Some(list).filter(|list| !list.is_empty());
    given(flag, not_empty(typed), not_empty(filed), file)
}
