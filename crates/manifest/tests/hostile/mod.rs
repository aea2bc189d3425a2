//! Generates hostile documents of any size: each consists of `n` units, so that doubling `n` doubles its length.

use manifest::{Discovery, Document, Format, Manifest, ManifestUrl};

/// A class of hostile documents.
pub(crate) struct Hostile {
    pub name: &'static str,
    pub path: &'static str,
    pub make: fn(usize) -> Vec<u8>,
}

/// The maximum size of a body that is read from a path.
pub(crate) fn size_max(path: &str) -> usize {
    match path {
        OPENAPI => manifest::DOCUMENT_BYTES_MAX,
        YAML => 8 * 1_024 * 1_024,
        _ => 4 * 1_024 * 1_024,
    }
}

pub(crate) fn read(bytes: &[u8], path: &str) -> Manifest {
    read_as(bytes, path, None)
}

/// Reads a document as the given format, regardless of its content.
pub(crate) fn read_as(bytes: &[u8], path: &str, force: Option<Format>) -> Manifest {
    let url = ManifestUrl::parse(&format!("https://hostile.example{path}")).unwrap();
    manifest::read(&Document {
        bytes,
        url: &url,
        final_url: None,
        discovery: Discovery::Submitted,
        served: None,
        linked: &[],
        force,
    })
}

pub(crate) const JSON: &str = "/.well-known/agent.json";
pub(crate) const OPENAPI: &str = "/openapi.json";
pub(crate) const YAML: &str = "/openapi.yaml";
pub(crate) const AGENTS_TXT: &str = "/.well-known/agents.txt";
pub(crate) const LLMS_TXT: &str = "/llms.txt";
pub(crate) const AI_TXT: &str = "/ai.txt";

fn of(text: String) -> Vec<u8> {
    text.into_bytes()
}

fn numbered(n: usize, unit: impl Fn(usize) -> String) -> String {
    (0..n).map(unit).collect()
}

fn openapi(inside: &str) -> Vec<u8> {
    of(format!("{{\"openapi\": \"3.1.0\", \"info\": {{\"title\": \"a\", \"version\": \"1\"}}, {inside}}}"))
}

fn yaml(inside: &str) -> Vec<u8> {
    of(format!("openapi: 3.0.0\ninfo: {{title: a, version: '1'}}\n{inside}\n"))
}

/// A WoA document with one agent that takes a schema.
fn woa(schema: &str) -> String {
    format!(
        "{{\"woa_version\": \"1\", \"agents\": [{{\"id\": \"a\", \"name\": \"a\", \"inputs\": {schema}, \"outputs\": {{}}}}]}}"
    )
}

/// A document of no known format with these actions.
fn generic(actions: &str) -> Vec<u8> {
    of(format!("{{\"name\": \"a\", \"actions\": [{actions}]}}"))
}

const METHODS: &str = "\"path\": \"/a\", \"methods\": \"GET,HEAD,POST,PUT,DELETE,PATCH,OPTIONS\"";

fn words(n: usize, prefix: &str) -> String {
    (0..n).map(|at| format!("\"{prefix}{at}\"")).collect::<Vec<_>>().join(", ")
}

/// Credentials of many kinds, which share an address.
fn schemes(n: usize) -> String {
    let address = "r".repeat(10 * n);
    format!("{{\"schemes\": [{}], \"registration_url\": \"https://a.example/{address}\"}}", words(n, "s"))
}

/// `n` operations that share one part. The part is half of the document.
fn shared(n: usize, operation: &str, part: &str) -> Vec<u8> {
    let paths = numbered(n / 2, |at| format!("\"/p{at}\": {operation}, "));
    openapi(&format!("\"paths\": {{{paths}\"/end\": {{}}}}, {part}"))
}

/// Actions with long paths that differ in their last segment, and sentences that name similar calls.
fn calls_in_sentences(n: usize) -> Vec<u8> {
    let path = "/a".repeat(450);
    let actions =
        numbered(n / 40 + 1, |at| format!("{{\"name\": \"n{at}\", \"endpoint\": \"{path}/{at}\"}}, "));
    let sentences = numbered((n / 40).min(100), |at| {
        format!("\"note{at}\": \"Then GET {path}/x{at} with 'Authorization: Bearer key'.\", ")
    });
    of(format!(
        "{{{sentences}\"name\": \"a\", \"actions\": [{actions}{{\"name\": \"z\", \"endpoint\": \"/z\"}}]}}"
    ))
}

/// A hundred calls in one text, and another text behind them.
fn text_behind_calls(n: usize, unit: &str) -> Vec<u8> {
    let calls = numbered(100, |at| format!("GET /a{at} (1 "));
    of(format!(
        "{{\"name\": \"a\", \"actions\": [{{\"name\": \"z\", \"endpoint\": \"/z\"}}], \"note\": \"{calls}{}\"}}",
        unit.repeat(n)
    ))
}

/// Every class.
pub(crate) const ALL: &[Hostile] = &[
    // --- JSON ---
    Hostile { name: "nested lists", path: JSON, make: |n| of("[".repeat(n)) },
    Hostile { name: "nested objects", path: JSON, make: |n| of("{\"a\":".repeat(n)) },
    Hostile {
        name: "closed nested lists",
        path: JSON,
        make: |n| of(format!("{}{}", "[".repeat(n), "]".repeat(n))),
    },
    Hostile { name: "numbers", path: JSON, make: |n| of(format!("[0{}]", ",0".repeat(n))) },
    Hostile {
        name: "numbers as OpenAPI",
        path: OPENAPI,
        make: |n| openapi(&format!("\"paths\": {{}}, \"x\": [0{}]", ",0".repeat(n))),
    },
    Hostile {
        name: "empty lists",
        path: OPENAPI,
        make: |n| openapi(&format!("\"paths\": {{}}, \"x\": [0{}]", ",[]".repeat(n))),
    },
    Hostile {
        name: "short lists",
        path: OPENAPI,
        make: |n| openapi(&format!("\"paths\": {{}}, \"x\": [0{}]", ",[0]".repeat(n))),
    },
    Hostile {
        name: "short objects",
        path: OPENAPI,
        make: |n| openapi(&format!("\"paths\": {{}}, \"x\": [0{}]", ",{\"a\":0}".repeat(n))),
    },
    Hostile { name: "calls in sentences", path: JSON, make: calls_in_sentences },
    Hostile { name: "spaces behind calls", path: JSON, make: |n| text_behind_calls(n, "    ") },
    Hostile { name: "words behind calls", path: JSON, make: |n| text_behind_calls(n, "x402 4 ") },
    Hostile {
        name: "many names",
        path: JSON,
        make: |n| of(format!("{{{}\"z\": 1}}", numbered(n, |at| format!("\"n{at}\": 1, ")))),
    },
    Hostile {
        name: "duplicate names",
        path: JSON,
        make: |n| of(format!("{{{}\"a\": 1}}", "\"a\": 1, ".repeat(n))),
    },
    Hostile {
        name: "a long string",
        path: JSON,
        make: |n| of(format!("{{\"description\": \"{}\"}}", "long ".repeat(n))),
    },
    Hostile { name: "a long name", path: JSON, make: |n| of(format!("{{\"{}\": 1}}", "long ".repeat(n))) },
    Hostile {
        name: "long names around tools",
        path: JSON,
        make: |n| {
            of(format!("{{\"{}\": {{\"tools\": [{}{{}}]}}}}", "x".repeat(n * 4), "{\"name\": 1},".repeat(n)))
        },
    },
    Hostile {
        name: "long names around values of a secret",
        path: JSON,
        make: |n| {
            let (open, close) = (format!("{{\"{}\":", "aB".repeat(n / 116 + 1)).repeat(58), "}".repeat(58));
            let call = "{\"path\": \"/a\", \"method\": \"POST\", \"description\": \"Find rooms\"}";
            let flags = format!("[true{}]", ",true".repeat(n));
            of(format!("{{\"name\": \"a\", \"endpoints\": [{call}], \"secret\": {open}{flags}{close}}}"))
        },
    },
    Hostile {
        name: "escapes",
        path: JSON,
        make: |n| of(format!("{{\"description\": \"{}\"}}", "\\u0041\\n".repeat(n))),
    },
    Hostile {
        name: "an open string",
        path: JSON,
        make: |n| of(format!("{{\"description\": \"{}", "\\\\\\\"".repeat(n))),
    },
    Hostile {
        name: "hidden characters",
        path: JSON,
        make: |n| of(format!("{{\"description\": \"{}\"}}", "a\u{202e}\u{200b}".repeat(n))),
    },
    Hostile { name: "a long number", path: JSON, make: |n| of(format!("{{\"a\": {}}}", "1".repeat(n))) },
    Hostile { name: "a bare string", path: JSON, make: |n| of(format!("\"{}\"", "\\n".repeat(n))) },
    Hostile { name: "white space", path: JSON, make: |n| of(format!("{{\"a\"{}: 1}}", " \n".repeat(n))) },
    Hostile {
        name: "wrong in every element",
        path: JSON,
        make: |n| of(format!("{{\"awp_version\": 1, \"actions\": [{}{{}}]}}", "{\"id\": 1},".repeat(n))),
    },
    Hostile {
        name: "tools of one name",
        path: JSON,
        make: |n| of(format!("{{\"tools\": [{}{{}}]}}", "{\"name\": \"a\"},".repeat(n))),
    },
    Hostile {
        name: "tools that take each other's names",
        path: JSON,
        make: |n| {
            of(format!(
                "{{\"tools\": [{}{}{{}}]}}",
                numbered(n / 2, |at| format!("{{\"name\": \"a~{at}\"}},")),
                "{\"name\": \"a\"},".repeat(n / 2)
            ))
        },
    },
    Hostile {
        name: "unclosed links in descriptions",
        path: JSON,
        make: |n| {
            of(format!(
                "{{\"tools\": [{}{{}}]}}",
                format!("{{\"name\": \"a\", \"description\": \"{}\"}},", "[<".repeat(40)).repeat(n / 8)
            ))
        },
    },
    Hostile {
        name: "tags",
        path: JSON,
        make: |n| {
            of(format!(
                "{{\"tools\": [{{\"name\": \"a\", \"tags\": [{}\"z\"]}}]}}",
                numbered(n, |at| format!("\"t{at}\","))
            ))
        },
    },
    Hostile {
        name: "schemes and skills",
        path: JSON,
        make: |n| {
            of(format!(
                "{{\"protocolVersion\": \"0.3.0\", \"name\": \"a\", \"url\": \"https://a.example/\", \"skills\": [{}{{}}], \"capabilities\": {{}}, \"securitySchemes\": {{{}\"z\": {{}}}}, \"security\": [{}{{}}]}}",
                numbered(n / 3, |at| format!("{{\"id\": \"s{at}\"}},")),
                numbered(n / 3, |at| format!("\"k{at}\": {{\"type\": \"http\"}},")),
                numbered(n / 3, |at| format!("{{\"k{at}\": [\"s{at}\"]}},"))
            ))
        },
    },
    Hostile {
        name: "schemes and scopes of ATP",
        path: JSON,
        make: |n| {
            of(format!(
                "{{\"atp\": \"0.1\", \"auth\": {{\"schemes\": [{}{{}}]}}, \"capabilities\": [{}{{}}]}}",
                "{\"type\": \"bearer\"},".repeat(n / 2),
                numbered(n / 2, |at| format!("{{\"id\": \"c{at}\", \"requiredScopes\": [\"a\"]}},"))
            ))
        },
    },
    Hostile {
        name: "workflows and capabilities of ATP",
        path: JSON,
        make: |n| {
            of(format!(
                "{{\"atp\": \"0.1\", \"capabilities\": [{}{{}}], \"workflows\": [{}{{}}]}}",
                numbered(n / 2, |at| format!("{{\"id\": \"c{at}\"}},")),
                numbered(n / 2, |at| format!("{{\"id\": \"w{at}\", \"steps\": [\"c{at}\"]}},"))
            ))
        },
    },
    Hostile {
        name: "steps of a workflow of a long name",
        path: JSON,
        make: |n| {
            of(format!(
                "{{\"atp\": \"0.1\", \"capabilities\": [{}{{}}], \"workflows\": [{{\"id\": \"{}\", \"steps\": [{}\"z\"]}}]}}",
                numbered(n / 3, |at| format!("{{\"id\": \"c{at}\"}},")),
                "long ".repeat(n / 3),
                numbered(n / 3, |at| format!("\"c{at}\","))
            ))
        },
    },
    Hostile {
        name: "interfaces of an agent card",
        path: JSON,
        make: |n| {
            of(format!(
                "{{\"protocolVersion\": \"0.3.0\", \"name\": \"a\", \"url\": \"https://a.example/\", \"skills\": [], \"capabilities\": {{}}, \"additionalInterfaces\": [{}{{}}]}}",
                numbered(n, |at| format!(
                    "{{\"url\": \"https://a.example/{at}\", \"transport\": \"GRPC\"}},"
                ))
            ))
        },
    },
    Hostile {
        name: "required parameters",
        path: JSON,
        make: |n| {
            of(format!(
                "{{\"awp_version\": \"0.1\", \"actions\": [{{\"id\": \"a\", \"inputs\": {{{}\"z\": {{}}}}}}]}}",
                numbered(n, |at| format!("\"p{at}\": {{\"required\": true}},"))
            ))
        },
    },
    Hostile {
        name: "required names of a WoA schema",
        path: JSON,
        make: |n| {
            of(woa(&format!(
                "{{\"type\": \"object\", \"properties\": {{}}, \"required\": [{}\"z\"]}}",
                numbered(n, |at| format!("\"n{at}\", "))
            )))
        },
    },
    Hostile {
        name: "equal required names of a WoA schema",
        path: JSON,
        make: |n| of(woa(&format!("{{\"type\": \"object\", \"required\": [{}\"a\"]}}", "\"a\", ".repeat(n)))),
    },
    Hostile {
        name: "types of a WoA schema",
        path: JSON,
        make: |n| of(woa(&format!("{{\"type\": [{}\"string\"]}}", "\"string\", ".repeat(n)))),
    },
    Hostile {
        name: "schemas of a WoA schema",
        path: JSON,
        make: |n| of(woa(&format!("{{\"allOf\": [{}{{}}]}}", "{\"type\": 1}, ".repeat(n)))),
    },
    Hostile {
        name: "nested WoA schemas",
        path: JSON,
        make: |n| of(woa(&format!("{}{{}}{}", "{\"not\": ".repeat(n.min(50)), "}".repeat(n.min(50))))),
    },
    Hostile {
        name: "properties of a WoA schema",
        path: JSON,
        make: |n| {
            of(woa(&format!(
                "{{\"properties\": {{{}\"z\": {{}}}}}}",
                numbered(n, |at| format!("\"n{at}\": {{\"type\": \"string\"}}, "))
            )))
        },
    },
    Hostile {
        name: "patterns of a WoA schema",
        path: JSON,
        make: |n| {
            of(woa(&format!(
                "{{\"patternProperties\": {{{}\"z\": {{}}}}}}",
                numbered(n, |at| format!("\"(a*)*{at}\": {{}}, "))
            )))
        },
    },
    // --- OpenAPI ---
    Hostile {
        name: "operations",
        path: OPENAPI,
        make: |n| {
            openapi(&format!(
                "\"paths\": {{{}\"/end\": {{}}}}",
                numbered(n, |at| format!("\"/p{at}\": {{\"get\": {{}}}}, "))
            ))
        },
    },
    Hostile {
        name: "long paths",
        path: OPENAPI,
        make: |n| {
            openapi(&format!(
                "\"paths\": {{{}\"/end\": {{}}}}",
                numbered(n / 50, |at| format!(
                    "\"/p{at}/{}\": {{\"get\": {{}}, \"put\": {{}}, \"post\": {{}}, \"delete\": {{}}}}, ",
                    "x".repeat(1_000)
                ))
            ))
        },
    },
    Hostile {
        name: "operations of one id",
        path: OPENAPI,
        make: |n| {
            openapi(&format!(
                "\"paths\": {{{}\"/end\": {{}}}}",
                numbered(n, |at| format!("\"/p{at}\": {{\"get\": {{\"operationId\": \"a\"}}}}, "))
            ))
        },
    },
    Hostile {
        name: "a chain of references",
        path: OPENAPI,
        make: |n| {
            openapi(&format!(
                "\"paths\": {{\"/a\": {{\"$ref\": \"#/x/0\"}}}}, \"x\": [{}{{}}]",
                numbered(n, |at| format!("{{\"$ref\": \"#/x/{}\"}}, ", at + 1))
            ))
        },
    },
    Hostile {
        name: "references to nothing",
        path: OPENAPI,
        make: |n| {
            openapi(&format!(
                "\"paths\": {{{}\"/end\": {{}}}}",
                numbered(n, |at| format!("\"/p{at}\": {{\"$ref\": \"#/none/{at}\"}}, "))
            ))
        },
    },
    Hostile {
        name: "a response 402 that every operation has",
        path: OPENAPI,
        make: |n| {
            shared(
                n,
                "{\"get\": {\"responses\": {\"402\": {\"$ref\": \"#/x\"}}}}",
                &format!("\"x\": {{\"description\": \"{}\"}}", "p ".repeat(n * 8)),
            )
        },
    },
    Hostile {
        name: "headers of a response 402 that every operation has",
        path: OPENAPI,
        make: |n| {
            let header = format!("{{\"description\": \"{}\"}}, ", "p ".repeat(n.min(1_000)));
            shared(
                n,
                "{\"get\": {\"responses\": {\"402\": {\"$ref\": \"#/x\"}}}}",
                &format!(
                    "\"x\": {{\"headers\": {{{}\"z\": {{}}}}}}",
                    numbered(50, |at| format!("\"h{at}\": {header}"))
                ),
            )
        },
    },
    Hostile {
        name: "a schema that every operation takes",
        path: OPENAPI,
        make: |n| {
            shared(
                n,
                "{\"post\": {\"requestBody\": {\"$ref\": \"#/x\"}}}",
                &format!(
                    "\"x\": {{\"content\": {{\"application/json\": {{\"schema\": {{\"properties\": {{{}\"z\": {{}}}}}}}}}}}}",
                    numbered(n / 2, |at| format!("\"n{at}\": {{\"type\": \"string\"}}, "))
                ),
            )
        },
    },
    Hostile {
        name: "keywords that every operation takes",
        path: OPENAPI,
        make: |n| {
            shared(
                n,
                "{\"get\": {\"parameters\": [{\"$ref\": \"#/x\"}]}}",
                &format!(
                    "\"x\": {{\"name\": \"q\", \"in\": \"query\", \"schema\": {{{}\"z\": 1}}}}",
                    numbered(n / 2, |at| format!("\"x-{at}\": \"text\", "))
                ),
            )
        },
    },
    Hostile {
        name: "a default that every operation takes",
        path: OPENAPI,
        make: |n| {
            shared(
                n,
                "{\"get\": {\"parameters\": [{\"$ref\": \"#/x\"}]}}",
                &format!(
                    "\"x\": {{\"name\": \"q\", \"in\": \"query\", \"example\": \"{}\", \"schema\": {{\"$ref\": \"#/y\", \"default\": [{}0]}}}}, \"y\": {{}}",
                    "text ".repeat(n / 2),
                    "0, ".repeat(n / 2)
                ),
            )
        },
    },
    Hostile {
        name: "a Swagger parameter that every operation takes",
        path: OPENAPI,
        make: |n| {
            shared(
                n,
                "{\"get\": {\"parameters\": [{\"$ref\": \"#/x\"}]}}",
                &format!(
                    "\"x\": {{\"name\": \"q\", \"in\": \"query\", \"enum\": [{}0]}}",
                    "\"some text\", ".repeat(n / 2)
                ),
            )
        },
    },
    Hostile {
        name: "a path item that every path is",
        path: OPENAPI,
        make: |n| {
            shared(
                n,
                "{\"$ref\": \"#/x\"}",
                &format!(
                    "\"x\": {{\"get\": {{\"tags\": [{}0], \"responses\": {{{}\"200\": {{}}}}}}}}",
                    "\"a\", ".repeat(n / 4),
                    numbered(n / 4, |at| format!("\"2{at}x\": {{}}, "))
                ),
            )
        },
    },
    Hostile {
        name: "media types of a body that every operation takes",
        path: OPENAPI,
        make: |n| {
            shared(
                n,
                "{\"post\": {\"requestBody\": {\"$ref\": \"#/x\"}}}",
                &format!(
                    "\"x\": {{\"content\": {{{}\"z/z\": {{}}}}}}",
                    numbered(n / 2, |at| format!("\"t/{at}\": {{}}, "))
                ),
            )
        },
    },
    Hostile {
        name: "servers of every operation",
        path: OPENAPI,
        make: |n| {
            shared(n, "{\"get\": {}}", &format!("\"servers\": [{}{{}}]", "{\"url\": \"/a\"}, ".repeat(n / 2)))
        },
    },
    Hostile {
        name: "security of every operation",
        path: OPENAPI,
        make: |n| {
            shared(
                n,
                "{\"get\": {}}",
                &format!(
                    "\"security\": [{}{{}}]",
                    numbered(n / 2, |at| format!("{{\"s{at}\": [\"a{at}\"]}}, "))
                ),
            )
        },
    },
    Hostile {
        name: "variables that name each other",
        path: OPENAPI,
        make: |n| {
            openapi(&format!(
                "\"paths\": {{\"/a\": {{\"get\": {{}}}}}}, \"servers\": [{{\"url\": \"https://{{v0}}/\", \"variables\": {{{}\"z\": {{}}}}}}]",
                numbered(n, |at| format!("\"v{at}\": {{\"default\": \"{{v{}}}{{v{}}}\"}}, ", at + 1, at + 1))
            ))
        },
    },
    Hostile {
        name: "schemas that double",
        path: OPENAPI,
        make: |n| {
            openapi(&format!(
                "\"paths\": {{\"/a\": {{\"post\": {{\"requestBody\": {{\"content\": {{\"a/b\": {{\"schema\": {{\"$ref\": \"#/x/s0\"}}}}}}}}}}}}}}, \"x\": {{{}\"z\": {{}}}}",
                numbered(n, |at| format!(
                    "\"s{at}\": {{\"allOf\": [{{\"$ref\": \"#/x/s{}\"}}, {{\"$ref\": \"#/x/s{}\"}}]}}, ",
                    at + 1,
                    at + 1
                ))
            ))
        },
    },
    Hostile {
        name: "schemas within themselves",
        path: OPENAPI,
        make: |n| {
            openapi(&format!(
                "\"paths\": {{\"/a\": {{\"post\": {{\"requestBody\": {{\"content\": {{\"a/b\": {{\"schema\": {{\"$ref\": \"#/x/s0\"}}}}}}}}}}}}}}, \"x\": {{\"s0\": {{\"properties\": {{{}\"z\": {{}}}}}}, {}\"z\": {{}}}}",
                numbered(n / 2, |at| format!("\"n{at}\": {{\"$ref\": \"#/x/s{}\"}}, ", at + 1)),
                numbered(n / 2, |at| format!(
                    "\"s{}\": {{\"items\": {{\"$ref\": \"#/x/s{}\"}}}}, ",
                    at + 1,
                    at + 1
                ))
            ))
        },
    },
    Hostile {
        name: "security schemes",
        path: OPENAPI,
        make: |n| {
            openapi(&format!(
                "\"paths\": {{}}, \"components\": {{\"securitySchemes\": {{{}\"z\": {{}}}}}}",
                numbered(n, |at| format!(
                    "\"s{at}\": {{\"type\": \"oauth2\", \"flows\": {{\"a\": {{\"scopes\": {{\"x\": 1}}}}}}}}, "
                ))
            ))
        },
    },
    // --- YAML ---
    Hostile { name: "nested YAML lists", path: YAML, make: |n| yaml(&format!("x: {}", "[".repeat(n))) },
    Hostile { name: "nested YAML lists as keys", path: YAML, make: |n| yaml(&"[".repeat(n)) },
    Hostile { name: "nested YAML objects", path: YAML, make: |n| yaml(&format!("x: {}", "{a: ".repeat(n))) },
    Hostile {
        name: "nested YAML sequences",
        path: YAML,
        make: |n| yaml(&format!("x:\n {}", "- ".repeat(n))),
    },
    Hostile { name: "YAML scalars", path: YAML, make: |n| yaml(&format!("x: [{}]", "a,".repeat(n))) },
    Hostile {
        name: "YAML scalars on lines",
        path: YAML,
        make: |n| yaml(&format!("x:\n{}", "- a\n".repeat(n))),
    },
    Hostile { name: "YAML lists", path: YAML, make: |n| yaml(&format!("x: [{}]", "[],".repeat(n))) },
    Hostile {
        name: "YAML short objects",
        path: YAML,
        make: |n| yaml(&format!("x:\n{}", "- {a: b}\n".repeat(n))),
    },
    Hostile {
        name: "a YAML list that may be a key",
        path: YAML,
        make: |n| yaml(&format!("? [{}]\n: 1", "a, ".repeat(n))),
    },
    Hostile {
        name: "YAML lists that may be keys",
        path: YAML,
        make: |n| yaml(&format!("x:\n{}", "- [a, b, [c]]\n".repeat(n))),
    },
    Hostile {
        name: "a nested YAML list that is a key at every level",
        path: YAML,
        make: |n| {
            yaml(&format!(
                "x:\n{}",
                format!("- {}{}{}\n", "[".repeat(30), "a, ".repeat(100), "]: 1 ".repeat(30)).repeat(n / 100)
            ))
        },
    },
    Hostile { name: "YAML keys", path: YAML, make: |n| yaml(&numbered(n, |at| format!("k{at}: 1\n"))) },
    Hostile { name: "YAML duplicate keys", path: YAML, make: |n| yaml(&"k: 1\n".repeat(n)) },
    Hostile {
        name: "YAML anchors",
        path: YAML,
        make: |n| yaml(&format!("x:\n{}", numbered(n, |at| format!("- &a{at} b\n")))),
    },
    Hostile {
        name: "YAML aliases",
        path: YAML,
        make: |n| yaml(&format!("x: &x {{a: b}}\ny:\n{}", "- *x\n".repeat(n))),
    },
    Hostile {
        name: "YAML aliases of a long list",
        path: YAML,
        make: |n| yaml(&format!("x: &x [{}]\ny:\n{}", "a,".repeat(n), "- *x\n".repeat(n))),
    },
    Hostile {
        name: "YAML anchors within anchors",
        path: YAML,
        make: |n| {
            yaml(&format!(
                "x:\n{}",
                numbered(n / 20, |at| format!(
                    "- {}a{}\n",
                    numbered(20, |level| format!("&a{at}x{level} [")),
                    "]".repeat(20)
                ))
            ))
        },
    },
    Hostile { name: "YAML tags", path: YAML, make: |n| yaml(&format!("x:\n{}", "- !a/b c\n".repeat(n))) },
    Hostile {
        name: "YAML comments",
        path: YAML,
        make: |n| yaml(&format!("{}x: 1", "# a comment\n".repeat(n))),
    },
    Hostile { name: "YAML empty lines", path: YAML, make: |n| yaml(&format!("x: a\n{}  b", "\n".repeat(n))) },
    Hostile {
        name: "a long YAML text",
        path: YAML,
        make: |n| yaml(&format!("x: |\n{}", "  line\n".repeat(n))),
    },
    Hostile {
        name: "a long folded YAML text",
        path: YAML,
        make: |n| yaml(&format!("x: >\n{}", "  line\n\n".repeat(n))),
    },
    Hostile {
        name: "a long quoted YAML text",
        path: YAML,
        make: |n| yaml(&format!("x: \"{}\"", "\\u0041\\\n ".repeat(n))),
    },
    Hostile {
        name: "a long plain YAML text",
        path: YAML,
        make: |n| yaml(&format!("x: a\n{}", "  b\n".repeat(n))),
    },
    Hostile { name: "a long YAML key", path: YAML, make: |n| yaml(&format!("{}: 1", "k".repeat(n))) },
    Hostile {
        name: "YAML keys of lists",
        path: YAML,
        make: |n| yaml(&numbered(n, |at| format!("? [a, b{at}]\n: 1\n"))),
    },
    Hostile { name: "YAML documents", path: YAML, make: |n| yaml(&"---\n".repeat(n)) },
    Hostile {
        name: "YAML tag directives",
        path: YAML,
        make: |n| {
            of(format!("openapi: 3.0.0\n...\n%TAG !e! {}\n---\n{}", "x".repeat(n), "- !e!a b\n".repeat(n)))
        },
    },
    Hostile {
        name: "indented YAML",
        path: YAML,
        make: |n| yaml(&numbered(n / 10, |at| format!("{}a:\n", " ".repeat(at.min(60))))),
    },
    Hostile {
        name: "addresses that are not public beside other texts",
        path: OPENAPI,
        make: |n| {
            let servers = |at| {
                format!(
                    "\"/{at}\": {{\"get\": {{\"servers\": [{{\"url\": \"https://{}/\"}}]}}}}, ",
                    167_772_160 + at
                )
            };
            let texts = "\"zzzzzzzzzzzzzzzz\", ".repeat(10 * n);
            openapi(&format!("\"x\": [{texts}\"\"], \"paths\": {{{}\"/z\": {{}}}}", numbered(n / 2, servers)))
        },
    },
    Hostile {
        name: "addresses of endpoints that are not public beside other texts",
        path: JSON,
        make: |n| {
            let endpoint = |at| {
                format!(
                    "{{\"name\": \"n{at}\", \"method\": \"GET\", \"url\": \"https://{}/x\"}}, ",
                    167_772_160 + at
                )
            };
            let texts = "\"zzzzzzzzzzzzzzzz\", ".repeat(4 * n);
            of(format!(
                "{{\"name\": \"a\", \"zz\": [{texts}\"\"], \"endpoints\": [{}{{}}]}}",
                numbered(n / 2, endpoint)
            ))
        },
    },
    Hostile {
        name: "international hosts of many letters",
        path: JSON,
        make: |n| {
            let host = "ü".repeat(1_000);
            let endpoint =
                |at| format!("{{\"name\": \"n{at}\", \"url\": \"https://{host}{at}.example/\"}}, ");
            of(format!("{{\"name\": \"a\", \"endpoints\": [{}{{}}]}}", numbered(n / 100, endpoint)))
        },
    },
    // --- parts that a parser combines: half of the document is one part, half the other ---
    Hostile {
        name: "schemes beside a long registration address",
        path: JSON,
        make: |n| {
            generic(&format!(
                "{{\"id\": \"a\", \"path\": \"/a\"}}], \"authentication\": {}, \"x\": [0",
                schemes(n)
            ))
        },
    },
    Hostile {
        name: "schemes of one action beside a long registration address",
        path: JSON,
        make: |n| generic(&format!("{{\"id\": \"a\", \"path\": \"/a\", \"auth\": {}}}", schemes(n))),
    },
    Hostile {
        name: "schemes and scopes of an agents.txt capability",
        path: "/agents.json",
        make: |n| {
            of(format!(
                "{{\"specVersion\": \"1.0\", \"site\": {{\"name\": \"a\", \"url\": \"https://a.example\"}}, \"capabilities\": [{{\"id\": \"a\", \"endpoint\": \"https://a.example/a\", \"protocol\": \"REST\", \"auth\": {{\"schemes\": [{}]}}, \"scopes\": [{}]}}]}}",
                words(n / 2, "s"),
                words(n / 2, "p")
            ))
        },
    },
    Hostile {
        name: "actions and scopes of the whole service",
        path: JSON,
        make: |n| {
            of(format!(
                "{{\"manifest_version\": \"1.0\", \"app\": {{\"name\": \"a\", \"url\": \"https://a.example\"}}, \"auth\": {{\"type\": \"oauth2\", \"scopes\": [{}]}}, \"actions\": [{}]}}",
                words(n / 2, "s"),
                numbered(n / 2, |at| format!("{}{{\"id\": \"a{at}\"}}", if at == 0 { "" } else { ", " }))
            ))
        },
    },
    Hostile {
        name: "methods of one element with many parameters",
        path: JSON,
        make: |n| generic(&format!("{{\"id\": \"a\", {METHODS}, \"required\": [{}]}}", words(n, "r"))),
    },
    Hostile {
        name: "repeated elements beside a long base",
        path: "/.well-known/agent-card.json",
        make: |n| {
            let element = format!("{{{METHODS}}}, ");
            of(format!(
                "{{\"name\": \"a\", \"protocolVersion\": \"0.3.0\", \"url\": \"https://a.example/\", \"skills\": [], \"base_url\": \"https://a.example/{}\", \"endpoints\": [{}{{}}]}}",
                "b".repeat(2_000),
                element.repeat(n / 2)
            ))
        },
    },
    Hostile {
        name: "brackets of a type",
        path: JSON,
        make: |n| {
            of(format!(
                "{{\"w2a\": \"1.0\", \"site\": {{\"name\": \"a\"}}, \"skills\": [{{\"id\": \"a\", \"intent\": \"i\", \"action\": \"GET /a\", \"input\": {{\"x\": \"string{}\"}}}}]}}",
                "[]".repeat(n)
            ))
        },
    },
    Hostile {
        name: "flows with methods and steps",
        path: JSON,
        make: |n| {
            let steps =
                "{\"operationId\": \"ooooooooooooooooooooooooooooooooooooooooooooo\"}, ".repeat(n.min(99));
            let flow = |at| format!("{{\"name\": \"f{at}\", {METHODS}, \"steps\": [{steps}{{}}]}}, ");
            of(format!("{{\"name\": \"a\", \"flows\": [{}{{}}]}}", numbered(n / 100, flow)))
        },
    },
    Hostile {
        name: "addresses below long names",
        path: JSON,
        make: |n| {
            let name = "ab_".repeat((n / 2).min(340));
            let inside = format!("{}\"/x\"", "\"/x\", ".repeat(n / 2));
            generic(&format!(
                "{{\"id\": \"a\", \"path\": \"/a\"}}], \"{name}\": {{\"{name}\": {{\"{name}\": [{inside}]}}}}, \"x\": [0"
            ))
        },
    },
    // --- text ---
    Hostile {
        name: "agents.txt blocks",
        path: AGENTS_TXT,
        make: |n| {
            of(format!(
                "Site: a\nSpec-Version: 1.0\n{}",
                numbered(n, |at| format!("\nCapability: c{at}\nEndpoint: /e{at}\nMethod: GET\n"))
            ))
        },
    },
    Hostile {
        name: "agents.txt lines",
        path: AGENTS_TXT,
        make: |n| {
            of(format!(
                "Site-Name: a\nSite-URL: https://a.example\n{}",
                numbered(n, |at| format!("Capabilities: x{at}\n"))
            ))
        },
    },
    Hostile {
        name: "agents.txt comments",
        path: AGENTS_TXT,
        make: |n| of(format!("Site-Name: a\n{}", "# comment\n".repeat(n))),
    },
    Hostile {
        name: "agents.txt parameters",
        path: AGENTS_TXT,
        make: |n| {
            of(format!(
                "Site: a\nSpec-Version: 1.0\nCapability: c\nEndpoint: /e\n{}",
                numbered(n, |at| format!("Param: p{at} (query, string, required)\n"))
            ))
        },
    },
    Hostile {
        name: "patterns of paths beside many members",
        path: JSON,
        make: |n| {
            of(format!(
                r#"{{"zzz": {{{}"paths": [{}"/z"]}}}}"#,
                numbered(n, |at| format!(r#""aBcD{at}": 1, "#)),
                numbered(n, |at| format!(r#""/a{at}*", "#))
            ))
        },
    },
    Hostile {
        name: "members with a path each",
        path: JSON,
        make: |n| {
            of(format!(
                r#"{{"zzz": {{{}"name": "a"}}}}"#,
                numbered(n, |at| format!(r#""create{at}": "/s", "#))
            ))
        },
    },
    Hostile {
        name: "agents.txt of one long line",
        path: AGENTS_TXT,
        make: |n| of(format!("Site-Name: a\nCapabilities: {}", "a, ".repeat(n))),
    },
    Hostile {
        name: "llms.txt links",
        path: LLMS_TXT,
        make: |n| of(format!("# a\n{}", numbered(n, |at| format!("- [l{at}](/l{at}.md): text\n")))),
    },
    Hostile {
        name: "llms.txt open links",
        path: LLMS_TXT,
        make: |n| of(format!("# a\n{}", "- [[[[](((\n".repeat(n))),
    },
    Hostile {
        name: "llms.txt of one line",
        path: LLMS_TXT,
        make: |n| of(format!("# a\n- {}", "[](".repeat(n))),
    },
    Hostile {
        name: "llms.txt headings",
        path: LLMS_TXT,
        make: |n| of(format!("# a\n{}", "## b\n".repeat(n))),
    },
    Hostile {
        name: "llms.txt filters away from calls",
        path: LLMS_TXT,
        make: |n| {
            let calls = numbered(n / 2, |at| format!("- GET /a{at}: List a\n"));
            of(format!("# a\n{calls}\ntext\n{}", "Filters: ?a\n".repeat(n / 2)))
        },
    },
    Hostile {
        name: "paths that an element with a long address lists",
        path: JSON,
        make: |n| {
            let listed = "\"Endpoints: /b/c, /d/e\", ".repeat(n / 4);
            of(format!(
                "{{\"name\": \"a\", \"services\": [{{\"endpoint\": \"https://a.example/{}\", \"notes\": [{listed}\"z\"]}}]}}",
                "a".repeat(n * 40)
            ))
        },
    },
    Hostile { name: "ai.txt lines", path: AI_TXT, make: |n| of("User-Agent: *\nDisallow: /\n".repeat(n)) },
];
