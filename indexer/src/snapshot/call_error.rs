//! Converts failed calls to object storage to errors that state what the operator should check.

use std::time::Duration;

use object_store::Error;

use super::error::SnapshotError;

/// Maximum length of a reason in an error, in characters.
const REASON_CHARS_MAX: usize = 200;

/// Why a call failed.
#[derive(Debug)]
pub(super) enum CallError {
    Store {
        operation: &'static str,
        error: Box<Error>,
    },
    TimedOut {
        operation: &'static str,
        after: Duration,
    },
    /// The program stops.
    Cancelled,
}

impl CallError {
    /// The bucket exists, but the object does not.
    pub(super) fn is_missing_object(&self) -> bool {
        self.store().is_some_and(|error| matches!(error, Error::NotFound { .. }) && !has_no_bucket(error))
    }

    /// The condition of the write failed: another client wrote the object.
    pub(super) fn is_conflict(&self) -> bool {
        let conflict =
            |error: &Error| matches!(error, Error::AlreadyExists { .. } | Error::Precondition { .. });
        self.store().is_some_and(conflict)
    }

    /// The storage does not support conditions.
    pub(super) fn is_unsupported(&self) -> bool {
        let unsupported =
            |error: &Error| matches!(error, Error::NotImplemented { .. } | Error::NotSupported { .. });
        self.store().is_some_and(unsupported)
    }

    fn store(&self) -> Option<&Error> {
        match self {
            Self::Store { error, .. } => Some(error),
            Self::TimedOut { .. } | Self::Cancelled => None,
        }
    }

    pub(super) fn into_error(self, location: &str) -> SnapshotError {
        match self {
            Self::Store { operation, error } => storage_error(location, operation, &error),
            Self::TimedOut { operation, after } => SnapshotError::Store {
                location: location.to_owned(),
                operation,
                reason: format!("no response within {} s", after.as_secs()),
                advice: "check whether the storage at AWS_ENDPOINT_URL responds",
            },
            Self::Cancelled => SnapshotError::Stopped { location: location.to_owned() },
        }
    }
}

pub(super) fn storage_error(location: &str, operation: &'static str, error: &Error) -> SnapshotError {
    let advice = match error {
        Error::NotFound { .. } if has_no_bucket(error) => "create the bucket, or correct its name",
        Error::NotFound { .. } => "it was removed in the meantime; the next attempt finds a newer snapshot",
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the policy of the bucket"
        }
        _ => "check AWS_ENDPOINT_URL, AWS_REGION and the credentials, and whether the storage responds",
    };
    SnapshotError::Store { location: location.to_owned(), operation, reason: reason(error), advice }
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

/// The error code of the response, because the message may quote credentials; without a code, the beginning of the message.
fn reason(error: &Error) -> String {
    let text = chain(error);
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let text = code.map_or(text.as_str(), |(code, _)| code);
    text.chars().filter(|char| !char.is_control()).take(REASON_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(error: &Error) -> String {
        storage_error("s3://books/x", "read", error).to_string()
    }

    #[test]
    fn errors_have_a_short_reason_and_advice_but_no_credentials() {
        let body =
            "403: <Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIA7</AWSAccessKeyId></Error>";
        let path = "x".to_owned();
        let text = message(&Error::PermissionDenied { path: path.clone(), source: body.into() });
        assert!(text.contains("s3://books/x") && text.contains("SignatureDoesNotMatch"), "{text}");
        assert!(text.contains("AWS_SECRET_ACCESS_KEY") && !text.contains("AKIA7"), "{text}");
        let gone = "<Error><Code>NoSuchBucket</Code></Error>";
        let text = message(&Error::NotFound { path, source: gone.into() });
        assert!(text.contains("create the bucket"), "{text}");
        let long = message(&Error::Generic { store: "S3", source: "x\n".repeat(5_000).into() });
        assert!(long.len() < 2 * REASON_CHARS_MAX && !long.contains('\n'), "{long}");
    }
}
