//! The semantic types of all capabilities, as a tree with counts.

use std::collections::BTreeMap;

use serde::Serialize;
use store::{NamespaceCount, SemanticTypeCount, Store};
use utoipa::ToSchema;

use crate::problem::Problem;

/// The types, both as one list and grouped by namespace.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SemanticTypesAnswer {
    #[schema(value_type = Vec<crate::openapi::schemas::SemanticTypeCount>)]
    pub(crate) semantic_types: Vec<SemanticTypeCount>,
    pub(crate) total: usize,
    /// Namespaces, the largest first.
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
    /// `namespace:type`, the format of the parameter `semantic_type`.
    pub(crate) name: String,
    pub(crate) capabilities: u64,
}

/// Reads the types with their counts.
pub(crate) async fn semantic_types(store: &Store) -> Result<SemanticTypesAnswer, Problem> {
    let semantic_types = store.semantic_types().await?;
    let namespaces = tree(store.semantic_namespaces(&semantic_types).await?, &semantic_types);
    Ok(SemanticTypesAnswer { total: semantic_types.len(), semantic_types, namespaces })
}

/// Groups the types by namespace; keeps the order of namespaces and types.
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
