//! Optional parts of the programs, which are compiled only with a Cargo feature.

/// A Cargo feature of the package `agentdex`. Released programs are built with all features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    pub name: &'static str,
    pub is_built: bool,
}

/// A setting needs a feature with which this program was not built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this program was built without the feature `{name}`: build it with `cargo build --release --features {name}`, or use the \
     programs of a release, which have it"
)]
pub struct MissingFeature {
    name: &'static str,
}

impl Feature {
    pub fn require(self) -> Result<(), MissingFeature> {
        if self.is_built { Ok(()) } else { Err(MissingFeature { name: self.name }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_feature_is_reported_with_the_command_that_adds_it() {
        assert_eq!(Feature { name: "s3", is_built: true }.require(), Ok(()));
        let error = Feature { name: "s3", is_built: false }.require().unwrap_err().to_string();
        assert!(
            error.contains("`cargo build --release --features s3`") && error.contains("release"),
            "{error}"
        );
    }
}
