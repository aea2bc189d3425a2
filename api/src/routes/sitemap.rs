//! `GET /sitemap.xml`: the pages that search engines may list.

use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};

pub(crate) async fn show(Request { app, client, context, query }: Request) -> HttpResult {
    query.only(&[])?;
    let sitemap = app.sitemap().await?;
    let render = move |context: &RequestContext| {
        Ok(context.bytes(sitemap.as_bytes().to_vec(), "application/xml", Caching::Description))
    };
    app.rendered(client, &context, render).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use axum::extract::ConnectInfo;
    use axum::http::{Request, StatusCode};
    use tower::ServiceExt as _;

    use crate::config::ApiConfig;
    use crate::limits::LimitsConfig;
    use crate::state::App;
    use crate::test_app;
    use crate::timeouts::ClientTimeouts;

    /// Crawlers request the sitemap often, and building it reads the list of all sites.
    #[tokio::test]
    async fn a_sitemap_is_made_once_for_all_clients() {
        let (app, _dir) = test_app::app(LimitsConfig::default(), ClientTimeouts::default()).await;
        let config = ApiConfig { counts_kept_for: Duration::from_secs(5), ..app.config.clone() };
        let app = App::with_store(config, app.store.clone());
        let get = async |number: u8| {
            let mut request =
                Request::get("/sitemap.xml").header("host", "localhost").body(Body::empty()).unwrap();
            request
                .extensions_mut()
                .insert(ConnectInfo(std::net::SocketAddr::from(([192, 0, 2, number], 4711))));
            crate::router::router(&app).oneshot(request).await.unwrap().status()
        };
        assert_eq!(get(1).await, StatusCode::OK);
        let permits = [8, 9].map(|number| std::net::IpAddr::from([192, 0, 2, number]));
        let _held = [
            app.site_lists.acquire(permits[0]).await.unwrap(),
            app.site_lists.acquire(permits[1]).await.unwrap(),
        ];
        assert_eq!(get(2).await, StatusCode::OK, "while other clients hold all list permits");
    }

    /// A sitemap without its capabilities would be cached for minutes.
    #[tokio::test]
    async fn returns_503_when_the_capabilities_of_a_sitemap_cannot_be_listed() {
        let (app, _dir) = test_app::app(LimitsConfig::default(), ClientTimeouts::default()).await;
        let held = test_app::hold_all_searches(&app).await;
        let refused = app.sitemap().await.unwrap_err();
        assert_eq!(refused.body().status, StatusCode::SERVICE_UNAVAILABLE);
        held.release().await;
        assert!(app.sitemap().await.is_ok());
    }
}
