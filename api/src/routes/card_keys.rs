//! `GET /.well-known/jwks.json`: the public key that verifies the signature of this server's A2A card.

use axum::extract::State;

use crate::problem::Problem;
use crate::response::{Caching, HttpResult, RequestContext};
use crate::state::App;

const CONTENT_TYPE: &str = "application/jwk-set+json";

pub(crate) async fn show(State(app): State<App>, context: RequestContext) -> HttpResult {
    let Some(signer) = &app.config.card_signer else {
        return Err(Problem::not_found("this server does not sign its card"));
    };
    let keys = serde_json::to_vec(&signer.key_set()).map_err(|error| Problem::internal(&error))?;
    Ok(context.bytes(keys, CONTENT_TYPE, Caching::Description))
}
