//! The allocations for a hostile document grow linearly with its length, and no document exceeds the memory budget.
//!
//! The allocator counts bytes and blocks of the test's own thread. Processor time is only limited in release builds, because it is not
//! meaningful in debug builds.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

mod hostile;
mod support;

use std::collections::BTreeMap;
use std::str::FromStr as _;
use std::time::Duration;

use allocation_counter::{AllocationInfo, measure};
use hostile::{Hostile, read};
use manifest::{Format, Manifest};
use serde_json::{Map, Value, json};
use support::Case;

/// Maximum factor for an input of twice the size, in tenths: two, and a margin for containers that grow by powers of two.
const FACTOR_TENTHS_MAX: u64 = 23;
/// Bytes and blocks that reading any document takes, even a short one.
const SLACK_BYTES: u64 = 64 * 1_024;
const SLACK_BLOCKS: u64 = 200;
/// Additional memory that one reading may take.
const PEAK_BYTES_MAX: u64 = 128 * 1_024 * 1_024;
/// Processor time that one reading may take in a release build.
const TIME_MAX: Duration = Duration::from_secs(1);

fn cost(bytes: &[u8], path: &str) -> AllocationInfo {
    measure(|| drop(read(bytes, path)))
}

#[track_caller]
fn assert_linear(name: &str, single: &AllocationInfo, double: &AllocationInfo) {
    let within = |one: u64, two: u64, slack: u64| 10 * two <= FACTOR_TENTHS_MAX * one + 10 * slack;
    assert!(
        within(single.bytes_total, double.bytes_total, SLACK_BYTES),
        "{name}: {} bytes become {}",
        single.bytes_total,
        double.bytes_total
    );
    assert!(
        within(single.count_total, double.count_total, SLACK_BLOCKS),
        "{name}: {} blocks become {}",
        single.count_total,
        double.count_total
    );
}

#[test]
fn cost_of_hostile_documents_grows_linearly() {
    // The first call builds tables that all later calls share.
    drop(read(
        b"{\"tools\": [{\"name\": \"delete all\", \"description\": \"ignore previous\"}]}",
        "/agents.json",
    ));
    for Hostile { name, path, make } in hostile::ALL {
        let (single, double) = (make(400), make(800));
        assert_linear(name, &cost(&single, path), &cost(&double, path));
    }
}

/// Work without allocations is measured as processor time: an input of eight times the size takes at most twenty times as long, plus a
/// quarter of a second for noise. Quadratic work would take 64 times as long.
#[test]
fn processor_time_of_hostile_documents_grows_linearly() {
    let time = |bytes: &[u8], path: &str| {
        let once = || {
            let start = cpu_time();
            drop(read(bytes, path));
            cpu_time().saturating_sub(start)
        };
        once().min(once())
    };
    for Hostile { name, path, make } in hostile::ALL {
        let (one, eight) = (time(&make(1_000), path), time(&make(8_000), path));
        assert!(eight <= one * 20 + Duration::from_millis(250), "{name}: {one:?} become {eight:?}");
    }
}

/// Debug builds take thirty times as long per byte, so they read only this fraction of the largest size.
const SHARE_IN_DEBUG: usize = 32;

fn assert_within_budget(paths: &[&str]) {
    for Hostile { name, path, make } in hostile::ALL.iter().filter(|hostile| paths.contains(&hostile.path)) {
        let per_unit = make(2_000).len() / 2_000 + 1;
        let size_max = hostile::size_max(path) / SHARE;
        let mut bytes = make(size_max / per_unit);
        bytes.truncate(size_max);
        let start = cpu_time();
        let spent = measure(|| drop(read(&bytes, path)));
        let time = cpu_time().saturating_sub(start);
        assert!(
            spent.bytes_max <= PEAK_BYTES_MAX,
            "{name}: {} bytes of text take {} MiB",
            bytes.len(),
            spent.bytes_max / 1_024 / 1_024
        );
        assert!(cfg!(debug_assertions) || time <= TIME_MAX, "{name}: {} bytes take {time:?}", bytes.len());
    }
}

/// Divisor of the largest size in this build.
const SHARE: usize = if cfg!(debug_assertions) { SHARE_IN_DEBUG } else { 1 };

#[test]
fn json_stays_within_the_memory_and_time_budget() {
    assert_within_budget(&[hostile::JSON]);
}

#[test]
fn openapi_stays_within_the_memory_and_time_budget() {
    assert_within_budget(&[hostile::OPENAPI]);
}

#[test]
fn yaml_stays_within_the_memory_and_time_budget() {
    assert_within_budget(&[hostile::YAML]);
}

#[test]
fn text_stays_within_the_memory_and_time_budget() {
    assert_within_budget(&[hostile::AGENTS_TXT, hostile::LLMS_TXT, hostile::AI_TXT]);
}

/// Maximum bytes of memory of a manifest. This is less than the JSON that the store reads back.
const MODEL_BYTES_MAX: usize = 72 * 1_024 * 1_024;

/// Values that are copied to each capability after counting are also counted.
#[test]
fn every_model_stays_within_the_memory_limit() {
    let session =
        |at: usize| format!("{{\"name\": \"c{at}\", \"endpoint\": \"/a\", \"requires_session\": true}}");
    let capabilities: Vec<String> = (0..5_000).map(session).collect();
    let sessions = format!(
        "{{\"schema_version\": \"0.1.0\", \"site\": {{\"name\": \"a\"}}, \"session\": {{\"create\": \"/{}\"}}, \"capabilities\": [{}]}}",
        "{".repeat(8_100),
        capabilities.join(", ")
    );
    let step = format!("{{\"operationId\": \"{}\"}}", "o".repeat(200));
    let steps = vec![step; 100].join(", ");
    let flow = |at: usize| {
        format!(
            "{{\"name\": \"f{at}\", \"path\": \"/a\", \"methods\": \"GET,HEAD,POST,PUT,DELETE,PATCH,OPTIONS\", \"steps\": [{steps}]}}"
        )
    };
    let flows: Vec<String> = (0..150).map(flow).collect();
    let flows = format!("{{\"name\": \"a\", \"flows\": [{}]}}", flows.join(", "));
    for (path, text) in [("/.well-known/agents.json", sessions), (hostile::JSON, flows)] {
        let (mut taken, mut capabilities) = (0, 0);
        let spent = measure(|| {
            let manifest = read(text.as_bytes(), path);
            (taken, capabilities) =
                (manifest::budget::manifest_bytes(&manifest), manifest.capabilities.len());
        });
        assert!(capabilities > 500, "{path}: {capabilities} are read");
        assert!(taken <= MODEL_BYTES_MAX, "{path}: {taken} bytes");
        assert!(spent.bytes_max <= PEAK_BYTES_MAX, "{path}: {} bytes at most", spent.bytes_max);
    }
}

/// Resembles the OpenAPI documents of large services: 12 MB, indented, half paths and half schemas.
fn lifelike(units: usize) -> String {
    let paths: Map<String, Value> = (0..units)
        .map(|at| {
            let operation = json!({
                "summary": "List the things of a repository", "description": "Lists what there is, newest first. ".repeat(4),
                "tags": ["things"], "operationId": format!("things/list-{at}"),
                "externalDocs": {"description": "API method documentation", "url": "https://docs.example/rest"},
                "parameters": [{"$ref": "#/components/parameters/owner"}, {"$ref": "#/components/parameters/page"}],
                "responses": {"200": {"description": "Response", "content": {"application/json": {
                    "schema": {"type": "array", "items": {"$ref": format!("#/components/schemas/thing-{at}")}},
                    "examples": {"default": {"value": [{"id": at, "name": "thing", "url": "https://api.example/things/1"}]}}}}}}
            });
            (format!("/repos/{{owner}}/things-{at}"), json!({"get": operation, "post": operation}))
        })
        .collect();
    let property =
        json!({"type": "string", "description": "What it is in a few words.", "example": "octocat"});
    let schemas: Map<String, Value> = (0..units)
        .map(|at| {
            let properties: Map<String, Value> =
                (0..20).map(|name| (format!("property_{name}"), property.clone())).collect();
            (
                format!("thing-{at}"),
                serde_json::json!({"type": "object", "properties": properties, "required": ["property_1"]}),
            )
        })
        .collect();
    let parameter = |name: &str, place: &str| serde_json::json!({"name": name, "in": place, "schema": {"type": "string"}});
    let document = serde_json::json!({
        "openapi": "3.0.3", "info": {"title": "Things", "version": "1.1.4"}, "servers": [{"url": "https://api.example"}],
        "paths": paths, "components": {"schemas": schemas, "parameters": {
            "owner": parameter("owner", "path"), "page": parameter("page", "query")}}
    });
    serde_json::to_string_pretty(&document).unwrap()
}

#[test]
fn an_openapi_document_of_twelve_megabytes_is_within_the_budget() {
    let per_unit = lifelike(100).len() / 100;
    let text = lifelike(12_000_000 / per_unit);
    assert!((11_500_000..12_500_000).contains(&text.len()), "{}", text.len());
    let mut reading = None;
    let spent = measure(|| reading = Some(read(text.as_bytes(), hostile::OPENAPI)));
    let reading = reading.unwrap();
    assert_eq!(reading.format(), Format::OpenApi, "{:?}", reading.findings);
    assert!(reading.capabilities.len() > 2_000, "{}", reading.capabilities.len());
    assert!(spent.bytes_max <= PEAK_BYTES_MAX, "{} MiB", spent.bytes_max >> 20);
}

/// Bodies that once took a gigabyte or more, at full size in every build.
#[test]
fn the_largest_hostile_bodies_stay_below_the_peak() {
    for (path, head, unit, size) in [
        (hostile::OPENAPI, "{\"openapi\": \"3.0.0\", \"x\": [0", ",0", 16),
        (hostile::OPENAPI, "{\"openapi\": \"3.0.0\", \"x\": [[]", ",[]", 16),
        (hostile::OPENAPI, "{\"openapi\": \"3.0.0\", \"x\": [{\"a\":0}", ",{\"a\":0}", 16),
        (hostile::YAML, "openapi: 3.0.0\nx: [a", ",a", 8),
        (hostile::YAML, "openapi: 3.0.0\nx: [[]", ",[]", 8),
        (hostile::YAML, "openapi: 3.0.0\nx: ", "[", 8),
    ] {
        let mut text = head.to_owned();
        while text.len() + unit.len() < size * 1_024 * 1_024 {
            text.push_str(unit);
        }
        let mut reading = None;
        let spent = measure(|| reading = Some(read(text.as_bytes(), path)));
        let reading = reading.unwrap();
        assert!(spent.bytes_max <= PEAK_BYTES_MAX, "{head}: {} MiB", spent.bytes_max / 1_024 / 1_024);
        assert_eq!(reading.format(), Format::Malformed, "{head}");
        assert_eq!(reading.findings[0].code, "document.over_budget", "{head}");
        assert!(reading.findings[0].text.contains("the limit is"), "{}", reading.findings[0].text);
    }
}

/// Processor time of this process so far; zero if the system does not report it.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default();
    Duration::from_nanos(nanoseconds)
}

/// Number of elements to which the lists of a fixture are extended.
const GROWN: usize = 64;

/// Documents in which a parser repeats a long text for each of many small values. They have the sizes of documents that once took
/// gigabytes.
#[expect(clippy::too_many_lines, reason = "a table")]
fn repeated_texts() -> Vec<(&'static str, &'static str, Value)> {
    let text = "v".repeat(60_000);
    let numbered = |count: usize, make: &dyn Fn(usize) -> Value| (0..count).map(make).collect::<Vec<_>>();
    let agent = |transports: Value, operations: usize| {
        let names: Vec<&String> =
            transports.as_object().into_iter().flatten().map(|(name, _)| name).collect();
        let operations = numbered(operations, &|number| json!({"name": format!("o{number}")}));
        json!({"woa_version": "1", "transports": transports, "agents": [{"id": text, "name": "n", "description": "d",
            "version": "1", "transports": names, "inputs": {}, "outputs": {}, "operations": operations}]})
    };
    let rest = |path: String| json!({"rest": {"base": "https://x.example", "invoke_path": path}});
    let ids = "{agent_id}".repeat(6_000);
    let mcp = json!({"mcp": {"server": "https://x.example/mcp", "tool_namespace": "a"}});
    let dependencies = numbered(50_000, &|number| json!(format!("b{number}")));
    let actions = numbered(1_500, &|_| json!({"id": "a"}));
    let additional = numbered(19_000, &|number| json!({"url": format!("/{number}"), "transport": "JSONRPC"}));
    let fields = |word: &str, count: usize| -> Map<String, Value> {
        (0..count).map(|number| (format!("x{number}"), json!(word))).collect()
    };
    let nested = format!("{}x{}", "array[".repeat(8), "]".repeat(8));
    let words = format!("enum[{}a]", "a,".repeat(2_000));
    let awp = |entities: Value, actions: Value| {
        json!({"awp_version": "0.1", "domain": "x.example", "intent": "i",
            "entities": entities, "actions": actions})
    };
    let bindings = numbered(10_000, &|_| json!({"transport": "mcp", "endpoint": "https://x.example/mcp"}));
    // wrong in the innermost level only, so that the whole schema is searched
    let mut dependent = json!({"type": 7});
    for level in 0..20 {
        let mut members: Map<String, Value> =
            (0..2_900).map(|n| (format!("x{level}_{n}"), json!({}))).collect();
        members.insert("a".to_owned(), dependent);
        dependent = json!({"dependencies": members});
    }
    let mut payments = json!({"pricing": {"price": "1", "asset": text, "network": text, "payTo": text}});
    for number in 0..5_000 {
        payments[format!("x-{number}")] = json!({"chains": ["a"]});
    }
    let paths: Map<String, Value> = (0..4_900).map(|n| (format!("/a{n}"), json!({"get": {}}))).collect();
    vec![
        ("ids in a URL", "/.well-known/woa.json", agent(rest(format!("/{ids}")), 1)),
        ("ids in a URL template", "/.well-known/woa.json", agent(rest(format!("/{ids}{{x}}")), 10)),
        ("an id in each envelope", "/.well-known/woa.json", agent(mcp, 4_900)),
        (
            "dependencies of repeated ids",
            "/agent.json",
            json!({"awp_version": "0.1", "domain": "x.example",
            "intent": "i", "actions": actions, "dependencies": {"a": dependencies}}),
        ),
        (
            "a version for each interface",
            "/.well-known/agent-card.json",
            json!({"name": "n", "description": "d",
            "url": "https://x.example/a", "version": "1", "protocolVersion": text, "capabilities": {},
            "skills": [], "additionalInterfaces": additional}),
        ),
        (
            "a price for each method",
            "/agents.txt",
            json!({"standard": "https://agents-txt.com", "version": "1.0",
            "site": {"name": "a", "url": "https://x.example"}, "payments": payments}),
        ),
        (
            "nested types of entities",
            "/agent.json",
            awp(json!({"E": {"fields": fields(&nested, 59_000)}}), json!([])),
        ),
        (
            "nested types of inputs",
            "/agent.json",
            awp(json!({}), json!([{"id": "a", "inputs": fields(&nested, 59_000)}])),
        ),
        ("values in types", "/agent.json", awp(json!({"E": {"fields": fields(&words, 900)}}), json!([]))),
        (
            "entities of each action",
            "/agent.json",
            awp(
                json!({"E": {"fields": fields("date", 10_000)}}),
                Value::Array(numbered(
                    5_000,
                    &|n| json!({"id": format!("a{n}"), "outputs": {"x": "object[E]"}}),
                )),
            ),
        ),
        (
            "nested dependencies of a schema",
            "/.well-known/woa.json",
            json!({"woa_version": "1", "transports": {}, "agents": [{"id": "a", "name": "n", "inputs": dependent}]}),
        ),
        (
            "a name for each binding",
            "/.well-known/ucp",
            json!({"ucp": {"version": "2026-04-08", "services": {text.as_str(): bindings}}}),
        ),
        (
            "credentials of each tool",
            "/.well-known/mcp.json",
            json!({"name": "n", "url": "https://x.example/mcp",
                "authentication": {"schemes": numbered(20_000, &|n| json!(format!("s{n}")))},
                "tools": numbered(4_900, &|n| json!({"name": format!("t{n}")}))}),
        ),
        (
            "a base path for each operation",
            "/openapi.json",
            json!({"swagger": "2.0",
            "info": {"title": "t", "version": "1"}, "host": "x.example", "basePath": format!("/{{t}}/{text}"),
            "paths": paths}),
        ),
    ]
}

#[test]
fn texts_that_are_repeated_stay_within_the_memory_budget() {
    for (name, path, document) in repeated_texts() {
        let spent = cost(document.to_string().as_bytes(), path);
        assert!(spent.bytes_max <= PEAK_BYTES_MAX, "{name}: {} MiB", spent.bytes_max / 1_024 / 1_024);
    }
}

#[test]
fn the_estimate_of_a_manifest_covers_the_memory_that_it_takes() {
    let assert_covered = |name: &str, spent: AllocationInfo, manifest: Option<Manifest>| {
        let (taken, estimated) = (spent.bytes_current, manifest::budget::manifest_bytes(&manifest.unwrap()));
        assert!(
            10 * taken <= 11 * i64::try_from(estimated).unwrap() + 16 * 1_024,
            "{name}: {taken} bytes, estimated {estimated}"
        );
    };
    for case in Case::all() {
        // the first call builds tables that all later calls share
        let mut manifest = Some(case.read());
        let spent = measure(|| manifest = Some(case.read()));
        assert_covered(&case.folder.display().to_string(), spent, manifest);
    }
    for (name, path, document) in repeated_texts() {
        let bytes = document.to_string().into_bytes();
        let mut manifest = Some(read(&bytes, path));
        let spent = measure(|| manifest = Some(read(&bytes, path)));
        assert_covered(name, spent, manifest);
    }
}

#[test]
fn every_list_and_map_of_every_format_grows_linearly() {
    let mut formats: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for case in Case::all() {
        if let Ok(document) = serde_json::from_slice::<Value>(&case.bytes)
            && case.bytes.len() < 20_000
        {
            formats.entry(case.format.clone()).or_default().push(document);
        }
    }
    assert!(formats.len() > 25, "the fixtures are missing");
    for (format, documents) in formats {
        let largest = documents.iter().max_by_key(|document| document.to_string().len()).unwrap();
        let places = containers(largest);
        for (index, first) in places.iter().enumerate() {
            // Extending two lists together finds values that are repeated for each element of another list.
            let pair = places.get(index + 1).unwrap_or(first);
            let grow = |times: usize| {
                let mut grown = largest.clone();
                repeat(&mut grown, first, times);
                if pair != first && !pair.starts_with(first.as_str()) {
                    repeat(&mut grown, pair, times);
                }
                grown.to_string().into_bytes()
            };
            let path = "/.well-known/agent.json";
            let (single, double) = (grow(GROWN), grow(2 * GROWN));
            assert_linear(&format!("{format} {first} {pair}"), &cost(&single, path), &cost(&double, path));
        }
    }
}

/// Number of characters of a long text: more than any text that is kept.
const LONG: usize = 20_000;
/// Number of elements of the extended container. If a text of [`LONG`] characters were kept for each, it would be most of the cost.
const ELEMENTS: usize = 100;

#[test]
fn no_long_text_is_repeated_for_the_elements_of_a_list_or_map() {
    let mut largest: BTreeMap<String, Value> = BTreeMap::new();
    for case in Case::all() {
        if let Ok(document) = serde_json::from_slice::<Value>(&case.bytes)
            && case.bytes.len() < 20_000
        {
            let known = largest.entry(case.format.clone()).or_default();
            if document.to_string().len() > known.to_string().len() {
                *known = document;
            }
        }
    }
    assert!(largest.len() > 25, "the fixtures are missing");
    let mut repeated = Vec::new();
    for (name, document) in largest {
        let format = Format::from_str(&name).unwrap();
        let elements = |pointer: &str| document.pointer(pointer).map_or(1, size).max(1);
        for pointer in containers(&document) {
            let grown = |times: usize| {
                let mut grown = document.clone();
                lengthen(&mut grown, &pointer, &"v".repeat(times * LONG), 0);
                repeat(&mut grown, &pointer, times * ELEMENTS.div_ceil(elements(&pointer)));
                let bytes = grown.to_string().into_bytes();
                measure(|| drop(hostile::read_as(&bytes, "/.well-known/agent.json", Some(format))))
            };
            let (single, double) = (grown(1).bytes_total, grown(2).bytes_total);
            if 10 * double > FACTOR_TENTHS_MAX * single + 10 * SLACK_BYTES {
                repeated.push(format!("{name} {pointer}: {single} bytes become {double}"));
            }
        }
    }
    assert!(repeated.is_empty(), "{repeated:#?}");
}

/// Elements of a list or object.
fn size(container: &Value) -> usize {
    container.as_array().map_or(0, Vec::len) + container.as_object().map_or(0, Map::len)
}

/// Number of levels of a document whose texts are lengthened; deeper texts belong to one element.
const LENGTHENED_LEVELS: usize = 3;

/// Appends `text` to every text of a document outside one container, and outside schemas: operations inherit those whole, up
/// to the memory limit of the model.
fn lengthen(value: &mut Value, except: &str, text: &str, level: usize) {
    match value {
        Value::String(short) => short.push_str(text),
        Value::Array(items) if level < LENGTHENED_LEVELS => {
            for (index, item) in items.iter_mut().enumerate() {
                lengthen_child(item, &index.to_string(), except, text, level + 1);
            }
        }
        Value::Object(members) if level < LENGTHENED_LEVELS => {
            for (name, member) in members {
                lengthen_child(member, &name.replace('~', "~0").replace('/', "~1"), except, text, level + 1);
            }
        }
        _ => {}
    }
}

fn lengthen_child(value: &mut Value, step: &str, except: &str, text: &str, level: usize) {
    // "" matches no step
    match except.strip_prefix('/').and_then(|rest| rest.strip_prefix(step)) {
        Some("") => {}
        Some(rest) if rest.starts_with('/') => lengthen(value, rest, text, level),
        _ if matches!(step, "inputs" | "outputs") => {}
        _ => lengthen(value, "", text, level),
    }
}

/// Pointers of the non-empty lists and objects of a document, outermost first.
fn containers(document: &Value) -> Vec<String> {
    let (mut found, mut queue) = (Vec::new(), vec![(String::new(), document)]);
    while let Some((pointer, value)) = queue.pop() {
        let children: Vec<(String, &Value)> = match value {
            Value::Array(items) => items.iter().take(1).map(|item| ("0".to_owned(), item)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(name, member)| (name.replace('~', "~0").replace('/', "~1"), member))
                .collect(),
            _ => continue,
        };
        if !children.is_empty() && !pointer.is_empty() {
            found.push(pointer.clone());
        }
        queue.extend(children.into_iter().map(|(step, child)| (format!("{pointer}/{step}"), child)));
    }
    found.sort();
    found
}

/// Repeats the content of a list or an object.
fn repeat(document: &mut Value, pointer: &str, times: usize) {
    match document.pointer_mut(pointer) {
        Some(Value::Array(items)) => {
            let once = items.clone();
            *items = once.iter().cycle().take(once.len() * times).cloned().collect();
        }
        Some(Value::Object(members)) => {
            let once = members.clone();
            for copy in 1..times {
                members.extend(once.iter().map(|(name, value)| (format!("{name}{copy}"), value.clone())));
            }
        }
        _ => {}
    }
}

#[test]
fn tree_estimate_is_an_upper_bound() {
    for (name, text) in [
        ("numbers", format!("[0{}]", ",0".repeat(99_999))),
        ("empty lists", format!("[[]{}]", ",[]".repeat(50_000))),
        ("short lists", format!("[[0]{}]", ",[0]".repeat(50_000))),
        ("short objects", format!("[{{\"a\":0}}{}]", ",{\"a\":0}".repeat(50_000))),
        (
            "objects of eight",
            format!(
                "[0{}]",
                ",{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0}".repeat(5_000)
            ),
        ),
        (
            "one object",
            format!(
                "{{{}\"z\":0}}",
                (0..50_000).map(|n| format!("\"n{n}\":0,")).collect::<Vec<_>>().concat()
            ),
        ),
        ("texts", format!("[\"\"{}]", ",\"some text\"".repeat(50_000))),
    ] {
        let limits = manifest::budget::Limits {
            depth: 100,
            nodes: 1_000_000,
            scalar_bytes: 100_000_000,
            tree_bytes: 1_000_000_000,
        };
        let (mut low, mut high) = (0, limits.tree_bytes);
        while high - low > 1_024 {
            let tree_bytes = usize::midpoint(low, high);
            let fits =
                manifest::budget::check(text.as_bytes(), &manifest::budget::Limits { tree_bytes, ..limits });
            if fits.is_ok() { high = tree_bytes } else { low = tree_bytes }
        }
        let spent = measure(|| drop(serde_json::from_str::<Value>(&text).unwrap()));
        let after = usize::try_from(spent.bytes_max).unwrap();
        // While the last container grows, its old memory exists together with the new one.
        assert!(after <= high + high / 2 + 1_024, "{name}: estimated {high}, took {after}");
    }
}

#[test]
fn finds_positions_of_many_findings_in_one_pass() {
    let document = |count: usize| {
        let elements: Vec<String> = (0..count).map(|n| format!("{{\"a\": {n}, \"b\": [1, 2, 3]}}")).collect();
        format!("{{\"list\": [{}]}}", elements.join(",\n"))
    };
    let findings = |count: usize| -> Vec<manifest::Finding> {
        let example = read(b"{", "/agents.json").findings.remove(0);
        (0..count)
            .map(|n| manifest::Finding {
                pointer_document: None,
                code: "x".into(),
                pointer: format!("/list/{}/b/2", n * 7),
                ..example.clone()
            })
            .collect()
    };
    let (single, double) = (document(4_000), document(8_000));
    let (few, many) = (findings(250), findings(500));
    let spent = |text: &str, findings: &[manifest::Finding]| {
        measure(|| {
            let places = manifest::finding_positions(text.as_bytes(), findings);
            assert_eq!(places.iter().flatten().count(), findings.len());
        })
    };
    assert_linear("places", &spent(&single, &few), &spent(&double, &many));
    // More findings over the same text cost almost nothing, because the text is read once.
    let (one, all) = (spent(&single, &findings(1)), spent(&single, &few));
    assert!(all.count_total < 2 * one.count_total + 10_000, "{} {}", one.count_total, all.count_total);
    let wide = format!("[{}0]", "0,".repeat(1_000_000));
    let peak = measure(|| drop(manifest::finding_positions(wide.as_bytes(), &few))).bytes_max;
    assert!(peak < 4 * 1_024 * 1_024, "{peak}");
}

#[test]
fn findings_about_tools_search_a_bounded_number_of_parameters() {
    let parameter = |index: usize| match index {
        5 | 255 => json!({"name": format!("name_{index}"), "in": "query"}),
        _ => json!({"name": format!("name_{index}"), "in": "query", "description": "What is looked for."}),
    };
    let parameters: Vec<Value> = (0..260).map(parameter).collect();
    let body = json!({"type": "object", "properties": {"name_255": {"type": "string"}}});
    let tools = json!({
        "openapi": "3.1.0", "info": {"title": "a", "version": "1"}, "servers": [{"url": "https://hostile.example"}],
        "paths": {"/a": {"post": {"operationId": "find_a", "summary": "Find", "parameters": parameters,
            "requestBody": {"content": {"application/json": {"schema": body}}},
            "responses": {"200": {"description": "Found"}}}}},
    });
    let manifest = json!({
        "name": "a", "description": "a", "version": "1", "tools": "https://hostile.example/openapi.json",
        "auth": {"type": "none"},
    });
    let url = |path: &str| manifest::ManifestUrl::parse(&format!("https://hostile.example{path}")).unwrap();
    let (own, linked) = (url("/.well-known/agent-manifest.json"), url("/openapi.json"));
    let reading = manifest::read(&manifest::Document {
        bytes: manifest.to_string().as_bytes(),
        url: &own,
        final_url: None,
        discovery: manifest::Discovery::Submitted,
        served: None,
        linked: &[manifest::LinkedDocument { url: &linked, bytes: tools.to_string().as_bytes() }],
        force: None,
    });
    let of = |name: &str| {
        let about = reading.findings.iter().filter(|finding| finding.text.contains(&format!("`{name}`")));
        let pointers: Vec<&str> = about.map(|finding| finding.pointer.as_str()).collect();
        assert!(!pointers.is_empty(), "{name}: {:?}", reading.findings);
        pointers
    };
    assert_eq!(of("name_5"), ["/paths/~1a/post/parameters/5"]);
    let of_body = "/paths/~1a/post/requestBody/content/application~1json/schema/properties/name_255";
    assert_eq!(
        of("name_255"),
        [of_body],
        "each finding about a body would search the whole list of parameters"
    );
}
