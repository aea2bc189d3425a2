//! What the operator chose for the time that shards of a cluster are away. The command line has it in every build.

use serde::Deserialize;

/// What to answer while shards of a cluster are away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MissingShards {
    /// Every search is an error.
    #[default]
    Fail,
    /// The results of the other shards, with the names of the missing ones. Responses that cannot name them are errors.
    Partial,
}
