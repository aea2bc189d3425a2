//! `GET /semantic-types`: what kinds of capabilities there are, as a tree with counts.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use store::{NamespaceCount, SemanticTypeCount};
use utoipa::ToSchema;

use crate::answer::{Asked, Caching};
use crate::app::App;
use crate::dashboard;
use crate::parameters::QueryPairs;
use crate::problem::Problem;

/// The types twice: as one list, and under their namespaces.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SemanticTypesAnswer {
    #[schema(value_type = Vec<crate::openapi::schemas::SemanticTypeCount>)]
    pub(crate) semantic_types: Vec<SemanticTypeCount>,
    pub(crate) total: usize,
    /// The largest first.
    pub(crate) namespaces: Vec<NamespaceBranch>,
}

/// A branch of the tree.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NamespaceBranch {
    pub(crate) namespace: String,
    /// Capabilities of any of its types, each counted once.
    pub(crate) capabilities: u64,
    pub(crate) sites: u64,
    /// Its types, the most frequent first.
    pub(crate) types: Vec<TypeOfNamespace>,
}

/// A leaf of the tree.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TypeOfNamespace {
    /// `namespace:type`, as `semantic_type=` takes it.
    pub(crate) name: String,
    pub(crate) capabilities: u64,
}

/// The semantic types in the index, the most frequent first; at most 5,000 of them.
#[utoipa::path(get, path = "/semantic-types", tag = "search",
    responses((status = 200, description = "Types with counts", body = SemanticTypesAnswer)))]
pub(crate) async fn list(
    State(app): State<App>,
    asked: Asked,
    query: QueryPairs,
) -> Result<Response, Problem> {
    query.only(&[])?;
    let answer = app.semantic_types().get(app.config().counts_kept_for, Box::pin(gather(&app))).await?;
    if asked.wants_page() {
        return asked.page(&dashboard::semantic_types::page(&answer), Caching::Record);
    }
    asked.json(&*answer, Caching::Record)
}

async fn gather(app: &App) -> Result<SemanticTypesAnswer, Problem> {
    let semantic_types = app.store().semantic_types().await?;
    let mut names: Vec<&str> = semantic_types.iter().map(|counted| counted.namespace.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let namespaces = tree(app.store().semantic_namespaces(&names).await?, &semantic_types);
    Ok(SemanticTypesAnswer { total: semantic_types.len(), semantic_types, namespaces })
}

/// Each namespace with its types, both in the order they come.
fn tree(namespaces: Vec<NamespaceCount>, types: &[SemanticTypeCount]) -> Vec<NamespaceBranch> {
    let mut leaves: BTreeMap<&str, Vec<TypeOfNamespace>> = BTreeMap::new();
    for counted in types {
        let leaf = TypeOfNamespace { name: counted.name.clone(), capabilities: counted.capabilities };
        leaves.entry(&counted.namespace).or_default().push(leaf);
    }
    let branch = |count: NamespaceCount| NamespaceBranch {
        types: leaves.remove(count.namespace.as_str()).unwrap_or_default(),
        namespace: count.namespace,
        capabilities: count.capabilities,
        sites: count.sites,
    };
    namespaces.into_iter().map(branch).collect()
}
