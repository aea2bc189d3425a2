//! `GET /opensearch.xml`: describes the search to browsers (`OpenSearch` 1.1), so that it can be used from the address bar.

use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::xml::escaped;

pub(crate) async fn show(Request { app, context, query, .. }: Request) -> HttpResult {
    query.only(&[])?;
    let base = escaped(&app.base_url());
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <OpenSearchDescription xmlns=\"http://a9.com/-/spec/opensearch/1.1/\">\
         <ShortName>agentdex</ShortName><Description>What AI agents can do on the web</Description>\
         <InputEncoding>UTF-8</InputEncoding><Image width=\"32\" height=\"32\" type=\"image/svg+xml\">{base}/favicon.ico</Image>\
         <Url type=\"text/html\" template=\"{base}/search?q={{searchTerms}}\"/>\
         <Url type=\"application/atom+xml\" template=\"{base}/search.atom?q={{searchTerms}}\"/>\
         </OpenSearchDescription>\n"
    );
    Ok(context.bytes(body.into_bytes(), "application/opensearchdescription+xml", Caching::Description))
}
