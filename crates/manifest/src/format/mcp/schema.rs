//! Recognises the `$schema` URIs of MCP server descriptions, in all published revisions.

/// Host of the published schemas.
const HOST: &str = "modelcontextprotocol.io/";

/// Whether a URI identifies a schema of server cards. Drafts of SEP-2127 had two schemas in the folder of a version;
/// `v1/server.schema.json` is the one for a card with `packages`, which the registry reads.
pub(super) fn is_of_cards(schema: &str, has_packages: bool) -> bool {
    let (folder, file) = parts(schema);
    match file {
        "server-card.schema.json" => true,
        "server.schema.json" => is_version(folder) && !has_packages,
        "server-card.json" => schema.contains(HOST),
        _ => schema.contains(HOST) && matches!(folder, "server-card" | "mcp-server-card"),
    }
}

/// Whether a URI identifies a schema of the registry's server.json.
pub(super) fn is_of_registry(schema: &str, has_packages: bool) -> bool {
    let (folder, file) = parts(schema);
    match file {
        "server.schema.json" => !is_version(folder) || has_packages,
        "server.json" => schema.contains(HOST),
        _ => false,
    }
}

/// Whether a URI identifies a dated schema of the registry, or its draft. Older hosts and file names are also accepted:
/// `https://modelcontextprotocol.io/schemas/draft/2025-07-09/server.json`.
pub(super) fn is_dated(schema: &str) -> bool {
    let (folder, file) = parts(schema);
    let is_date = folder.len() == 10
        && folder
            .bytes()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() });
    let is_known = file == "server.schema.json" || file == "server.json" && schema.contains(HOST);
    is_known && (is_date || folder == "draft") && schema.starts_with("https://")
}

/// The last folder of a URI and the file in it.
fn parts(schema: &str) -> (&str, &str) {
    let schema = schema.trim_end_matches('#');
    let mut parts = schema.rsplit('/');
    let file = parts.next().unwrap_or_default();
    (parts.next().unwrap_or_default(), file)
}

/// Whether a folder is a version such as `v1`. Cards have numbered versions, the registry has dated ones.
fn is_version(folder: &str) -> bool {
    folder
        .strip_prefix('v')
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_card_schemas_from_registry_schemas() {
        for (schema, card, entry, dated) in [
            ("https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json", true, false, false),
            (
                "https://static.modelcontextprotocol.io/schemas/2025-11-25/server-card.schema.json",
                true,
                false,
                false,
            ),
            ("https://modelcontextprotocol.io/schemas/server-card.json", true, false, false),
            ("https://modelcontextprotocol.io/schemas/server-card/v1.json", true, false, false),
            ("https://static.modelcontextprotocol.io/schemas/mcp-server-card/v1.json", true, false, false),
            ("https://static.modelcontextprotocol.io/schemas/v1/server.schema.json", true, false, false),
            ("https://static.modelcontextprotocol.io/schemas/v12/server.schema.json#", true, false, false),
            (
                "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
                false,
                true,
                true,
            ),
            ("https://static.modelcontextprotocol.io/schemas/draft/server.schema.json", false, true, true),
            ("https://static.modelcontextprotocol.io/schemas/latest/server.schema.json", false, true, false),
            ("https://modelcontextprotocol.io/schemas/draft/2025-07-09/server.json", false, true, true),
            ("https://modelcontextprotocol.io/schemas/server.json", false, true, false),
            ("https://shop.example/schemas/2025-07-09/server.json", false, false, false),
            ("https://modelcontextprotocol.io/schema/tools.json", false, false, false),
        ] {
            let found = (is_of_cards(schema, false), is_of_registry(schema, false), is_dated(schema));
            assert_eq!(found, (card, entry, dated), "{schema}");
        }
        let superset = "https://static.modelcontextprotocol.io/schemas/v1/server.schema.json";
        assert!(is_of_registry(superset, true) && !is_of_cards(superset, true));
    }
}
