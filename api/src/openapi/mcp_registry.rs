//! Schemas of the routes of the official MCP registry.

use utoipa::ToSchema;

/// The list of the official MCP registry.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes routes::mcp_servers")]
pub(crate) struct McpServers {
    servers: Vec<McpServer>,
    metadata: McpMetadata,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "describes routes::mcp_servers")]
pub(crate) struct McpServer {
    /// A `server.json`.
    #[schema(value_type = Object)]
    server: (),
    #[schema(value_type = Object)]
    _meta: (),
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "describes routes::mcp_servers")]
#[schema(rename_all = "camelCase")]
pub(crate) struct McpMetadata {
    /// Absent at the end.
    #[schema(nullable = false)]
    next_cursor: Option<String>,
    count: u64,
}
