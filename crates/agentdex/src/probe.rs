//! `agentdex probe`: checks whether an API answers, for health checks in images without another HTTP client.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use crawler::cli::UsageError;

/// Timeout of the health check.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of bytes read from the response, enough for the status line.
const RESPONSE_BYTES_MAX: u64 = 1024;

/// Check an API of agentdex by HTTP; exit with 0 if it answers 200
#[derive(Debug, clap::Args)]
pub(crate) struct ProbeArgs {
    /// Such as 127.0.0.1:8080/readyz, with or without http://
    #[arg(value_name = "ADDRESS:PORT[/PATH]", default_value = "127.0.0.1:8080/healthz")]
    target: String,
}

pub(crate) fn run(args: &ProbeArgs) -> anyhow::Result<()> {
    let (authority, path) = target(&args.target)?;
    let status = request_status(&authority, path).with_context(|| format!("{authority} does not answer"))?;
    ensure!(status == "200", "{authority}/{path} answers {status}");
    Ok(())
}

/// The authority and the path.
fn target(typed: &str) -> Result<(String, &str), UsageError> {
    let (rest, port) = match typed.split_once("://") {
        None => (typed, ""),
        Some(("http", rest)) => (rest, ":80"),
        Some((scheme, rest)) => {
            return Err(UsageError(format!(
                "{scheme}:// is not supported: the API serves plain HTTP, and a proxy in front of it is not checked; use \
                 http:// and the address of --listen instead of {rest}"
            )));
        }
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, "healthz"));
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if !has_port && port.is_empty() {
        return Err(UsageError(format!("{typed} has no port: write it like 127.0.0.1:8080")));
    }
    Ok((if has_port { authority.to_owned() } else { format!("{authority}{port}") }, path))
}

fn request_status(authority: &str, path: &str) -> anyhow::Result<String> {
    let address = authority.to_socket_addrs()?.next().context("the name has no address")?;
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    // a single write, so that a single packet is sent
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    stream.take(RESPONSE_BYTES_MAX).read_to_end(&mut response)?;
    let response = String::from_utf8_lossy(&response);
    match response.strip_prefix("HTTP/1.").and_then(|rest| rest.split_whitespace().nth(1)) {
        Some(status) => Ok(status.to_owned()),
        None => bail!("the response is not HTTP"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn accepts_an_address_with_a_scheme() {
        let read = |typed| target(typed).map(|(authority, path)| format!("{authority} {path}"));
        for (typed, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080 healthz"),
            ("http://127.0.0.1:8080/readyz", "127.0.0.1:8080 readyz"),
            ("http://agentdex.example", "agentdex.example:80 healthz"),
        ] {
            assert_eq!(read(typed).unwrap(), expected);
        }
        let refused = read("https://agentdex.example/").unwrap_err().to_string();
        assert!(refused.starts_with("https:// is not supported") && refused.contains("http://"), "{refused}");
    }

    fn probed(scheme: &str, response: &'static [u8]) -> anyhow::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = format!("{scheme}{}/readyz", listener.local_addr().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 512];
                let read = stream.read(&mut request).unwrap();
                assert!(request[..read].starts_with(b"GET /readyz HTTP/1.1\r\n"));
                stream.write_all(response).unwrap();
            });
            run(&ProbeArgs { target })
        })
    }

    #[test]
    fn only_200_is_healthy() {
        probed("http://", b"HTTP/1.1 200 OK\r\n\r\n{}").unwrap();
        let error = probed("", b"HTTP/1.1 503 Service Unavailable\r\n\r\n").unwrap_err().to_string();
        assert!(error.ends_with("answers 503"), "{error}");
        assert!(probed("", b"SSH-2.0\r\n").is_err());
    }

    #[test]
    fn reports_an_address_that_does_not_answer() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = run(&ProbeArgs { target: free.to_string() }).unwrap_err().to_string();
        assert_eq!(error, format!("{free} does not answer"));
    }
}
