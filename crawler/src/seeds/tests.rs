//! Tests that read lists in every syntax, and lists with errors.

use std::io::Read as _;

use super::*;

#[path = "../../../crates/manifest/tests/support/damage.rs"]
mod damage;

fn reader() -> SeedReader<'static> {
    SeedReader::new(SiteScope::Public, &|| false)
}

fn read(text: &[u8]) -> (Vec<Seed>, SeedReport) {
    let mut seeds = Vec::new();
    let mut reader = reader();
    reader.read("list", text, |seed| seeds.push(seed)).unwrap();
    (seeds, reader.into_report())
}

#[test]
fn reads_every_line_syntax() {
    let text = "\u{feff}example.org\r\n# comment\r\n\r\n1,tranco.example\nBÜCHER.example  # books\n\
                https://api.shop.example/agents.json\nhttp://old.example\nshop.example/agent.json\n";
    let (seeds, report) = read(text.as_bytes());
    let hosts: Vec<&str> = seeds.iter().map(|seed| seed.host.as_str()).collect();
    assert_eq!(
        hosts,
        [
            "example.org",
            "tranco.example",
            "xn--bcher-kva.example",
            "api.shop.example",
            "old.example",
            "shop.example"
        ]
    );
    assert_eq!(seeds[1].rank, Some(1));
    assert_eq!(seeds[3].url.as_ref().unwrap().as_str(), "https://api.shop.example/agents.json");
    assert_eq!(seeds[4].url, None);
    assert_eq!(seeds[5].url.as_ref().unwrap().path(), "/agent.json");
    assert_eq!((report.read, report.rejected_count), (6, 0));
}

#[test]
fn a_rank_may_follow_the_name() {
    let (seeds, report) = read(b"site,rank\nmine.example,1\nskyhop.example;20\nharbour.example\t3\n");
    let found: Vec<(&str, Option<u32>)> = seeds.iter().map(|seed| (seed.host.as_str(), seed.rank)).collect();
    assert_eq!(
        found,
        [("mine.example", Some(1)), ("skyhop.example", Some(20)), ("harbour.example", Some(3))]
    );
    assert_eq!((report.read, report.rejected_count), (3, 1), "the line of titles is skipped");
    let (seeds, _) = read(b"https://mine.example/agents.json?v=1,2\n");
    let url = seeds[0].url.as_ref().map(ManifestUrl::as_str);
    assert_eq!((seeds[0].rank, url), (None, Some("https://mine.example/agents.json?v=1,2")));
}

/// A URL parser removes tabs: `https://a.example<TAB>x` would be `a.examplex`.
#[test]
fn a_line_with_a_tab_in_its_name_is_skipped() {
    let (seeds, report) =
        read(b"https://a.example\tx\nhttps://c.example\thttps://d.example\nb.example\tx\n7\tgood.example\n");
    let hosts: Vec<&str> = seeds.iter().map(|seed| seed.host.as_str()).collect();
    assert_eq!((hosts, report.rejected_count), (vec!["good.example"], 3));
    let reason = &report.rejected[0].reason;
    assert!(reason.starts_with("\"https://a.example\\tx\" has a tab"), "{reason}");
}

#[test]
fn a_list_in_utf16_is_refused_with_what_to_do() {
    for (mark, first) in [([0xff, 0xfe], true), ([0xfe, 0xff], false)] {
        let text = "a.example\n"
            .encode_utf16()
            .flat_map(|unit| if first { unit.to_le_bytes() } else { unit.to_be_bytes() });
        let bytes: Vec<u8> = mark.into_iter().chain(text).collect();
        let error = reader().read("list.txt", bytes.as_slice(), drop).unwrap_err().to_string();
        assert_eq!(error, "cannot read list.txt: its text is UTF-16: save it as UTF-8");
    }
}

/// Anyone can get a name into a ranking, a web graph, a log of certificates or a page of links.
#[test]
fn only_plain_lines_without_a_rank_count_as_listed_by_the_operator() {
    let origins = |name: &str, bytes: &[u8]| {
        let mut seeds = Vec::new();
        let mut reader = SeedReader::new(SiteScope::Public, &|| false);
        reader.read(name, bytes, |seed| seeds.push((seed.origin, seed.url.is_some()))).unwrap();
        seeds
    };
    let text = b"t1.a.example\n7,t2.a.example\n*.b.example\nhttps://t3.a.example/x.json\n8,https://t4.a.example/x.json\n";
    let (written, collected) = (SeedOrigin::File, SeedOrigin::Collected);
    let lines = [
        (written.clone(), false),
        (collected.clone(), false),
        (collected.clone(), false),
        (written, true),
        (collected.clone(), false),
    ];
    assert_eq!(origins("list.csv", text), lines);
    assert_eq!(origins("list.csv", &gzipped(text)), lines);
    assert_eq!(origins("list.zip", &archive_of([&text[..]])), lines);
    for (name, bytes) in [
        ("dump.json", &br#"[{"name_value":"t1.a.example"}]"#[..]),
        ("cc-main-2026-host-vertices.txt", b"0\texample.a.t1\n"),
        ("README.md", b"[one](https://t1.a.example/x.json)\n"),
        ("feeds.opml", br#"<opml><body><outline xmlUrl="https://t1.a.example/rss"/></body></opml>"#),
    ] {
        assert_eq!(origins(name, bytes), [(collected.clone(), false)], "{name}");
    }
}

#[test]
fn uses_a_line_of_the_operator_even_after_another_list_named_the_host() {
    let mut reader = SeedReader::new(SiteScope::Public, &|| false);
    let mut seeds = Vec::new();
    for list in [&b"1,a.example\n"[..], b"a.example\n", b"a.example\n2,a.example\n"] {
        reader.read("list", list, |seed| seeds.push(seed.origin)).unwrap();
    }
    assert_eq!(seeds, [SeedOrigin::Collected, SeedOrigin::File]);
    let report = reader.into_report();
    assert_eq!((report.read, report.duplicates), (1, 3));
}

#[test]
fn reports_and_skips_bad_lines_by_number() {
    let (seeds, report) = read(b"a.example\nnot a domain\n10.0.0.1\nftp://a.example/x\na.example:8443\nco.uk\nb.example\xff\nb.example\n");
    assert_eq!(seeds.len(), 2);
    let lines: Vec<u64> = report.rejected.iter().map(|rejected| rejected.line).collect();
    assert_eq!(lines, [2, 3, 4, 5, 6, 7]);
    assert!(report.rejected[1].reason.contains("IP address"), "{}", report.rejected[1].reason);
    assert!(report.rejected[4].reason.contains("public suffix"), "{}", report.rejected[4].reason);
}

#[test]
fn errors_quote_what_was_written() {
    for written in [
        "http://",
        "http://10.0.0.1/",
        "http://a.example:8443/x",
        "a.example:8443/x",
        "*.10.0.0.1",
        "http://u@a.example/",
    ] {
        let list = format!("a.example\n7,{written}\n");
        let (_, report) = read(list.as_bytes());
        let reason = &report.rejected[0].reason;
        let quoted = reason.split('"').nth(1).unwrap();
        assert!(written.contains(quoted) && !quoted.is_empty(), "{written}: {reason}");
    }
    let long = format!("a.example\nhttp://a.example/{}\n", "x".repeat(9_000));
    let (_, report) = read(long.as_bytes());
    let reason = &report.rejected[0].reason;
    assert!(reason.starts_with("\"http://a.example/x") && reason.contains("longer than"), "{reason}");
}

#[test]
fn accepts_private_names_when_their_addresses_are_allowed() {
    let list = b"a.example\nwiki.internal\nprinter.local\nx.onion\n127.in-addr.arpa\n";
    let (seeds, report) = read(list);
    assert_eq!((seeds.len(), report.rejected_count), (1, 4));
    assert!(report.rejected[0].reason.contains("--allow-addresses"), "{}", report.rejected[0].reason);
    let (mut reader, mut hosts) = (SeedReader::new(SiteScope::WithPrivateNames, &|| false), Vec::new());
    reader.read("list", &list[..], |seed| hosts.push(seed.host.to_string())).unwrap();
    assert_eq!(hosts, ["a.example", "wiki.internal", "printer.local"]);
}

#[test]
fn shows_site_texts_truncated_and_without_control_characters() {
    let line = format!("a.example\n\x1b[31mevil\x1b[0m\x07 {}\n", "x".repeat(100_000));
    let (_, report) = read(line.as_bytes());
    let [rejected] = report.rejected.as_slice() else { panic!("one line is bad") };
    for text in [&rejected.text, &rejected.reason] {
        assert!(text.contains("[31mevil"), "{text}");
        assert!(!text.contains(char::is_control) && text.len() <= 200, "{text}");
    }
}

#[test]
fn duplicates_count_once_across_sources() {
    let mut reader = reader();
    let mut hosts = Vec::new();
    reader.read("one", &b"a.example\nA.EXAMPLE.\n"[..], |seed| hosts.push(seed.host)).unwrap();
    reader.read("two", &b"a.example\nb.example"[..], |seed| hosts.push(seed.host)).unwrap();
    let report = reader.into_report();
    assert_eq!((hosts.len(), report.read, report.duplicates), (2, 2, 2));
}

#[test]
fn rejects_sources_without_seeds() {
    let empty = reader().read("list", &b"# nothing\n\n"[..], |_| {}).unwrap_err().to_string();
    assert!(empty.contains("list holds no seed"), "{empty}");
    let wrong = reader().read("list", &b"}\n}\n"[..], |_| {}).unwrap_err().to_string();
    assert!(
        wrong.contains("no line of list is a domain or a URL (2 read)") && wrong.contains("line 1"),
        "{wrong}"
    );
}

#[test]
fn skips_an_endless_line() {
    let mut text = vec![b'x'; 1 << 20];
    text.extend_from_slice(b"\na.example\n");
    let (seeds, report) = read(&text);
    assert_eq!((seeds.len(), report.rejected[0].line), (1, 1));
}

#[test]
fn reads_archives_and_feeds_as_lists() {
    use std::io::{Cursor, Write};
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file("top-1m.csv", zip::write::SimpleFileOptions::default()).unwrap();
    archive.write_all(b"1,a.example\r\n2,b.example\r\n").unwrap();
    let (seeds, report) = read(archive.finish().unwrap().get_ref());
    assert_eq!((seeds.len(), report.read, seeds[1].rank), (2, 2, Some(2)));

    let opml = br#"<?xml version="1.0"?><opml version="2.0"><body><outline text="News">
        <outline type="rss" xmlUrl="https://feeds.a.example/rss" htmlUrl="https://a.example/"/>
        <outline type="rss" xmlUrl="https://b.example/feed?x=1&amp;y=2"/></outline></body></opml>"#;
    let hosts = |seeds: &[Seed]| seeds.iter().map(|seed| seed.host.to_string()).collect::<Vec<_>>();
    let (seeds, _) = read(opml);
    assert_eq!(hosts(&seeds), ["feeds.a.example", "a.example", "b.example"]);
    assert!(seeds.iter().all(|seed| seed.url.is_none()), "a feed is not a manifest");

    let sitemap = b"\xef\xbb\xbf<urlset><url><loc> https://a.example/one </loc></url>\
        <url><loc><![CDATA[https://b.example/two]]></loc></url><url><loc>nowhere</loc></url></urlset>";
    let (seeds, report) = read(sitemap);
    assert_eq!(
        (hosts(&seeds), report.rejected_count),
        (vec!["a.example".to_owned(), "b.example".to_owned()], 1)
    );
}

#[test]
fn reports_files_that_only_look_like_archives_or_xml() {
    for bytes in [&b"PK\x03\x04nothing"[..], b"<opml><body>"] {
        let error = reader().read("list", bytes, |_| {}).unwrap_err().to_string();
        assert!(error.contains("list"), "{error}");
    }
    for page in [&b"<html><p>hello</html>"[..], b"\n<!DOCTYPE html>\n<head><link></head>"] {
        let error = reader().read("https://shop.example/", page, |_| {}).unwrap_err().to_string();
        assert!(error.contains("https://shop.example/: it is a web page, not a list"), "{error}");
    }
}

#[test]
fn an_archive_is_read_from_its_first_list() {
    use std::io::{Cursor, Write};
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in
        [("readme.pdf", "x"), ("lists/", ""), ("lists/TOP.CSV", "1,a.example\n"), ("z.txt", "b.example")]
    {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    let (seeds, _) = read(&archive.finish().unwrap().into_inner());
    let hosts: Vec<&str> = seeds.iter().map(|seed| seed.host.as_str()).collect();
    assert_eq!(hosts, ["a.example"]);
}

#[test]
fn rejects_names_that_no_certificate_can_contain_and_states_the_reason() {
    let (seeds, report) = read(b"-bad-.com\nhttps://a.-b.example/agent.json\na--b.example\n");
    assert_eq!((seeds.len(), report.rejected_count), (1, 2));
    assert!(report.rejected[0].reason.contains("\"-bad-\" begins or ends with a hyphen"), "{report:?}");
}

/// A zip archive of files with these contents.
fn archive_of<'c>(contents: impl IntoIterator<Item = &'c [u8]>) -> Vec<u8> {
    use std::io::{Cursor, Write};
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (number, content) in contents.into_iter().enumerate() {
        archive.start_file(format!("{number}.csv"), zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn reads_archived_lists_without_holding_them_in_memory() {
    let rank = |line: u32| line.wrapping_mul(2_654_435_761);
    let lines: Vec<String> = (0..60_000).map(|line| format!("{},same.example\n", rank(line))).collect();
    let list = lines.concat();
    let bytes = archive_of([list.as_bytes()]);
    assert!(list.len() < 40 * bytes.len(), "the list has a realistic compression ratio");
    let spent = allocation_counter::measure(|| {
        let mut reader = reader();
        reader.read("list", bytes.as_slice(), |_| ()).unwrap();
        assert_eq!(reader.into_report().duplicates, 59_999);
    });
    let beside_the_archive = spent.bytes_max.saturating_sub(3 * bytes.len() as u64);
    assert!(beside_the_archive < 256 * 1_024, "{} bytes for a list of {}", beside_the_archive, list.len());
}

#[test]
fn rejects_archives_that_expand_too_much() {
    let bomb = archive_of([vec![b'\n'; 32 << 20].as_slice()]);
    let spent = allocation_counter::measure(|| {
        let error = reader().read("list", bomb.as_slice(), |_| {}).unwrap_err().to_string();
        assert!(error.contains("50 times its size"), "{error}");
    });
    assert!(spent.bytes_max < 1 << 20, "{} bytes", spent.bytes_max);
}

#[test]
fn rejects_archives_of_too_many_files_early() {
    let crowd = archive_of(std::iter::repeat_n(&b"a.example\n"[..], 2_000));
    let error = reader().read("list", crowd.as_slice(), |_| {}).unwrap_err().to_string();
    assert!(error.contains("more than 1000 files"), "{error}");
}

/// The hosts and the report of a source with this name.
fn read_named(name: &str, bytes: &[u8]) -> (Vec<String>, SeedReport) {
    let mut hosts = Vec::new();
    let mut reader = reader();
    reader.read(name, bytes, |seed| hosts.push(seed.host.to_string())).unwrap();
    (hosts, reader.into_report())
}

#[test]
fn reads_common_crawl_lists() {
    let ranks = b"#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\t#n_hosts\n\
                  1\t2.9E7\t3\t0.01\tcom.example\t70\n2\t2.8E7\t1\t0.02\torg.example.www\t2\n";
    let (seeds, report) = read(ranks);
    let found: Vec<(&str, Option<u32>)> = seeds.iter().map(|seed| (seed.host.as_str(), seed.rank)).collect();
    assert_eq!(found, [("example.com", Some(1)), ("www.example.org", Some(2))]);
    assert_eq!((report.sources[0].kind, report.sources[0].names), ("Common Crawl", 2));
    let (hosts, _) =
        read_named("lists/cc-main-2026-domain-vertices.txt", b"0\tcom.example\t4\n1\torg.example\t1\n");
    assert_eq!(hosts, ["example.com", "example.org"]);
}

#[test]
fn reads_certificates_and_their_wildcards() {
    let crt_sh = br#"[{"common_name":"a.example","name_value":"*.b.example\na.example"}]"#;
    let (hosts, report) = read_named("dump.json", crt_sh);
    assert_eq!(hosts, ["a.example", "b.example"]);
    assert_eq!((report.duplicates, report.sources[0].kind, report.sources[0].names), (1, "JSON", 3));
    let (hosts, _) = read_named("names.txt", b"*.c.example\nd.example\n");
    assert_eq!(hosts, ["c.example", "d.example"]);
}

#[test]
fn reads_the_hosts_of_links_in_markdown() {
    let text = b"# Awesome agents\n- [One](https://one.example/path#part) and <http://two.example/>, see https://three.example.\n\
                 ![logo](./logo.png) [mail](mailto:a@b.example)\n| [Four](https://four.example/a_(b)) |\n";
    let mut seeds = Vec::new();
    let mut reader = reader();
    reader.read("README.md", &text[..], |seed| seeds.push(seed)).unwrap();
    let hosts: Vec<&str> = seeds.iter().map(|seed| seed.host.as_str()).collect();
    assert_eq!(hosts, ["one.example", "two.example", "three.example", "four.example"]);
    assert!(seeds.iter().all(|seed| seed.url.is_none()), "{seeds:?}");
    assert_eq!(reader.into_report().sources[0].kind, "links");
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn reads_compressed_lists_and_refuses_bombs() {
    let two_members = [gzipped(b"a.example\n"), gzipped(b"b.example\n")].concat();
    assert_eq!(read_named("list.txt.gz", &two_members).0, ["a.example", "b.example"]);
    let graph = gzipped(b"0\tcom.example\t4\n");
    assert_eq!(read_named("cc-main-2026-domain-vertices.txt.gz", &graph).0, ["example.com"]);
    let bomb = gzipped(&vec![b'\n'; 20 * 1024 * 1024]);
    let failed = reader().read("bomb.gz", bomb.as_slice(), |_| ()).unwrap_err();
    assert!(failed.to_string().contains("50 times its size"), "{failed}");
}

#[test]
fn reading_a_source_stops_at_the_limit_of_names() {
    for (name, text) in [
        ("list", &b"a.example\nb.example\nc.example\nd.example\n"[..]),
        ("dump", br#"{"names":["a.example","b.example","c.example","d.example"]}"#),
    ] {
        let mut hosts = Vec::new();
        let mut reader = reader();
        let limits = SourceLimits { names: 2, ..LOCAL };
        reader.read_within(&limits, name, text, |seed| hosts.push(seed.host.to_string())).unwrap();
        assert_eq!(hosts, ["a.example", "b.example"], "{name}");
        let report = reader.into_report();
        assert!(report.sources[0].is_cut && report.sources[0].names == 2, "{report:?}");
    }
}

#[test]
fn an_endless_line_is_an_error() {
    let endless = b"a.example\n".chain(io::repeat(b'x'));
    let read = reader().read("list", endless, |_| ());
    let Err(SeedError::Unreadable { source, .. }) = read else { panic!("it was read") };
    assert_eq!(source.to_string(), "line 2 has more than 16777216 bytes");
}

/// A line counts whether it is a name, a duplicate, rejected, a comment or empty.
#[test]
fn all_lines_of_a_fetched_list_are_bounded() {
    let limits = SourceLimits { lines: 3, ..FETCHED };
    for (name, text) in [
        ("rejected", &b"a.example\nnot a domain\n10.0.0.1\nb.example\n"[..]),
        ("empty", b"a.example\n\n# comment\nb.example\n"),
        ("duplicates", b"a.example\na.example\na.example\nb.example\n"),
        ("list.md", b"https://a.example/\ntext\ntext\nhttps://b.example/\n"),
        ("cc-main-a.txt", b"0\texample.a\n#\n#\n1\texample.b\n"),
        ("dump", br#"{"names":["a.example","-","10.0.0.1","b.example"]}"#),
        (
            "links",
            b"<opml><outline xmlUrl='https://a.example/'/><outline xmlUrl='-'/><outline xmlUrl='-'/>\
              <outline xmlUrl='https://b.example/'/></opml>",
        ),
    ] {
        let (mut hosts, mut reader) = (Vec::new(), reader());
        reader.read_within(&limits, name, text, |seed| hosts.push(seed.host.to_string())).unwrap();
        assert_eq!(hosts.last().map(String::len), Some("a.example".len()), "{name}: {hosts:?}");
        assert!(reader.into_report().sources[0].is_cut, "{name}");
    }
}

#[test]
fn the_length_of_a_fetched_list_is_bounded_after_decompression() {
    let limits = SourceLimits { bytes: 2 << 20, ..FETCHED };
    let list = (0..250_000).map(|line| format!("#{line:x}.example\n")).collect::<Vec<_>>().concat();
    for bytes in [archive_of([list.as_bytes()]), gzipped(list.as_bytes()), list.clone().into_bytes()] {
        let refused = reader().read_within(&limits, "list", bytes.as_slice(), |_| ()).unwrap_err();
        assert!(refused.to_string().contains("is longer than"), "{refused}");
    }
    let bytes = archive_of([list.as_bytes()]);
    let limits = SourceLimits { archive_bytes: 1_000, ..FETCHED };
    let refused = reader().read_within(&limits, "list", bytes.as_slice(), |_| ()).unwrap_err().to_string();
    assert!(refused.contains("the archive is larger than"), "{refused}");
}

/// A fetched list may take 128 MiB in addition to its bytes. Half of that is for the batches and for the names that `--follow-seeds`
/// remembers. The test reads a thirtieth of the largest list.
#[test]
fn a_fetched_list_stays_within_the_memory_budget() {
    let part = FETCHED_NAMES_MAX / 30;
    let list = (0..part).map(|line| format!("{line:x}.example\n")).collect::<Vec<_>>().concat();
    for bytes in [archive_of([list.as_bytes()]), gzipped(list.as_bytes()), list.clone().into_bytes()] {
        let spent = allocation_counter::measure(|| {
            let mut reader = reader();
            reader.read_fetched("list", bytes.as_slice(), |_| ()).unwrap();
            assert_eq!(reader.into_report().read, part);
        });
        assert!(spent.bytes_max <= (64 << 20) / 30, "{} bytes for {part} names", spent.bytes_max);
    }
}

/// Lists whose cost could grow faster than their length. The function makes a list of `n` units.
type List = (&'static str, fn(usize) -> Vec<u8>);

const HOSTILE_LISTS: &[List] = &[
    ("names", |n| (0..n).map(|at| format!("{at}.example\n")).collect::<Vec<_>>().concat().into_bytes()),
    ("rejected lines", |n| "not a domain\n".repeat(n).into_bytes()),
    ("a long line", |n| "a.".repeat(n).into_bytes()),
    ("labels", |n| format!("{}\n", "a.".repeat(120)).repeat(n / 100).into_bytes()),
    ("international names", |n| "b\u{fc}cher.example\n".repeat(n).into_bytes()),
    ("list.md", |n| "[a](https://a.example/x) http http:// ".repeat(n).into_bytes()),
    ("cc-main-list.txt", |n| format!("0\t{}\n", "a.".repeat(100)).repeat(n / 50).into_bytes()),
    ("certificates", |n| format!("[{{\"names\":[{}", "\"a.example b.example\",".repeat(n)).into_bytes()),
    ("nested certificates", |n| "[{\"names\":".repeat(n).into_bytes()),
    ("a long string", |n| format!("{{\"names\":\"{}", "\\n\\u0041".repeat(n)).into_bytes()),
    ("links", |n| {
        format!("<opml>{}</opml>", "<outline xmlUrl='https://a.example/'/>".repeat(n)).into_bytes()
    }),
    ("files of an archive", |n| archive_of(std::iter::repeat_n(&b"a.example\n"[..], n / 4))),
    ("an archived list", |n| archive_of(["a.example\n".repeat(n).as_bytes()])),
    ("members of a gzip file", |n| gzipped(b"a.example\n").repeat(n)),
    ("a compressed list", |n| gzipped("a.example\n".repeat(n).as_bytes())),
    ("a gzip header with a long name", |n| {
        [b"\x1f\x8b\x08\x08\0\0\0\0\0\xff".to_vec(), b"a".repeat(n)].concat()
    }),
];

/// Doubling a list at most doubles what reading it allocates, apart from containers that grow by powers of two.
#[test]
fn cost_of_every_kind_of_list_is_linear() {
    let cost = |name: &str, bytes: &[u8]| {
        allocation_counter::measure(|| drop(reader().read_fetched(name, bytes, |_| ())))
    };
    for (name, make) in HOSTILE_LISTS {
        // The first reading builds tables that all readings share.
        cost(name, &make(100));
        let (single, double) = (cost(name, &make(1_500)), cost(name, &make(3_000)));
        let within = |one: u64, two: u64, slack: u64| 10 * two <= 23 * one + 10 * slack;
        assert!(
            within(single.bytes_total, double.bytes_total, 128 * 1_024),
            "{name}: {single:?}, {double:?}"
        );
        assert!(within(single.count_total, double.count_total, 200), "{name}: {single:?}, {double:?}");
        assert!(double.bytes_max <= 2 * 1_024 * 1_024, "{name}: {double:?}");
    }
}

/// Reading a damaged copy of a list, of any kind, returns an error or names.
#[test]
fn reading_a_damaged_list_returns_an_error_or_names() {
    const TOKENS: &[&str] =
        &["PK\u{3}\u{4}", "PK\u{1}\u{2}", "\u{1f}", "<", ">", "\"", "[", "\n", "\0", "://", ".", "&#0;", "#"];
    for (at, (name, make)) in HOSTILE_LISTS.iter().enumerate() {
        let list = make(40);
        for copy in 0..50 {
            let bytes = damage::damaged(&list, TOKENS, (at * 50 + copy) as u64);
            let (mut reader, mut read) = (reader(), 0);
            let outcome = reader.read_fetched(name, bytes.as_slice(), |_| read += 1);
            assert_eq!(read, reader.into_report().read, "{name}: {outcome:?}");
        }
    }
}

/// A mistyped name may be that of a known site, so no site is deleted while a list has one.
#[test]
fn lines_that_may_be_mistyped_names_are_counted() {
    let mistyped = |text: &str| read(text.as_bytes()).1.mistyped;
    assert_eq!(mistyped("a.example.org\nother..example.org\nhttp://\n"), 2);
    assert_eq!(mistyped("rank,domain\n1,a.example.org\n2,_dmarc..example.org\nco.uk\n10.0.0.1\n"), 0);
}
