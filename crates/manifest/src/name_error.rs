//! Why a name was refused.

/// Why a name was refused. The text states the problem and the fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("\"{0}\" is not a host name: write it like example.org")]
    Host(String),
    #[error(
        "\"{0}\" is not a host name: \"{1}\" begins or ends with a hyphen, which no part of a name may (RFC 5891)"
    )]
    Hyphen(String, String),
    #[error("\"{0}\" has {1}")]
    Control(String, &'static str),
    #[error("\"{0}\" is an IP address: agentdex visits names only")]
    IpLiteral(String),
    #[error("\"{0}\" is a public suffix, not a site: write a name below it")]
    PublicSuffix(String),
    #[error(
        "\"{0}\" is a name of private networks ({1}), visited as a seed under --allow-addresses alone: write a name of the \
         public web, like example.org"
    )]
    PrivateName(String, &'static str),
    #[error("\"{0}\" names no web site: {1}; write a name of the public web, like example.org")]
    NoSite(String, &'static str),
    #[error("\"{0}\" names port {1}: only port 443 is visited, so leave the port out")]
    Port(String, u16),
    #[error("\"{0}\" is not a URL: {1}")]
    Url(String, String),
    #[error("\"{0}\" is not https: only https:// addresses are visited")]
    Scheme(String),
    #[error("\"{0}\" carries a user name or password: remove it")]
    UserInfo(String),
    #[error("\"{0}\" is not an id of this kind")]
    Id(String),
}

/// Maximum number of characters of a written text that an error quotes.
const QUOTED_CHARS_MAX: usize = 80;

impl NameError {
    /// Makes the error quote what a person typed, if the input was completed before parsing (`http://x` to `https://x`). A part of the
    /// input is quoted unchanged.
    #[must_use]
    pub fn quoting(mut self, written: &str) -> Self {
        // the escaped text shows the character, which the input does not
        if matches!(self, Self::Control(..)) {
            return self;
        }
        let (Self::Host(quoted)
        | Self::Hyphen(quoted, _)
        | Self::Control(quoted, _)
        | Self::IpLiteral(quoted)
        | Self::PublicSuffix(quoted)
        | Self::PrivateName(quoted, _)
        | Self::NoSite(quoted, _)
        | Self::Port(quoted, _)
        | Self::Url(quoted, _)
        | Self::Scheme(quoted)
        | Self::UserInfo(quoted)
        | Self::Id(quoted)) = &mut self;
        if !written.contains(quoted.trim_end_matches('…')) {
            let is_cut = written.chars().nth(QUOTED_CHARS_MAX).is_some();
            *quoted = written.chars().take(QUOTED_CHARS_MAX).chain(is_cut.then_some('…')).collect();
        }
        self
    }
}

/// Refuses control characters inside a name, because the URL parser removes tabs and line ends: `a.example<tab>x` would become another
/// name.
pub(crate) fn reject_control_characters(text: &str) -> Result<(), NameError> {
    let what = match text.trim().chars().find(|letter| letter.is_control()) {
        None => return Ok(()),
        Some('\t') => "a tab in it: write one name a line",
        Some('\0') => "a NUL character in it, as a text in UTF-16 has: save it as UTF-8",
        Some(_) => "a control character in it: remove it",
    };
    let quoted: String = text.trim().chars().take(QUOTED_CHARS_MAX).flat_map(char::escape_debug).collect();
    Err(NameError::Control(quoted, what))
}
