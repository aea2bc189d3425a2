//! `submit_site`: requests a visit, under the same limits as `POST /sites`.

use serde::Deserialize;
use serde_json::{Value, json};

use manifest::Host;

use super::{Definition, object};
use crate::answers::submit::RequestedBy;
use crate::client::Client;
use crate::problem::Problem;
use crate::state::App;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    domain: String,
}

pub(super) fn definition() -> Definition {
    Definition {
        title: "Submit a site",
        description: "Asks the crawler to visit a domain. The visit is queued; robots.txt and the site's own pace are obeyed. Limited per \
                      client, and to one submission of a site every ten minutes.",
        semantic_type: "registry:site-submit",
        examples: &["crawl my site", "add this domain to the index"],
        input: object(
            &["domain"],
            &json!({"domain": {"type": "string", "maxLength": 253, "description": "The domain to visit, like skyhop.example."}}),
        ),
        output: json!({"type": "object", "required": ["site", "status_url"], "properties": {
            "site": {"type": "string"}, "outcome": {"type": "string", "enum": ["added", "known"]}, "message": {"type": "string"},
            "status_url": {"type": "string", "description": "Where the visit can be followed."}}}),
    }
}

pub(super) async fn call(app: &App, client: Client, arguments: Arguments) -> Result<Value, Problem> {
    let host = Host::parse(arguments.domain.trim())
        .map_err(|error| Problem::bad_request(error.to_string()).with_parameter("domain"))?;
    let (answer, _) = app.submissions(client).submit(host, None, RequestedBy::Anybody).await?;
    serde_json::to_value(answer).map_err(|error| Problem::internal(&error))
}
