//! Admin tokens: bearer tokens whose hashes are in a file that is read for each request.
//!
//! A line of the file is a name and `sha256:` with 64 hexadecimal digits; `#` begins a comment. A token is random and long, so one round of
//! SHA-256 protects it as well as a slow hash would. A token is compared with all hashes, each in constant time. Logs contain the name,
//! never the token.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, header};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::client::Client;
use crate::problem::Problem;

/// Minimum length of a token: 32 random hexadecimal digits are 128 bits.
const TOKEN_CHARS_MIN: usize = 32;
/// Maximum length of an accepted token.
const TOKEN_CHARS_MAX: usize = 512;
/// Maximum number of invalid lines whose numbers are logged.
const LINES_LOGGED_MAX: usize = 10;
/// Maximum size of the file: enough for hundreds of tokens.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// The file of the hashes, if one is configured.
#[derive(Debug, Clone, Default)]
pub(crate) struct AdminTokens {
    path: Option<PathBuf>,
    /// Numbers of the invalid lines that were logged last. They are not logged again, because any request causes the file to be read.
    logged: Arc<Mutex<Vec<usize>>>,
}

/// The holder of a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Admin {
    pub(crate) name: String,
}

/// A line of the file.
struct KnownToken {
    name: String,
    digest: Vec<u8>,
}

impl AdminTokens {
    /// Reads the file once, so that invalid lines are logged at the start. A file that cannot be read is reported with each request.
    pub(crate) fn in_file(path: Option<PathBuf>) -> Self {
        let tokens = Self { path, logged: Arc::default() };
        if let Some(Ok(text)) = tokens.path.as_ref().map(std::fs::read_to_string) {
            tokens.log_invalid(parsed(&text).1);
        }
        tokens
    }

    /// The admin whose token the request contains.
    pub(crate) async fn admit_request(&self, headers: &HeaderMap) -> Result<Admin, Problem> {
        self.admit(headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok())).await
    }

    /// Whether a client may read the metrics. Checked before the limits that reject other requests.
    pub(crate) async fn allow_metrics(&self, client: Client, headers: &HeaderMap) -> bool {
        client.is_local
            || (headers.contains_key(header::AUTHORIZATION) && self.admit_request(headers).await.is_ok())
    }

    async fn admit(&self, authorization: Option<&str>) -> Result<Admin, Problem> {
        let Some(path) = &self.path else {
            return Err(Problem::forbidden(
                "this instance has no admin tokens: start it with --admin-tokens FILE",
            ));
        };
        let refused =
            || Problem::unauthenticated("send a token of this instance as Authorization: Bearer TOKEN");
        let token = authorization.and_then(bearer).ok_or_else(refused)?;
        let text = tokio::fs::read_to_string(path).await.map_err(|error| {
            tracing::error!(path = %path.display(), error = &error as &dyn std::error::Error, "cannot read the admin tokens");
            Problem::unavailable("the admin tokens cannot be read at the moment")
        })?;
        let (known, invalid) = parsed(&text);
        self.log_invalid(invalid);
        name_of(&known, token).map(|name| Admin { name }).ok_or_else(refused)
    }

    /// Logs the numbers of invalid lines, never their content, if the numbers have changed since the last time.
    fn log_invalid(&self, lines: Vec<usize>) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if *logged == lines {
            return;
        }
        if let (Some(path), false) = (&self.path, lines.is_empty()) {
            let (shown, count) = (lines.get(..LINES_LOGGED_MAX).unwrap_or(&lines), lines.len());
            let file = path.display();
            tracing::warn!(%file, count, lines = ?shown, "some lines are not tokens and are ignored: write a name, then sha256: and 64 hexadecimal digits");
        }
        *logged = lines;
    }
}

/// The token of an `Authorization: Bearer` header, if its length is within the bounds of a token.
pub(crate) fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    let token = token.trim();
    let fits = (TOKEN_CHARS_MIN..=TOKEN_CHARS_MAX).contains(&token.len());
    (scheme.eq_ignore_ascii_case("bearer") && fits).then_some(token)
}

/// Parses the file: the tokens of valid lines, and the numbers of invalid lines.
fn parsed(text: &str) -> (Vec<KnownToken>, Vec<usize>) {
    let (mut known, mut invalid) = (Vec::new(), Vec::new());
    for (index, line) in text.get(..FILE_BYTES_MAX).unwrap_or(text).lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let digest = line.split_once(char::is_whitespace).and_then(|(name, hash)| {
            let digest = HEXLOWER.decode(hash.trim().strip_prefix("sha256:")?.as_bytes()).ok()?;
            (digest.len() == Sha256::output_size()).then(|| KnownToken { name: name.to_owned(), digest })
        });
        match digest {
            Some(digest) => known.push(digest),
            None => invalid.push(index + 1),
        }
    }
    (known, invalid)
}

fn name_of(known: &[KnownToken], token: &str) -> Option<String> {
    let digest = Sha256::digest(token.as_bytes());
    let mut found = None;
    for candidate in known {
        if bool::from(candidate.digest.ct_eq(&digest)) {
            found = Some(candidate.name.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn line(name: &str, token: &str) -> String {
        format!("{name} sha256:{}\n", HEXLOWER.encode(&Sha256::digest(token.as_bytes())))
    }

    #[test]
    fn recognises_tokens_by_their_hash() {
        let text =
            format!("# who may\n\nbroken\nshort sha256:00\n{}{}", line("ops", TOKEN), line("ci", "other"));
        let (known, invalid) = parsed(&text);
        assert_eq!((known.len(), invalid.as_slice()), (2, [3, 4].as_slice()));
        assert_eq!(name_of(&known, TOKEN).as_deref(), Some("ops"));
        assert_eq!(name_of(&known, "0123456789abcdef0123456789abcdeg"), None);
        assert_eq!(name_of(&[], TOKEN), None);
    }

    #[test]
    fn accepts_only_long_bearer_tokens() {
        assert_eq!(bearer(&format!("Bearer {TOKEN}")), Some(TOKEN));
        assert_eq!(bearer(&format!("bearer  {TOKEN} ")), Some(TOKEN));
        for wrong in ["Bearer", "Bearer ", "Bearer short", &format!("Basic {TOKEN}"), TOKEN] {
            assert_eq!(bearer(wrong), None, "{wrong}");
        }
    }

    #[tokio::test]
    async fn token_file_is_read_for_each_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        let header = format!("Bearer {TOKEN}");
        let tokens = AdminTokens::in_file(Some(path.clone()));
        let status =
            async || tokens.admit(Some(&header)).await.map_err(|problem| problem.body().status.as_u16());
        assert_eq!(status().await, Err(503));
        std::fs::write(&path, line("ops", TOKEN)).unwrap();
        assert_eq!(status().await, Ok(Admin { name: "ops".into() }));
        std::fs::write(&path, line("ops", "another token")).unwrap();
        assert_eq!(status().await, Err(401));
        let none = AdminTokens::default().admit(Some(&header)).await.unwrap_err();
        assert_eq!(none.body().status.as_u16(), 403);
    }
    /// Counts warnings.
    #[derive(Clone, Default)]
    struct Warnings(Arc<Mutex<usize>>);

    impl tracing::Subscriber for Warnings {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            *metadata.level() == tracing::Level::WARN
        }

        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }

        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

        fn event(&self, _: &tracing::Event<'_>) {
            *self.0.lock().unwrap() += 1;
        }

        fn enter(&self, _: &tracing::span::Id) {}

        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[test]
    fn requests_do_not_log_a_broken_line_again() {
        let tokens = AdminTokens::in_file(Some("there/is/no/such/file".into()));
        let warnings = Warnings::default();
        let logged = [vec![3, 4], vec![3, 4], vec![3], vec![3], Vec::new(), vec![3]].map(|lines| {
            tracing::subscriber::with_default(warnings.clone(), || tokens.clone().log_invalid(lines));
            *warnings.0.lock().unwrap()
        });
        assert_eq!(logged, [1, 1, 2, 2, 2, 3]);
    }
}
