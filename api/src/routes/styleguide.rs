//! `GET /styleguide`: the parts of the design system, if the operator turned the page on.

use crate::dashboard;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};

pub(crate) async fn show(Request { app, client, context, query }: Request) -> HttpResult {
    query.known(&context, &[])?;
    if !app.config.styleguide {
        return Err(Problem::not_found(
            "the style guide is disabled; the operator can enable it with styleguide = true in the table [api]",
        ));
    }
    let here = app.page_context();
    let render =
        move |context: &RequestContext| context.page(&dashboard::styleguide::page(&here), Caching::Record);
    app.rendered(client, &context, render).await
}
