//! Pages, Link headers and XML lists: doubling a hostile input at most doubles the allocations of reading it, and no input takes more
//! memory than a few times its length.

use std::time::Duration;

use allocation_counter::{AllocationInfo, measure};
use manifest::{budget, web};

/// Maximum factor for an input of twice the size, in tenths: two, and a margin for containers that grow by powers of two.
const FACTOR_TENTHS_MAX: u64 = 23;
const SLACK_BYTES: u64 = 16 * 1_024;
const SLACK_BLOCKS: u64 = 100;

type Make = fn(usize) -> String;

fn assert_linear(
    classes: &[(&str, Make)],
    units: usize,
    size_max: usize,
    peak_max: u64,
    read: impl Fn(&str),
) {
    for (name, make) in classes {
        let cost = |text: &str| -> AllocationInfo { measure(|| read(text)) };
        let (single, double) = (cost(&make(units)), cost(&make(2 * units)));
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
        let per_unit = make(1_000).len() / 1_000 + 1;
        let largest = make(size_max / per_unit);
        let start = cpu_time();
        let spent = cost(&largest);
        let time = cpu_time().saturating_sub(start);
        assert!(spent.bytes_max <= peak_max, "{name}: {} bytes take {}", largest.len(), spent.bytes_max);
        assert!(cfg!(debug_assertions) || time <= Duration::from_secs(1), "{name}: {time:?}");
    }
}

/// Work without allocations is measured as processor time: an input of eight times the size takes at most twenty times as long, plus a
/// quarter of a second for noise. Quadratic work would take 64 times as long.
fn assert_time_is_linear(classes: &[(&str, Make)], units: usize, read: impl Fn(&str)) {
    for (name, make) in classes {
        let time = |text: &str| {
            let once = || {
                let start = cpu_time();
                read(text);
                cpu_time().saturating_sub(start)
            };
            once().min(once())
        };
        let (one, eight) = (time(&make(units)), time(&make(8 * units)));
        assert!(eight <= one * 20 + Duration::from_millis(250), "{name}: {one:?} become {eight:?}");
    }
}

/// Processor time of this thread so far; zero if the system does not report it.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(stat.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default())
}

fn numbered(n: usize, unit: impl Fn(usize) -> String) -> String {
    (0..n).map(unit).collect()
}

const PAGES: &[(&str, Make)] = &[
    ("links", |n| "<link rel=ard href=/a>".repeat(n)),
    ("nested elements", |n| "<div>".repeat(n)),
    ("attributes", |n| format!("<link {} rel=ard href=/a>", numbered(n, |at| format!("a{at}=b ")))),
    ("quoted attributes", |n| {
        format!("<link {} rel=ard href=/a>", numbered(n, |at| format!("a{at}=\"b\" ")))
    }),
    ("attributes in single quotes", |n| format!("<link {}>", "a='b'".repeat(n))),
    ("attributes of end tags", |n| format!("</link {}>", "a='b' ".repeat(n))),
    ("attributes without values", |n| format!("<link {}>", "a ".repeat(n))),
    ("slashes in a tag", |n| format!("<link {}>", "/".repeat(n))),
    ("attributes between slashes", |n| format!("<link {}>", "a/".repeat(n))),
    ("equals signs", |n| format!("<link {}>", "= ".repeat(n))),
    ("identifiers of a doctype", |n| format!("<!doctype html public {}>", "'a' ".repeat(n))),
    ("escaped scripts", |n| format!("<script><!--{}", "<script></script>".repeat(n))),
    ("nearly ended titles", |n| format!("<title>{}", "</titl</".repeat(n))),
    ("dashes", |n| format!("<!--{}", "-".repeat(n))),
    ("open comments within a comment", |n| format!("<!--{}", "<!-".repeat(n))),
    ("bogus comments", |n| "<?a>".repeat(n)),
    ("numeric references", |n| format!("{}{}", "&#".repeat(n), "1".repeat(n))),
    ("a long reference", |n| format!("&#x{};", "0".repeat(n))),
    ("one attribute again and again", |n| format!("<link {}>", "a=b ".repeat(n))),
    ("a long attribute", |n| format!("<link rel=ard href='{}'>", "long".repeat(n))),
    ("a long name of an element", |n| format!("<{}>", "x".repeat(n))),
    ("entities", |n| "&ampamp;&#x41;&notit;".repeat(n)),
    ("entities in an attribute", |n| format!("<link href='{}'>", "&ampamp;&#x41;&notit;".repeat(n))),
    ("open entities", |n| "&".repeat(n)),
    ("comments", |n| "<!-- a -->".repeat(n)),
    ("an open comment", |n| format!("<!--{}", "- ".repeat(n))),
    ("comments that nearly end", |n| format!("<!--{}", "--!".repeat(n))),
    ("a doctype", |n| format!("<!doctype {}>", "html ".repeat(n))),
    ("text", |n| "a long text ".repeat(n)),
    ("open tags", |n| "<".repeat(n)),
    ("open quotes", |n| "<a b='".repeat(n)),
    ("end tags", |n| "</a>".repeat(n)),
    ("a script", |n| format!("<script>{}", "</scrip ".repeat(n))),
    ("null characters", |n| "<a\0>".repeat(n)),
    ("CDATA", |n| "<![CDATA[".repeat(n)),
];

#[test]
fn cost_of_pages_is_linear() {
    let read = |text: &str| drop(web::read_head(text.as_bytes()));
    assert_linear(PAGES, 500, 512 * 1_024, 8 * 1_024 * 1_024, read);
    assert_time_is_linear(PAGES, 2_000, read);
}

/// A page with one JSON-LD script.
fn script(json: &str) -> String {
    format!("<script type='application/ld+json'>{json}</script>")
}

/// A member that makes a node an entry of the site.
const IDENTIFIER: &str = r#""identifier": "urn:air:a.example:a", "displayName": "a""#;

const STRUCTURED_DATA: &[(&str, Make)] = &[
    ("scripts", |n| script("{}").repeat(n)),
    ("a list of nodes", |n| script(&format!("[{}1]", "{},".repeat(n)))),
    ("a list of entries", |n| script(&format!("[{}1]", format!("{{{IDENTIFIER}}},").repeat(n)))),
    ("nested lists", |n| script(&"[".repeat(n))),
    ("nested graphs", |n| script(&"{\"@graph\":[".repeat(n))),
    ("closed nested graphs", |n| {
        script(&format!("{}{}", "{\"@graph\":[".repeat(n.min(20)), "]}".repeat(n.min(20)))).repeat(n / 20)
    }),
    ("nodes of a graph with a large context", |n| {
        let terms = numbered(n, |at| format!("\"t{at}\": \"https://a.example/{at}\","));
        let nodes = format!("{{{IDENTIFIER}}},").repeat(n);
        script(&format!("{{\"@context\": {{{terms} \"z\": \"\"}}, \"@graph\": [{nodes} {{}}]}}"))
    }),
    ("a context for each node", |n| {
        let node = format!("{{\"@context\": {{\"a\": \"https://a.example/\"}}, {IDENTIFIER}}},");
        script(&format!("[{}1]", node.repeat(n)))
    }),
    ("members of a node", |n| {
        let members = numbered(n, |at| format!("\"m{at}\": 1,"));
        script(&format!("{{{members} {IDENTIFIER}}}"))
    }),
    ("identifiers of other sites", |n| {
        script(&format!("[{}1]", "{\"identifier\": \"urn:air:b.example:a\"},".repeat(n)))
    }),
    ("a long identifier", |n| script(&format!("{{\"identifier\": \"urn:air:{}\"}}", "a.".repeat(n)))),
    ("a long string", |n| script(&format!("{{\"name\": \"{}\"}}", "\\u0041".repeat(n)))),
    ("an open script", |n| format!("<script type='application/ld+json'>{}", "</scrip ".repeat(n))),
    ("scripts that nearly begin", |n| "<script type='application/ld+jso'></script>".repeat(n)),
    ("attributes of a script", |n| format!("<script {}>", numbered(n, |at| format!("a{at}='b' ")))),
    ("a long type", |n| format!("<script type='{}'></script>", "application/ld+json ".repeat(n))),
    ("text between scripts", |n| format!("{}{}", "a <b> ".repeat(n), script("{}"))),
];

#[test]
fn cost_of_structured_data_is_linear() {
    let site = manifest::SiteName::parse("a.example").unwrap();
    let read = |text: &str| drop(web::page_entries(text.as_bytes(), &site));
    let entry = script(&format!("{{{IDENTIFIER}}}"));
    assert!(web::page_entries(entry.as_bytes(), &site).is_some(), "the classes are entries");
    // the tree of one script takes at most 32 MiB
    assert_linear(STRUCTURED_DATA, 500, 512 * 1_024, 48 * 1_024 * 1_024, read);
    assert_time_is_linear(STRUCTURED_DATA, 500, read);
}

#[test]
fn reads_a_page_up_to_the_cap() {
    let page = format!("{}<link rel=ard href=/late>", " ".repeat(512 * 1_024));
    assert!(web::read_head(page.as_bytes()).links.is_empty());
}

const BODIES: &[(&str, Make)] = &[
    ("values", |n| format!("[{}0]", "0,".repeat(n))),
    ("empty lists", |n| format!("[{}0]", "[],".repeat(n))),
    ("members", |n| format!("{{{}\"z\":0}}", numbered(n, |at| format!("\"m{at}\":0,")))),
    ("one name again and again", |n| format!("{{{}\"z\":0}}", "\"a\":0,".repeat(n))),
    ("nested lists", |n| "[".repeat(n)),
    ("nested objects", |n| "{\"a\":".repeat(n)),
    ("a long string", |n| format!("\"{}\"", "\\u0041".repeat(n))),
    ("an open string", |n| format!("\"{}", "\\\"".repeat(n))),
    ("a long number", |n| "1".repeat(n)),
    ("spaces", |n| format!("[{}", " ".repeat(n))),
    ("commas", |n| ",".repeat(n)),
];

/// JSON bodies of requests and registries.
#[test]
fn cost_of_bodies_is_linear() {
    let read = |text: &str| {
        drop(budget::parse_within_budget::<serde_json::Value>(text.as_bytes(), &budget::BODY));
    };
    assert_linear(BODIES, 500, 4 * 1_024 * 1_024, 64 * 1_024 * 1_024, read);
    assert_time_is_linear(BODIES, 4_000, read);
}

#[test]
fn cost_of_link_headers_is_linear() {
    let classes: &[(&str, Make)] = &[
        ("links", |n| "</a>; rel=ard, ".repeat(n)),
        ("parameters", |n| format!("</a>{}", "; x=y".repeat(n))),
        ("relations", |n| format!("</a>; rel=\"{}\"", "ard ".repeat(n))),
        ("open targets", |n| "<".repeat(n)),
        ("open quotes", |n| "<a>; t=\"".repeat(n)),
        ("empty members", |n| ",".repeat(n)),
        ("a long target", |n| format!("<{}>; rel=ard", "x".repeat(n))),
    ];
    let read = |text: &str| drop(web::link_header(text));
    assert_linear(classes, 500, 32 * 1_024, 1_024 * 1_024, read);
    assert_time_is_linear(classes, 2_000, read);
}

#[test]
fn memory_for_xml_lists_is_constant() {
    let classes: &[(&str, Make)] = &[
        ("locations", |n| {
            format!("<urlset>{}</urlset>", "<url><loc>https://a.example/</loc></url>".repeat(n))
        }),
        ("outlines", |n| format!("<opml>{}</opml>", "<outline xmlUrl='https://a.example/'/>".repeat(n))),
        ("attributes", |n| format!("<opml><outline {}/></opml>", numbered(n, |at| format!("a{at}='b' ")))),
        ("one attribute again and again", |n| format!("<opml><outline {}/></opml>", "a='b' ".repeat(n))),
        ("a long attribute", |n| format!("<opml><outline xmlUrl='{}'/></opml>", "long".repeat(n))),
        ("nested elements", |n| "<a>".repeat(n)),
        ("nested elements with long names", |n| format!("<{}>", "x".repeat(60_000)).repeat(n / 60_000 + 1)),
        ("a long name", |n| format!("<{}>", "x".repeat(n))),
        ("a long text", |n| format!("<urlset><url><loc>{}", "long ".repeat(n))),
        ("many texts of one location", |n| format!("<urlset><url><loc>{}", "long<!-- a -->".repeat(n))),
        ("entities", |n| format!("<urlset><url><loc>{}", "&amp;&lt;&b;&#65;".repeat(n))),
        ("definitions", |n| format!("<!DOCTYPE a [{}]>", "<!ENTITY b 'c'>".repeat(n))),
        ("comments", |n| format!("<a>{}", "<!-- a -->".repeat(n))),
        ("an open comment", |n| format!("<!--{}", "- ".repeat(n))),
        ("CDATA", |n| format!("<urlset><url><loc>{}", "<![CDATA[a]]>".repeat(n))),
        ("instructions", |n| "<?a b?>".repeat(n)),
        ("open tags", |n| "<".repeat(n)),
    ];
    let read = |text: &str| {
        // In pieces, as from a file or a connection.
        let source = std::io::BufReader::with_capacity(8_192, text.as_bytes());
        drop(web::each_url(source, |url| assert!(url.len() <= 8_192)));
    };
    assert_linear(classes, 500, 4 * 1_024 * 1_024, 512 * 1_024, read);
    assert_time_is_linear(classes, 4_000, read);
}

#[test]
fn rejects_xml_events_over_the_cap() {
    let long = format!("<opml><outline text='{}'/></opml>", "x".repeat(70_000));
    let reason = web::each_url(long.as_bytes(), |_| ()).unwrap_err();
    assert!(reason.contains("longer than 65536 bytes"), "{reason}");
    let deep = "<a>".repeat(300);
    assert!(web::each_url(deep.as_bytes(), |_| ()).unwrap_err().contains("256 levels"));
    let mut found = 0;
    let many = format!("<opml>{}</opml>", "<outline xmlUrl='https://a.example/'/>".repeat(10_000));
    web::each_url(many.as_bytes(), |_| found += 1).unwrap();
    assert_eq!(found, 10_000);
}
