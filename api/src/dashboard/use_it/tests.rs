//! Requests, tools and clients for declared capabilities.

use super::*;
use manifest::ManifestUrl;
use serde_json::json;

fn manifest_of(capability: &Value) -> Manifest {
    let mut whole = json!({"id": "caaaaaaaaaaaaaaaa", "key": "k", "native_id": "book_seat", "name": "Book seat", "kind": "action"});
    whole.as_object_mut().unwrap().extend(capability.as_object().unwrap().clone());
    let url = ManifestUrl::parse("https://skyhop.example/agent.json").unwrap();
    serde_json::from_value(json!({
        "id": manifest::ManifestId::of(&url), "url": url, "origin": url.origin(), "discovery": "root",
        "content_hash": manifest::ContentHash::of(b"x"),
        "detection": {"format": "awp", "strength": "strong", "evidence": []},
        "auth": [
            {"scheme": "api_key", "in": "query", "name": "key"},
            {"scheme": "oauth2", "token_url": "https://skyhop.example/token", "docs_url": "javascript:alert(1)"},
        ],
        "capabilities": [whole],
    }))
    .unwrap()
}

fn booking(scheme: &str) -> Manifest {
    manifest_of(&json!({
        "invocation": {"protocol": "http", "method": "POST", "url_template": "https://skyhop.example/v1/{flight}/seats?v=2"},
        "parameters": {"type": "object", "required": ["flight", "day", "passenger", "trace", "lang"], "properties": {
            "flight": {"type": "string", "x-in": "path", "description": "For example SK412"},
            "day": {"type": "string", "format": "date", "x-in": "body"},
            "passenger": {"$ref": "#/$defs/person", "x-in": "body"},
            "meal": {"type": "string", "x-in": "body"},
            "lang": {"type": "string", "enum": ["en", "de"], "x-in": "query"},
            "trace": {"type": "string", "default": "it's", "x-in": "header"}},
            "$defs": {"person": {"type": "object", "properties": {"name": {"type": "string"}, "adult": {"type": "boolean"}}}}},
        "auth": {"required": "yes", "schemes": [scheme]},
        "safety": {"class": "irreversible", "source": "declared", "confirmation": "required"},
    }))
}

/// The texts of a call in curl, Python and TypeScript.
fn written(manifest: &Manifest, typed: &str) -> [String; 3] {
    let capability = &manifest.capabilities[0];
    let rows = capability.parameters.as_ref().map(schema::rows).unwrap_or_default();
    let parameters = capability.parameters.as_ref().map(tool_export::inlined);
    let given = given(&rows, parameters.as_ref(), &QueryPairs::parse(typed).unwrap());
    let call = Call::of(manifest, capability, &rows, parameters.as_ref(), &given).unwrap();
    [snippets::curl(&call), snippets::python(&call), snippets::typescript(&call)]
}

#[test]
fn request_puts_each_example_where_it_is_declared() {
    insta::assert_snapshot!(written(&booking("oauth2"), "").join("\n\n"));
}

#[test]
fn typed_values_replace_examples_and_are_quoted() {
    let [curl, python, typescript] = written(
        &booking("api_key"),
        "v.flight=a%2Fb&v.meal=%27%3B+rm+-rf+%2F&v.passenger=%7B%22name%22%3A%22Ada%22%7D&other=1",
    );
    assert!(curl.contains("/v1/a%2Fb/seats?v=2&lang=en&key=\"\"$API_KEY\""), "{curl}");
    assert!(curl.contains(r#""meal": "'\''; rm -rf /""#) && curl.contains(r#""name": "Ada""#), "{curl}");
    assert!(python.contains("params={\"key\": os.environ[\"API_KEY\"]}"), "{python}");
    assert!(typescript.contains("lang=en&key=\" + process.env.API_KEY!"), "{typescript}");
}

/// A parameter is sent at its declared location or left out, never sent at another one.
#[test]
fn cookies_and_unknown_places_are_not_put_into_the_body() {
    let place = |place: &str| json!({"type": "string", "x-in": place});
    let mut manifest = manifest_of(&json!({
        "invocation": {"protocol": "http", "method": "POST", "url": "https://skyhop.example/seats"},
        "parameters": {"type": "object", "required": ["lang", "bad", "odd", "b", "f"], "properties": {
            "lang": {"type": "string", "x-in": "cookie", "default": "en"},
            "bad": {"type": "string", "x-in": "cookie", "default": "en; admin=1"},
            "odd": place("trailer"), "b": place("body"), "f": place("formData")}},
        "auth": {"required": "yes", "schemes": ["api_key"]},
    }));
    manifest.auth =
        serde_json::from_value(json!([{"scheme": "api_key", "in": "cookie", "name": "sid"}])).unwrap();
    let [curl, python, typescript] = written(&manifest, "");
    assert!(curl.contains("-b 'lang=en; sid='\"$API_KEY\""), "{curl}");
    assert!(python.contains("cookies={\"lang\": \"en\", \"sid\": os.environ[\"API_KEY\"]}"), "{python}");
    assert!(typescript.contains("Cookie: \"lang=en; sid=\" + process.env.API_KEY!"), "{typescript}");
    manifest.auth.clear();
    manifest.capabilities[0].auth.schemes.clear();
    let without = written(&manifest, "");
    assert!(without[0].contains("-b 'lang=en'") && without[2].contains("Cookie: \"lang=en\""), "{without:?}");
    for text in [curl, python, typescript].iter().chain(&without) {
        assert!(!text.contains("admin") && !text.contains("ODD"), "{text}");
        assert!(text.contains("\"b\": \"B\"") || text.contains(r#""b":"B""#), "{text}");
        assert!(text.contains("\"F\""), "{text}");
    }
}

#[test]
fn curl_sends_one_request_for_brackets_in_an_address() {
    let manifest = manifest_of(&json!({"invocation": {"protocol": "http", "method": "GET",
        "url_template": "https://skyhop.example/seats?row=[1-9999]&{unknown}"}}));
    let [curl, ..] = written(&manifest, "");
    assert!(
        curl.starts_with("curl --globoff \"https://skyhop.example/seats?row=[1-9999]&{unknown}"),
        "{curl}"
    );
    let [curl, ..] = written(&booking("oauth2"), "");
    assert!(curl.starts_with("curl -X POST "), "{curl}");
}

/// Publishers choose the name, so no name may turn the shown request into several requests or change its URL.
#[test]
fn key_in_a_query_is_one_parameter_of_one_request() {
    for name in
        ["k[1-9999]", "{a,b}{c,d}", "x&redirect_uri=https://evil.example&k", "k#", "a\\b", "a b", "ключ"]
    {
        let mut manifest = manifest_of(&json!({
            "invocation": {"protocol": "http", "method": "GET", "url": "https://skyhop.example/seats?a=1"},
            "auth": {"required": "yes", "schemes": ["api_key"]},
        }));
        let auth = json!([{"scheme": "api_key", "in": "query", "name": name}]);
        manifest.auth = serde_json::from_value(auth).unwrap();
        let [curl, python, typescript] = written(&manifest, "");
        let address = curl.split('"').nth(1).unwrap();
        let parsed = url::Url::parse(&format!("{address}secret")).unwrap();
        let pairs: Vec<(String, String)> = parsed.query_pairs().into_owned().collect();
        assert_eq!(
            pairs,
            [("a".to_owned(), "1".to_owned()), (name.to_owned(), "secret".to_owned())],
            "{curl}"
        );
        assert_eq!(parsed.fragment(), None, "{curl}");
        assert!(!address.contains(['[', '{', '\\']), "curl sends several requests: {curl}");
        assert!(typescript.contains(&format!("fetch(\"{address}\" + ")), "{typescript}");
        assert!(python.contains(&format!("params={{{}: ", Value::from(name))), "{python}");
    }
}

#[test]
fn tools_of_mcp_servers_are_called_by_their_protocol() {
    let manifest = manifest_of(&json!({
        "invocation": {"protocol": "mcp", "url": "https://skyhop.example/mcp", "native": "book"},
        "parameters": {"properties": {"seat": {"type": "integer"}}, "required": ["seat"]},
    }));
    let [curl, python, typescript] = written(&manifest, "v.seat=14");
    assert!(curl.contains(r#""method": "tools/call""#) && curl.contains(r#""seat": 14"#), "{curl}");
    assert!(python.contains("session.call_tool(\"book\", {\n"), "{python}");
    assert!(typescript.contains("callTool({ name: \"book\""), "{typescript}");
    let address = manifest.capabilities[0].invocation.endpoint().unwrap();
    let server = mcp::DeclaredServer::of(address, &manifest.url.site(), true, None).unwrap().server;
    assert_eq!((server.name.as_str(), server.url.as_str()), ("skyhop.example", "https://skyhop.example/mcp"));
    for client in clients::of(&server) {
        let link = client.link.map(|(_, href)| href).unwrap_or_default();
        assert!(!link.contains(['<', '"', ' ']), "{link}");
        assert!(client.text.contains("https://skyhop.example/mcp"), "{}", client.text);
    }
}

/// A tool of an MCP server with one declared scheme.
fn tool_with(scheme: &Value) -> Manifest {
    let mut manifest = manifest_of(&json!({
        "invocation": {"protocol": "mcp", "url": "https://skyhop.example/mcp", "native": "book"},
        "auth": {"required": "yes", "schemes": [scheme["scheme"]]},
    }));
    manifest.auth = serde_json::from_value(json!([scheme])).unwrap();
    manifest
}

#[test]
fn tools_of_mcp_servers_are_called_with_the_declared_secret() {
    for (scheme, [curl, python, typescript]) in [
        (
            json!({"scheme": "api_key", "in": "header", "name": "X-Sky"}),
            [
                r#"-H 'X-Sky: '"$API_KEY""#,
                r#"("https://skyhop.example/mcp", headers={"X-Sky": os.environ["API_KEY"]})"#,
                r#"headers: { "X-Sky": process.env.API_KEY! }"#,
            ],
        ),
        (
            json!({"scheme": "api_key", "in": "query", "name": "key"}),
            [
                r#"https://skyhop.example/mcp?key=""$API_KEY""#,
                r#"("https://skyhop.example/mcp?key=" + os.environ["API_KEY"])"#,
                r#"new URL("https://skyhop.example/mcp?key=" + process.env.API_KEY!)"#,
            ],
        ),
        (
            json!({"scheme": "api_key", "in": "cookie", "name": "sid"}),
            [
                r#"-b 'sid='"$API_KEY""#,
                r#"headers={"Cookie": "sid=" + os.environ["API_KEY"]}"#,
                r#"headers: { Cookie: "sid=" + process.env.API_KEY! }"#,
            ],
        ),
        (
            json!({"scheme": "bearer"}),
            [
                r#"-H "Authorization: Bearer $TOKEN""#,
                r#"headers={"Authorization": "Bearer " + os.environ["TOKEN"]}"#,
                "headers: { Authorization: `Bearer ${process.env.TOKEN}` }",
            ],
        ),
    ] {
        let texts = written(&tool_with(&scheme), "");
        assert!(texts[0].contains(curl), "{scheme}: {}", texts[0]);
        assert!(texts[1].contains(python), "{scheme}: {}", texts[1]);
        assert!(texts[2].contains(typescript), "{scheme}: {}", texts[2]);
        let bearer = texts.iter().filter(|text| text.contains("Bearer")).count();
        assert_eq!(bearer, if scheme["scheme"] == "bearer" { 3 } else { 0 }, "{texts:?}");
    }
}

/// The server at `address` as the page of its tool describes it.
fn server_of(manifest: &Manifest, address: &str) -> McpServer {
    let secret = credentials::secret_of_client(manifest, &manifest.capabilities[0]);
    assert_eq!(secret, credentials::secret_of_schemes(&manifest.auth), "the page of the site differs");
    mcp::DeclaredServer::of(address, &manifest.url.site(), true, secret).unwrap().server
}

#[test]
fn clients_send_the_declared_secret_of_an_mcp_server() {
    let key = json!({"scheme": "api_key", "in": "header", "name": "X-Sky"});
    let clients = clients::of(&server_of(&tool_with(&key), "https://skyhop.example/mcp"));
    let [claude, cursor, vs_code, other] = clients.try_into().ok().unwrap();
    let file = |client: &Client| serde_json::from_str::<Value>(&client.text).unwrap();
    assert_eq!(
        file(&claude),
        json!({"mcpServers": {"skyhop.example": {"type": "http", "url": "https://skyhop.example/mcp", "headers": {"X-Sky": "${API_KEY_OF_SKYHOP_EXAMPLE}"}}}})
    );
    assert!(claude.steps.contains("environment variable API_KEY_OF_SKYHOP_EXAMPLE"), "{}", claude.steps);
    let of_cursor = json!({"url": "https://skyhop.example/mcp", "headers": {"X-Sky": "${env:API_KEY_OF_SKYHOP_EXAMPLE}"}});
    assert_eq!(file(&cursor), json!({"mcpServers": {"skyhop.example": of_cursor}}));
    let link = url::Url::parse(&cursor.link.unwrap().1).unwrap();
    let config = link.query_pairs().find(|(name, _)| name == "config").unwrap().1.into_owned();
    let config = data_encoding::BASE64.decode(config.as_bytes()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&config).unwrap(), of_cursor);
    let input = json!([{"type": "promptString", "id": "api_key_of_skyhop_example", "description": "The secret of skyhop.example", "password": true}]);
    let of_code = file(&vs_code);
    assert_eq!(
        of_code["servers"]["skyhop.example"]["headers"],
        json!({"X-Sky": "${input:api_key_of_skyhop_example}"})
    );
    assert_eq!(of_code["inputs"], input);
    let (_, link) = vs_code.link.unwrap();
    let linked = percent_encoding::percent_decode_str(link.split_once('?').unwrap().1).decode_utf8().unwrap();
    let linked: Value = serde_json::from_str(&linked).unwrap();
    assert_eq!(
        (&linked["inputs"], &linked["headers"]["X-Sky"]),
        (&input, &json!("${input:api_key_of_skyhop_example}"))
    );
    assert_eq!(file(&other)["mcpServers"]["skyhop.example"]["headers"]["X-Sky"], "API_KEY_OF_SKYHOP_EXAMPLE");
}

#[test]
fn clients_get_no_secret_for_a_server_that_signs_the_person_in() {
    for scheme in [json!({"scheme": "oauth2"}), json!({"scheme": "openid"})] {
        let server = server_of(&tool_with(&scheme), "https://skyhop.example/mcp");
        for client in clients::of(&server) {
            assert!(!client.text.contains("eader") && !client.text.contains("${"), "{}", client.text);
        }
    }
}

/// Clients replace `${env:NAME}` in the address of a server by a variable of the person, so no address of a publisher may contain one.
#[test]
fn an_address_of_a_publisher_reads_no_variable_of_a_client() {
    for address in ["https://skyhop.example/mcp?x=${env:TOKEN}", "https://skyhop.example/${TOKEN}#${input:x}"]
    {
        let server = server_of(&tool_with(&json!({"scheme": "oauth2"})), address);
        for client in clients::of(&server) {
            assert!(!client.text.contains("${"), "{}", client.text);
        }
    }
}

#[test]
fn explains_why_a_call_has_no_example() {
    for (invocation, why) in [
        (json!({"protocol": "http", "method": "GET"}), "no public web address"),
        (json!({"protocol": "http", "method": "GET", "url": "javascript:alert(1)"}), "no public web address"),
        (
            json!({"protocol": "http", "method": "GET", "url": "https://10.0.0.1/x", "not_public": true}),
            "no public web address",
        ),
        (json!({"protocol": "http", "url": "https://skyhop.example/x"}), "no HTTP method"),
        // other shells than those of POSIX would run this
        (
            json!({"protocol": "http", "method": "GET'&calc&'", "url": "https://skyhop.example/x"}),
            "no HTTP method",
        ),
        (json!({"protocol": "grpc", "url": "https://skyhop.example/x"}), "gRPC"),
        (json!({"protocol": "mcp", "url": "https://skyhop.example/mcp"}), "lists what it offers"),
    ] {
        let manifest = manifest_of(&json!({"kind": "resource", "invocation": invocation}));
        let call = Call::of(&manifest, &manifest.capabilities[0], &[], None, &Map::new());
        assert!(call.unwrap_err().contains(why), "{invocation}");
    }
}

/// Anyone can make a link whose values end up in a command that a person copies.
/// The quoting of POSIX shells, cmd.exe and PowerShell differs.
#[test]
fn an_address_in_a_command_is_one_word_in_every_shell() {
    let server = |url: &str| McpServer { name: "shop.example".to_owned(), url: url.to_owned(), secret: None };
    for (path, is_command) in [
        ("mcp", true),
        ("v1/mcp-2.0_a", true),
        ("mcp?a=1&calc&", false),
        ("mcp';calc;'", false),
        ("mcp$(id)", false),
        ("mcp%50ATH%", false),
        ("mcp;id", false),
    ] {
        let url = format!("https://shop.example/{path}");
        let text = clients::of(&server(&url)).remove(0).text;
        assert_eq!(text.starts_with("claude mcp add"), is_command, "{text}");
        assert!(is_command || text.starts_with('{'), "{text}");
    }
    for path in ["a?b=1&calc&", "a';calc;'", "a$(id)`id`", "a\u{201c}b\u{2019}c", "a!b\\c^d|e"] {
        let url = format!("https://shop.example/{path}");
        let manifest =
            manifest_of(&json!({"invocation": {"protocol": "http", "method": "GET", "url_template": url}}));
        let [curl, ..] = written(&manifest, "");
        let word = curl.strip_prefix("curl ").unwrap();
        let inside = word.strip_prefix('"').and_then(|word| word.strip_suffix('"')).unwrap();
        let is_literal = |c: char| c.is_ascii_graphic() && !"\"'`$!\\^|<>".contains(c);
        assert!(inside.chars().all(is_literal), "{curl}");
    }
}

#[test]
fn no_text_to_copy_has_characters_that_a_terminal_interprets() {
    let hostile = "a\u{1b}[201~\nid\r\u{9b}31m\u{202e}\u{7f}\u{feff}";
    let place = |place: &str| json!({"type": "string", "x-in": place, "default": hostile});
    let of_http = json!({
        "name": hostile, "description": hostile, "native_id": hostile,
        "invocation": {"protocol": "http", "method": "POST", "url_template": format!("https://skyhop.example/{{a}}/{hostile}")},
        "parameters": {"type": "object", "required": ["a", "b", "X-Q", "d", hostile], "properties": {
            "a": place("path"), "b": place("query"), "X-Q": place("header"), "d": place("body"), hostile: place("header")}},
        "auth": {"required": "yes", "schemes": ["api_key"]},
    });
    let of_mcp = json!({
        "invocation": {"protocol": "mcp", "url": format!("https://skyhop.example/{hostile}"), "native": hostile},
        "parameters": {"properties": {hostile: {"type": "string", "default": hostile}}, "required": [hostile]},
    });
    let of_a2a = json!({
        "examples": [hostile], "invocation": {"protocol": "a2a", "method": "POST", "url": format!("https://skyhop.example/{hostile}")},
    });
    let typed = "v.X-Q=%1b%5B201~%0aid%0d%c2%9b31m&v.a=%1b";
    for (capability, place) in [
        (&of_http, "header"),
        (&of_http, "cookie"),
        (&of_http, "query"),
        (&of_mcp, "header"),
        (&of_a2a, "header"),
    ] {
        let mut manifest = manifest_of(capability);
        let name = format!("X-Key: 1\n{hostile}");
        manifest.auth =
            serde_json::from_value(json!([{"scheme": "api_key", "in": place, "name": name}])).unwrap();
        for typed in ["", typed] {
            let [curl, python, typescript] = written(&manifest, typed).map(|text| copyable(&text));
            let lines = [
                // a quoted text must not go over a line: a terminal runs the next one
                curl.lines().filter(|line| line.trim_start().starts_with("id")).count(),
                python.lines().filter(|line| line.trim_start().starts_with("id")).count(),
            ];
            assert_eq!(lines, [0, 0], "{curl}\n{python}");
            for text in [&curl, &python, &typescript] {
                assert!(!text.contains(|c: char| c != '\n' && settings::escape::is_unsafe(c)), "{text:?}");
            }
        }
        let mcp = McpServer {
            name: hostile.to_owned(),
            url: "https://skyhop.example/".to_owned(),
            secret: Some(credentials::Secret::Bearer),
        };
        for text in clients::of(&mcp).into_iter().map(|client| client.text) {
            assert!(!text.contains(|c: char| c != '\n' && settings::escape::is_unsafe(c)), "{text:?}");
        }
    }
}

/// With a thousand occurrences of a variable in a URL and examples of 60 KB, a text that no tab can show is not built.
#[test]
fn requests_that_no_tab_shows_are_not_built() {
    let long = "x".repeat(60_000);
    let many = "{a}".repeat(1_000);
    for (url, place, example) in [
        (format!("https://skyhop.example/{many}"), "path", "x".repeat(100)),
        (format!("https://skyhop.example/{many}"), "path", long.clone()),
        ("https://skyhop.example/".to_owned(), "query", long.clone()),
        ("https://skyhop.example/".to_owned(), "body", long.clone()),
        ("https://skyhop.example/".to_owned(), "header", long),
    ] {
        let manifest = manifest_of(&json!({
            "invocation": {"protocol": "http", "method": "POST", "url": url},
            "parameters": {"properties": {"a": {"type": "string", "x-in": place, "example": example}}, "required": ["a"]},
        }));
        let capability = &manifest.capabilities[0];
        let rows = schema::rows(capability.parameters.as_ref().unwrap());
        let mut call = None;
        let spent = allocation_counter::measure(|| {
            call = Some(Call::of(&manifest, capability, &rows, capability.parameters.as_ref(), &Map::new()));
        });
        assert_eq!(call.unwrap().unwrap_err(), call::TOO_LONG, "{place}");
        assert!(spent.bytes_max < 2 * 1024 * 1024, "{place}: {} bytes", spent.bytes_max);
    }
}

#[test]
fn members_of_an_object_have_fields() {
    let schema = json!({"type": "object", "required": ["passenger"], "properties": {
        "note": {"type": "object"},
        "passenger": {"type": "object", "required": ["last"], "properties": {
            "age": {"type": "integer"}, "first": {"type": "string"}, "last": {"type": "string"}}},
    }});
    let rows = schema::rows(&schema);
    let typed = QueryPairs::parse("v.passenger.age=30&v.passenger.first=Ada").unwrap();
    let (fields, covered) = fields(&rows, Some(&schema), &typed);
    let shown: Vec<(&str, bool, bool)> =
        fields.iter().map(|field| (field.label.as_str(), field.required, field.is_json)).collect();
    let expected = [
        ("passenger.last", true, false),
        ("passenger.age", false, false),
        ("passenger.first", false, false),
        ("note", false, true),
    ];
    assert_eq!((shown.as_slice(), covered), (&expected[..], 2));
    let values = given(&rows, Some(&schema), &typed);
    assert_eq!(Value::from(values), json!({"passenger": {"age": 30, "first": "Ada", "last": "LAST"}}));
    assert!(given(&rows, Some(&schema), &QueryPairs::parse("v.x=1").unwrap()).is_empty());
    let whole = QueryPairs::parse("v.note=%7B%22a%22%3A1%7D").unwrap();
    assert_eq!(Value::from(given(&rows, Some(&schema), &whole)), json!({"note": {"a": 1}}));
}

#[test]
fn says_which_parameters_have_no_field() {
    let rows = |count: usize| {
        let properties: Map<String, Value> =
            (0..count).map(|at| (format!("p{at:02}"), json!({"type": "string"}))).collect();
        let required: Vec<&String> = properties.keys().take(FIELDS_MAX + 2).collect();
        schema::rows(&json!({"type": "object", "required": required, "properties": properties}))
    };
    let of = |count: usize| {
        let rows = rows(count);
        more_fields(&rows[fields(&rows, None, &QueryPairs::parse("").unwrap()).1..])
    };
    assert_eq!(of(FIELDS_MAX), None);
    assert_eq!(
        of(FIELDS_MAX + 1).unwrap(),
        "1 more parameter has no field here. The request contains the required one with its example."
    );
    assert_eq!(
        of(FIELDS_MAX + 5).unwrap(),
        "5 more parameters have no field here. The request contains the 2 required ones with their examples."
    );
}

#[test]
fn a_tab_without_a_definition_names_the_tabs_that_have_one() {
    let words = no_definition(&Refused::NotHttp { protocol: "MCP".to_owned() });
    assert_eq!(
        words,
        "It is called over MCP, which an OpenAPI document cannot express. Use the tab MCP, OpenAI or Anthropic."
    );
}

#[test]
fn fills_a_variable_in_every_position() {
    let manifest = manifest_of(&json!({
        "invocation": {"protocol": "http", "method": "GET", "url": "https://skyhop.example/{a}/{b}/{a}{?c}"},
        "parameters": {"properties": {"a": {"type": "string", "example": "x/{b}"}, "d": {"type": "integer", "example": 7}}, "required": ["a", "d"]},
    }));
    let [curl, ..] = written(&manifest, "");
    assert!(curl.contains("/x%2F%7Bb%7D/{b}/x%2F%7Bb%7D{?c}"), "{curl}");
}

#[test]
fn names_each_credential_and_where_to_obtain_it() {
    let manifest = booking("oauth2");
    let capability = &manifest.capabilities[0];
    let of = credentials::of(&manifest, capability);
    assert!(of.is_empty(), "an address that agents must not be sent to hides the scheme");
    assert!(credentials::undescribed(&manifest, capability).unwrap().contains("OAuth 2"));
    let manifest = booking("api_key");
    let of = credentials::of(&manifest, &manifest.capabilities[0]);
    assert_eq!(
        (of[0].what.as_str(), of[0].carried.as_str()),
        ("An API key from the publisher", "sent as the query parameter key")
    );
}

#[test]
fn says_whether_credentials_without_a_scheme_are_needed() {
    for (required, schemes, words) in [
        ("yes", json!([]), "The call needs credentials."),
        ("yes", json!(["unknown"]), "The call needs credentials."),
        ("no", json!([]), "No credentials are needed."),
        ("unknown", json!([]), "does not say whether"),
    ] {
        let manifest = manifest_of(&json!({"auth": {"required": required, "schemes": schemes}}));
        let said = credentials::undescribed(&manifest, &manifest.capabilities[0]).unwrap();
        assert!(said.contains(words), "{required} {schemes}: {said}");
    }
}

/// A flight does not end where it begins.
#[test]
fn two_airports_of_an_example_differ() {
    let airport = json!({"type": "string", "description": "IATA code"});
    for (from, to) in [("origin", "destination"), ("from", "to"), ("departure_airport", "arrival_airport")] {
        let manifest = manifest_of(&json!({
            "invocation": {"protocol": "http", "method": "GET", "url": "https://skyhop.example/flights"},
            "parameters": {"properties": {from: airport, to: airport}, "required": [from, to]},
        }));
        let [curl, ..] = written(&manifest, "");
        assert!(curl.contains(&format!("{from}=BER")) && curl.contains(&format!("{to}=LIS")), "{curl}");
    }
}

#[test]
fn a_tool_of_an_mcp_server_begins_with_the_way_to_connect_it() {
    let of = |invocation: Value| {
        let manifest = manifest_of(&json!({"invocation": invocation}));
        first_tab(&manifest.capabilities[0])
    };
    assert_eq!(of(json!({"protocol": "mcp", "url": "https://skyhop.example/mcp"})), "mcp");
    assert_eq!(of(json!({"protocol": "http", "method": "GET", "url": "https://skyhop.example/x"})), "curl");
}

#[test]
fn warning_names_the_effect_and_who_confirms() {
    let manifest = booking("oauth2");
    let mut capability = manifest.capabilities[0].clone();
    let words = warning(&capability).unwrap();
    assert_eq!(words, "This call cannot be undone. Ask the person for permission before each call.");
    capability.safety.class = SafetyClass::Destructive;
    capability.name = "Buy ticket".to_owned();
    assert_eq!(
        warning(&capability).unwrap(),
        "This call may delete or overwrite something. May cost money. Ask the person before each call."
    );
    capability.name = "Book seat".to_owned();
    capability.safety.class = SafetyClass::Read;
    assert_eq!(warning(&capability).unwrap(), "Ask the person for permission before each call.");
    capability.safety.confirmation = Confirmation::None;
    assert_eq!(warning(&capability), None);
}
