//! Why a store of objects did not do what it was asked, said so that an operator knows what to look at.

use std::time::Duration;

use object_store::Error;

use super::SnapshotError;

/// Characters of what a store says about itself.
const SAID_MAX: usize = 200;

/// Why a call to a store came to nothing.
#[derive(Debug)]
pub(super) enum Refusal {
    Store {
        doing: &'static str,
        error: Box<Error>,
    },
    Slow {
        doing: &'static str,
        after: Duration,
    },
    /// The program is to stop.
    Stopped,
}

impl Refusal {
    /// The object is not there, and its bucket is.
    pub(super) fn is_missing_object(&self) -> bool {
        self.store().is_some_and(|error| matches!(error, Error::NotFound { .. }) && !has_no_bucket(error))
    }

    /// Somebody else wrote meanwhile.
    pub(super) fn is_conflict(&self) -> bool {
        let conflict =
            |error: &Error| matches!(error, Error::AlreadyExists { .. } | Error::Precondition { .. });
        self.store().is_some_and(conflict)
    }

    /// The store does not know what it was asked for.
    pub(super) fn is_unknown(&self) -> bool {
        let unknown =
            |error: &Error| matches!(error, Error::NotImplemented { .. } | Error::NotSupported { .. });
        self.store().is_some_and(unknown)
    }

    fn store(&self) -> Option<&Error> {
        match self {
            Self::Store { error, .. } => Some(error),
            Self::Slow { .. } | Self::Stopped => None,
        }
    }

    pub(super) fn into_error(self, place: &str) -> SnapshotError {
        match self {
            Self::Store { doing, error } => refusal(place, doing, &error),
            Self::Slow { doing, after } => SnapshotError::Store {
                place: place.to_owned(),
                doing,
                reason: format!("no answer within {} s", after.as_secs()),
                advice: "look whether the store at AWS_ENDPOINT_URL answers",
            },
            Self::Stopped => SnapshotError::Stopped { place: place.to_owned() },
        }
    }
}

/// What a store's error comes to, with what to look at.
pub(super) fn refusal(place: &str, doing: &'static str, error: &Error) -> SnapshotError {
    let advice = match error {
        Error::NotFound { .. } if has_no_bucket(error) => "make the bucket, or correct its name",
        Error::NotFound { .. } => "it was removed meanwhile; the next look finds a newer snapshot",
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and what the bucket's policy lets them do"
        }
        _ => "check AWS_ENDPOINT_URL, AWS_REGION and the credentials, and whether the store answers",
    };
    SnapshotError::Store { place: place.to_owned(), doing, reason: said(error), advice }
}

fn has_no_bucket(error: &Error) -> bool {
    chain(error).contains("NoSuchBucket")
}

fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// The code of the store's answer where it has one, since such answers quote what was signed; else its first words.
fn said(error: &Error) -> String {
    let text = chain(error);
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let text = code.map_or(text.as_str(), |(code, _)| code);
    text.chars().filter(|char| !char.is_control()).take(SAID_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: &Error) -> String {
        refusal("s3://books/x", "read", error).to_string()
    }

    #[test]
    fn what_a_store_says_is_told_in_brief_with_advice() {
        let body =
            "403: <Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIA7</AWSAccessKeyId></Error>";
        let path = "x".to_owned();
        let text = told(&Error::PermissionDenied { path: path.clone(), source: body.into() });
        assert!(text.contains("s3://books/x") && text.contains("SignatureDoesNotMatch"), "{text}");
        assert!(text.contains("AWS_SECRET_ACCESS_KEY") && !text.contains("AKIA7"), "{text}");
        let gone = "<Error><Code>NoSuchBucket</Code></Error>";
        let text = told(&Error::NotFound { path, source: gone.into() });
        assert!(text.contains("make the bucket"), "{text}");
        let long = told(&Error::Generic { store: "S3", source: "x\n".repeat(5_000).into() });
        assert!(long.len() < 2 * SAID_MAX && !long.contains('\n'), "{long}");
    }
}
