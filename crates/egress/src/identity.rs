//! The identity of the crawler: the User-Agent `agentdex/0.1.0 (+https://…; mailto:…)` and the From header.
//!
//! By default, it contains the page of the project. The operator's own page and address replace it, so that a complaint reaches the person
//! who can act on it.

use http::HeaderValue;
use policy::robots::PRODUCT_TOKEN;
use url::Url;

/// The version in the User-Agent.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
const PROJECT_URL: &str = env!("CARGO_PKG_REPOSITORY");
/// Domains that are reserved for examples (RFC 2606), as the documents use them. Mail to them reaches no operator.
const EXAMPLE_DOMAINS: [&str; 3] = ["example.org", "example.com", "example.net"];

/// Contact of the operator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contact {
    pub url: Option<Url>,
    pub email: Option<String>,
}

/// An invalid contact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContactError {
    #[error("\"{0}\" is not a web address: write it like https://example.org/crawler")]
    Url(String),
    #[error("\"{0}\" is not an e-mail address: write it like crawler@example.org")]
    Email(String),
}

impl Contact {
    /// Checks the contact.
    pub fn parse(url: Option<&str>, email: Option<&str>) -> Result<Self, ContactError> {
        let url =
            url.map(|text| parse_url(text).ok_or_else(|| ContactError::Url(text.to_owned()))).transpose()?;
        let email =
            email
                .map(|text| {
                    if is_email(text) {
                        Ok(text.to_owned())
                    } else {
                        Err(ContactError::Email(text.to_owned()))
                    }
                })
                .transpose()?;
        Ok(Self { url, email })
    }

    /// The part of the contact that was copied from an example, if there is one.
    pub fn copied_example(&self) -> Option<&str> {
        let email = self.email.as_deref();
        let is_example = |host: &str| EXAMPLE_DOMAINS.iter().any(|domain| host.eq_ignore_ascii_case(domain));
        let of_email = email.filter(|email| email.rsplit_once('@').is_some_and(|(_, host)| is_example(host)));
        let of_url =
            || self.url.as_ref().filter(|url| url.host_str().is_some_and(is_example)).map(Url::as_str);
        of_email.or_else(of_url)
    }

    /// Whether the operator gave no contact, so that only the project can be contacted.
    pub const fn is_missing(&self) -> bool {
        self.url.is_none() && self.email.is_none()
    }
}

fn parse_url(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host())
}

fn is_email(text: &str) -> bool {
    let printable = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"()<>,;:\\\"[]".contains(&byte));
    printable
        && text
            .split_once('@')
            .is_some_and(|(user, host)| !user.is_empty() && host.contains('.') && !host.contains('@'))
}

/// The identifying headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrawlerIdentity {
    pub user_agent: HeaderValue,
    pub from: Option<HeaderValue>,
}

impl CrawlerIdentity {
    /// The identity of an operator.
    pub fn new(contact: &Contact) -> Self {
        let page = contact.url.as_ref().map_or(PROJECT_URL, Url::as_str);
        let text = match &contact.email {
            Some(email) => format!("{PRODUCT_TOKEN}/{VERSION} (+{page}; mailto:{email})"),
            None => format!("{PRODUCT_TOKEN}/{VERSION} (+{page})"),
        };
        // a URL and a checked address are printable ASCII, so neither conversion fails
        let user_agent =
            HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(PRODUCT_TOKEN));
        let from = contact.email.as_deref().and_then(|email| HeaderValue::try_from(email).ok());
        Self { user_agent, from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_agent_names_product_version_and_contact() {
        let project = CrawlerIdentity::new(&Contact::default());
        assert_eq!(project.user_agent, format!("agentdex/{VERSION} (+{PROJECT_URL})").as_str());
        assert_eq!(project.from, None);
        let own = Contact::parse(Some("https://example.org/bot"), Some("bot@example.org")).unwrap();
        let own = CrawlerIdentity::new(&own);
        assert_eq!(
            own.user_agent,
            format!("agentdex/{VERSION} (+https://example.org/bot; mailto:bot@example.org)").as_str()
        );
        assert_eq!(own.from.unwrap(), "bot@example.org");
    }

    #[test]
    fn recognises_the_contact_of_an_example() {
        for (url, email, copied) in [
            (None, Some("you@example.org"), Some("you@example.org")),
            (Some("https://example.org/crawler"), Some("me@mine.test"), Some("https://example.org/crawler")),
            (Some("https://mine.example/crawler"), Some("me@example.org.test"), None),
            (None, None, None),
        ] {
            assert_eq!(Contact::parse(url, email).unwrap().copied_example(), copied, "{url:?} {email:?}");
        }
    }

    #[test]
    fn rejects_unusable_contacts() {
        for url in ["example.org", "ftp://example.org", ""] {
            assert!(Contact::parse(Some(url), None).is_err(), "{url}");
        }
        for email in ["bot", "@example.org", "a b@example.org", "a@b@c.org", "x@y\r\nz.org"] {
            assert!(Contact::parse(None, Some(email)).is_err(), "{email}");
        }
    }
}
