//! Tests the rules of RFC 9309 with tables of cases, and invariants with random files.

use std::time::Duration;

use chrono::{TimeZone, Utc};
use http::HeaderMap;
use manifest::model::PolicyChoice;
use proptest::prelude::*;

use super::file::CRAWL_DELAY_MAX;
use super::*;
use crate::ContentUsage;
use crate::outcome::{FetchOutcome, RobotsKind};
use crate::redirect::RedirectRefusal;

fn allowed(body: &str, path: &str) -> bool {
    verdict(body).decide(path).is_allowed()
}

fn verdict(body: &str) -> RobotsVerdict {
    RobotsVerdict::of(RobotsResponse::Answered { status: 200, body: Some(body.as_bytes()) }, PRODUCT_TOKEN)
}

fn file(body: &[u8]) -> RobotsFile {
    RobotsFile::parse(body, PRODUCT_TOKEN)
}

/// Each row contains a file, a path, whether the path is allowed, and the purpose of the row.
fn check(table: &[(&str, &str, bool, &str)]) {
    for (body, path, expected, about) in table {
        assert_eq!(allowed(body, path), *expected, "{about}: {path} under\n{body}");
    }
}

#[test]
fn disallows_paths_that_are_expensive_to_compare() {
    let file = verdict(&format!("user-agent: *\n{}", "allow: *b*\n".repeat(20_000)));
    assert!(file.decide("/agent.json").is_allowed());
    let long = format!("/{}", "b".repeat(8_000));
    assert_eq!(file.decide(&long), RobotsDecision::TooMuchWork);
    assert_eq!(RobotsDecision::TooMuchWork.outcome(), Some(FetchOutcome::RobotsDenied));
    assert_eq!(file.decide(&format!("/{}", "b".repeat(499))), RobotsDecision::TooMuchWork);
    assert!(file.decide(&long).to_string().contains("too many rules with wildcards"));
    assert_eq!(file.decide("/robots.txt"), RobotsDecision::Allowed(None));
    assert!(verdict("user-agent: *\nallow: *b*\n").decide(&long).is_allowed());
}

/// "User-agent: *\nDisallow: /\n" as raw DEFLATE (RFC 1951).
const DEFLATED: &[u8] = &[
    0x0b, 0x2d, 0x4e, 0x2d, 0xd2, 0x4d, 0x4c, 0x4f, 0xcd, 0x2b, 0xb1, 0x52, 0xd0, 0xe2, 0x72, 0xc9, 0x2c,
    0x4e, 0xcc, 0xc9, 0xc9, 0x2f, 0xb7, 0x52, 0xd0, 0xe7, 0x02, 0x00,
];

#[test]
fn a_compressed_body_without_its_encoding_allows_nothing() {
    let rules = b"user-agent: *\nallow: /\n";
    let join = |start: &[u8], rest: &[u8]| [start, rest].concat();
    let compressed = [
        join(b"\x1f\x8b\x08", rules),
        join(b"\x28\xb5\x2f\xfd", rules),
        join(b"\x78\x9c", DEFLATED),
        join(b"\x78\x01", DEFLATED),
        DEFLATED.to_vec(),
    ];
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0".to_vec();
    let noise: Vec<u8> = (0..2_000_u32).map(|at| (at * at * 31 + at * 7).to_le_bytes()[1]).collect();
    for body in compressed.into_iter().chain([png, noise]) {
        let answer = RobotsResponse::Answered { status: 200, body: Some(&body) };
        let stored =
            StoredVerdict { kind: RobotsKind::Rules, cause: None, status: Some(200), body: Some(&body) };
        for verdict in
            [RobotsVerdict::of(answer, PRODUCT_TOKEN), RobotsVerdict::restore(stored, PRODUCT_TOKEN)]
        {
            assert_eq!(verdict.kind(), RobotsKind::Unreachable, "{body:?}");
            assert!(!verdict.decide("/agent.json").is_allowed(), "{body:?}");
        }
        let answered = RobotsVerdict::of(answer, PRODUCT_TOKEN);
        assert_eq!(answered.cause(), Some(RobotsCause::BodyNotRead));
    }
    assert!(allowed("# \u{1b}$B%m%\u{1b}(B\nuser-agent: *\ndisallow: /a\0", "/x"), "text with some controls");
}

#[test]
fn applies_a_prohibition_that_is_visible_to_a_person() {
    let hidden = [
        "\u{200b}",
        "\u{2060}",
        "\u{ad}",
        "\u{180e}",
        "\u{a0}",
        "\u{3000}",
        "\u{feff}",
        "\u{c}",
        "\u{b}",
        "\u{85}",
        "\u{200e}",
        "\u{202e}",
        "\u{2028}",
        "\u{fe0f}",
        "\0",
        "\u{7f}",
        "\u{feff}\u{feff}\u{200b}",
    ];
    for hidden in hidden {
        for file in [
            format!("{hidden}User-agent: *\n{hidden}Disallow: /"),
            format!("User-agent: *\n{hidden} {hidden}Disallow: /"),
            format!("User-agent:{hidden}*\nDisallow:{hidden}/"),
            format!("User-agent: *{hidden}\nDisallow: /{hidden}"),
            format!("User-agent{hidden}: *\nDisallow{hidden} : /"),
            format!("User-agent: other\nAllow: /\n\n{hidden}User-agent: agentdex\nDisallow: /"),
            format!("User-agent: *\nDisallow: /{hidden}x\nDisallow: /a"),
        ] {
            assert!(!allowed(&file, "/a"), "{file:?}");
        }
        let within = format!("User-agent: *\nDis{hidden}allow: /");
        let is_line_break =
            matches!(hidden, "\u{b}" | "\u{c}" | "\u{85}" | "\u{2028}" | "\u{a0}" | "\u{3000}");
        assert!(is_line_break || !allowed(&within, "/a"), "{within:?}");
        for permits in [
            format!("User-agent: *\nDisallow: /\n{hidden}Allow: /"),
            format!("User-agent: *\nDisallow: /\nAllow:{hidden}/"),
            format!("User-agent: *\nDisallow: /\n{hidden}User-agent: other\nAllow: /"),
            format!("User-agent: *\nDisallow: /\n{hidden}User-agent: agentdex\nAllow: /"),
        ] {
            assert!(!allowed(&permits, "/a"), "{permits:?}");
        }
    }
    check(&[
        ("User-agent: *\u{b}Disallow: /", "/x", false, "a line break that some editors show"),
        ("# all\u{2028}User-agent: *\u{2028}Disallow: /", "/x", false, "even in a comment"),
        ("User-agent: *\nDisallow: /a\u{200c}b", "/a\u{200c}b", false, "a path with the character"),
        ("User-agent: *\nDisallow: /a\u{200c}b", "/ab", false, "and without it"),
        ("User-agent: *\nDisallow：/", "/x", false, "a colon of full width"),
        (
            "\u{feff}\u{feff}User-agent: *\nDisallow: /\nAllow: /x",
            "/x",
            true,
            "marks at the beginning of a file",
        ),
        ("User-agent: *\nDisallow: /b\u{a0}\nAllow: /", "/x", true, "other lines can allow"),
    ]);
    let latin1 = RobotsFile::parse(b"\xa0User-agent: *\n\xa0Disallow: /\xa0", PRODUCT_TOKEN);
    assert!(!latin1.decide("/x").is_allowed());
}

#[test]
fn reads_two_and_four_bytes_for_each_character() {
    let text = "user-agent: *\ndisallow: /private\n";
    let wide = |bytes: usize, is_big_endian: bool| -> Vec<u8> {
        text.bytes()
            .flat_map(|byte| {
                let mut unit = vec![0; bytes];
                unit[if is_big_endian { bytes - 1 } else { 0 }] = byte;
                unit
            })
            .collect()
    };
    for (mark, bytes, is_big_endian) in [
        (&b""[..], 2, false),
        (b"", 2, true),
        (b"", 4, false),
        (b"", 4, true),
        (b"\xff\xfe", 2, false),
        (b"\xfe\xff", 2, true),
        (b"\xff\xfe\0\0", 4, false),
        (b"\0\0\xfe\xff", 4, true),
    ] {
        let body = [mark, &wide(bytes, is_big_endian)].concat();
        let verdict =
            RobotsVerdict::of(RobotsResponse::Answered { status: 200, body: Some(&body) }, PRODUCT_TOKEN);
        assert!(!verdict.decide("/private").is_allowed(), "{bytes} bytes, mark {mark:?}");
        assert!(verdict.decide("/x").is_allowed());
    }
}

#[test]
fn paths_that_are_compared_together_share_the_work() {
    let file = verdict(&format!("user-agent: *\n{}", "allow: *b*\n".repeat(5_000)));
    let paths: Vec<String> = (0..100).map(|number| format!("/{}{number}", "a".repeat(2_000))).collect();
    let decisions = file.decide_all(&paths);
    let compared = decisions.iter().take_while(|decision| decision.is_allowed()).count();
    assert!((10..90).contains(&compared), "{compared} are compared");
    assert!(decisions[compared..].iter().all(|decision| *decision == RobotsDecision::TooMuchWork));
    assert!(!file.is_short_work(&paths) && verdict("").is_short_work(&paths));
    assert!(verdict("user-agent: *\ndisallow: /*.php\n").is_short_work(&paths));
}

#[test]
fn evaluates_simple_files() {
    check(&[
        ("", "/x", true, "an empty file permits everything"),
        ("\n\n# nothing\n", "/x", true, "so does one of comments"),
        ("user-agent: agentdex\ndisallow: /", "/x", false, "our own group"),
        ("user-agent: agentdex, gptbot\ndisallow: /", "/x", false, "a list that begins with us"),
        ("user-agent: gptbot, agentdex\ndisallow: /", "/x", false, "a list that ends with us"),
        ("user-agent: gptbot; agentdex/1.0 | other\ndisallow: /", "/x", false, "other separators"),
        ("user-agent: agentdex;\ndisallow: /", "/x", false, "a character after the token"),
        ("user-agent: agentdex*\ndisallow: /", "/x", false, "a star after the token"),
        ("user-agent: agentdex(bot)\ndisallow: /", "/x", false, "a comment after the token"),
        ("user-agent: \"agentdex\"\ndisallow: /", "/x", false, "quotes"),
        ("user-agent: gptbot, *\ndisallow: /", "/x", false, "everyone in a list"),
        ("user-agent: agentdex-images\ndisallow: /", "/x", true, "a longer token is another crawler"),
        ("user-agent: not-agentdex, agent\ndisallow: /", "/x", true, "tokens are compared whole"),
        ("user-agent: *\ndisallow: /", "/x", false, "the group of everyone"),
        ("user-agent: *\ndisallow:", "/x", true, "an empty rule forbids nothing"),
        ("user-agent: *\ndisallow: /", "/robots.txt", true, "robots.txt is always allowed"),
        ("user-agent: *\ndisallow: /robots.txt", "/robots.txt", true, "even when it is named"),
        ("user-agent: other\ndisallow: /", "/x", true, "a group of another crawler"),
        ("foo: agentdex\nbar: /", "/x", true, "unknown fields"),
        ("user-agent agentdex\ndisallow /", "/x", false, "missing colons"),
        (
            "disallow: /\nuser-agent: other\nallow: /",
            "/x",
            true,
            "rules before the first group apply to no crawler",
        ),
    ]);
}

#[test]
fn combines_and_selects_groups() {
    let several = "allow: /foo/bar/\n\nuser-agent: agentdex\ndisallow: /\nallow: /x/\nuser-agent: barbot\n\
                   disallow: /\nallow: /y/\n\nallow: /w/\nuser-agent: bazbot\n\nuser-agent: agentdex\nallow: /z/\n\
                   disallow: /\n";
    check(&[
        (several, "/x/b", true, "the first of two own groups"),
        (several, "/z/d", true, "the second is combined with it"),
        (several, "/y/c", false, "another crawler's rule"),
        (several, "/w/a", false, "an empty line does not end a group"),
        (several, "/foo/bar/", false, "ungrouped rules are dropped"),
        (
            "user-agent: a\nuser-agent: agentdex\nuser-agent: b\ndisallow: /x",
            "/x",
            false,
            "several agents, one group",
        ),
        (
            "user-agent: agentdex\nallow: /\nuser-agent: *\ndisallow: /",
            "/x",
            true,
            "our own group overrides the group of everyone",
        ),
        ("user-agent: *\ndisallow: /\nuser-agent: agentdex\n", "/x", true, "even an empty own group"),
        (
            "user-agent: *\ndisallow: /a\nuser-agent: b\ndisallow: /b\nuser-agent: *\ndisallow: /c",
            "/c",
            false,
            "groups of everyone are combined too",
        ),
        (
            "user-agent: b\nsitemap: https://a.example/s\nuser-agent: *\ndisallow: /",
            "/x",
            false,
            "a sitemap between agents does not end the group",
        ),
        (
            "user-agent: agentdex\nnoindex: /\nuser-agent: b\ndisallow: /",
            "/x",
            false,
            "nor does an unknown field",
        ),
        (
            "user-agent: agentdex\ncrawl-delay: 1\nuser-agent: b\ndisallow: /",
            "/x",
            false,
            "nor does a Crawl-delay",
        ),
        (
            "user-agent: agentdex\ndisallow: /a\ncrawl-delay: 5\nuser-agent: b\ndisallow: /b",
            "/b",
            true,
            "a rule before it does",
        ),
    ]);
}

#[test]
fn matches_crawler_names_without_version() {
    for name in [
        "agentdex",
        "AgentDex",
        "AGENTDEX",
        "agentdex/1.0",
        "agentdex 1.0",
        "agentdex (+https://a.example)",
        " agentdex\t",
    ] {
        assert!(!allowed(&format!("User-agent: {name}\nDisallow: /"), "/x"), "{name:?} is this crawler");
    }
    for name in ["agentdexx", "agent", "agentdex-news", "xagentdex", "agentdex2", "", "**"] {
        assert!(allowed(&format!("User-agent: {name}\nDisallow: /"), "/x"), "{name:?} is another crawler");
    }
    assert!(!allowed("User-agent: * \nDisallow: /", "/x"));
    assert!(!allowed("User-agent: * all of you\nDisallow: /", "/x"));
}

#[test]
fn the_longest_matching_rule_applies() {
    let rules = |lines: &str| format!("user-agent: agentdex\n{lines}");
    let table = [
        ("disallow: /x/page.html\nallow: /x/", "/x/page.html", false),
        ("allow: /x/page.html\ndisallow: /x/", "/x/page.html", true),
        ("allow: /x/page.html\ndisallow: /x/", "/x/", false),
        ("disallow: \nallow: ", "/x/page.html", true),
        ("disallow: /\nallow: /", "/x/page.html", true),
        ("disallow: /x\nallow: /x/", "/x", false),
        ("disallow: /x\nallow: /x/", "/x/", true),
        ("disallow: /x/page.html\nallow: /x/page.html", "/x/page.html", true),
        ("allow: /page\ndisallow: /*.html", "/page.html", false),
        ("allow: /page\ndisallow: /*.html", "/page", true),
        ("allow: /x/page.\ndisallow: /*.html", "/x/page.html", true),
        ("allow: /x/page.\ndisallow: /*.html", "/x/y.html", false),
        ("disallow: /x/\nallow: /X/", "/x/y", false),
        ("allow: /p\ndisallow: /", "/page", true),
        ("allow: /folder\ndisallow: /folder", "/folder/page", true),
        ("allow: /page\ndisallow: /*.htm", "/page.htm", false),
        ("allow: /$\ndisallow: /", "/", true),
        ("allow: /$\ndisallow: /", "/page.html", false),
        ("allow: /.well-known/\ndisallow: /", "/.well-known/agent.json", true),
        ("disallow: /foo/quz#qux\nallow: /", "/foo/quz", false),
        ("disallow: /private\nallow: public", "/public", true),
        ("disallow: /\nallow: public", "/public", false),
        ("disallow: private", "/private", false),
    ];
    for (lines, path, expected) in table {
        assert_eq!(allowed(&rules(lines), path), expected, "{path} under {lines:?}");
    }
}

#[test]
fn accepts_encodings_and_misspellings() {
    for typo in ["Disalow", "Dissallow", "Dissalow", "Diasllow", "Disallaw", "DISALLOW"] {
        assert!(!allowed(&format!("User agent: *\n{typo}: /x"), "/x"), "{typo}");
    }
    check(&[
        ("useragent: *\ndisallow: /", "/x", false, "useragent"),
        ("user-agent: *\ndisallow: /ツ", "/%E3%83%84", false, "non-ASCII in the file"),
        ("user-agent: *\ndisallow: /%e3%83%84", "/ツ", false, "non-ASCII in the path"),
        ("user-agent: *\ndisallow: /%7Ejoe", "/~joe", false, "escaped unreserved in the file"),
        ("user-agent: *\ndisallow: /~joe", "/%7ejoe", false, "and in the path"),
        ("user-agent: *\ndisallow: /a%2Fb", "/a/b", true, "reserved stays escaped"),
        ("\u{feff}user-agent: *\ndisallow: /", "/x", false, "byte order mark"),
        ("\u{feff}\u{feff}user-agent: *\n\u{a0} disallow:\u{a0}/", "/x", false, "invisible characters"),
        (
            "user-agent: other\nallow: /\n\u{feff}user-agent:\u{200b}*\ndisallow: /",
            "/x",
            false,
            "byte order mark of a joined file",
        ),
        ("user-agent: *\ndisallow: /\nallow:\u{a0}/x\n\u{a0}allow: /x", "/x", false, "which permit nothing"),
        ("user-agent: *\r\ndisallow: /\r\n", "/x", false, "CR LF"),
        ("user-agent: *\rdisallow: /\r", "/x", false, "CR"),
        ("user-agent: *\ndisallow: /a\u{0}", "/a", false, "NUL at the end"),
    ]);
    let latin1 = RobotsFile::parse(b"user-agent: *\ndisallow: /caf\xe9", PRODUCT_TOKEN);
    assert!(!latin1.decide("/caf%E9").is_allowed());
}

#[test]
fn reports_the_deciding_rule() {
    let body = "User-agent: *\nDisallow: /private # ours\nAllow: /private/open\n";
    let rule = |line, text: &str| RuleLine { line, text: text.to_owned() };
    assert_eq!(
        verdict(body).decide("/private/x"),
        RobotsDecision::Disallowed(Some(rule(2, "Disallow: /private")))
    );
    assert_eq!(
        verdict(body).decide("/private/open"),
        RobotsDecision::Allowed(Some(rule(3, "Allow: /private/open")))
    );
    assert_eq!(verdict(body).decide("/"), RobotsDecision::Allowed(None));
    assert_eq!(verdict(body).decide("/private/x").to_string(), "disallowed by line 2: Disallow: /private");
}

#[test]
fn parses_and_clamps_crawl_delays() {
    let delay = |lines: &str| file(format!("user-agent: *\n{lines}").as_bytes());
    let table = [
        ("crawl-delay: 5", Some(5_000), None),
        ("crawl-delay: 0.5", Some(500), None),
        ("crawl-delay: 10s", Some(10_000), None),
        ("crawl-delay: 5\ncrawl-delay: 7", Some(7_000), None),
        ("crawl-delay: 86400", Some(86_400_000), None),
        ("crawl-delay: 86401", Some(86_400_000), Some(RobotsNoteKind::CrawlDelayClamped)),
        ("crawl-delay: 1e300", Some(86_400_000), Some(RobotsNoteKind::CrawlDelayClamped)),
        ("crawl-delay: inf", Some(86_400_000), Some(RobotsNoteKind::CrawlDelayClamped)),
        ("crawl-delay: NaN", Some(86_400_000), Some(RobotsNoteKind::CrawlDelayClamped)),
        ("crawl-delay: -1", Some(86_400_000), Some(RobotsNoteKind::CrawlDelayClamped)),
        ("crawl-delay: soon", None, Some(RobotsNoteKind::CrawlDelayGarbled)),
        ("crawl-delay:", None, Some(RobotsNoteKind::CrawlDelayGarbled)),
        ("user-agent: agentdex\ndisallow: /x\nuser-agent: b\ncrawl-delay: 9\ndisallow: /", None, None),
    ];
    for (lines, wait_ms, note) in table {
        let file = delay(lines);
        assert_eq!(file.crawl_delay().map(|delay| delay.wait.as_millis()), wait_ms, "{lines}");
        assert_eq!(file.notes().first().map(|note| note.kind), note, "{lines}");
    }
    let top = file(b"crawl-delay: 4\nuser-agent: *\ndisallow: /x");
    assert_eq!(top.crawl_delay(), Some(CrawlDelay { wait: Duration::from_secs(4), line: 1 }));
}

#[test]
fn reads_agentmaps_and_notes() {
    let file = file(
        b"Sitemap: https://a.example/s.xml\nSite-map: https://a.example/t.xml\nuser-agent: *\n\
          Agentmap: https://a.example/ard.json\nContent-Signal: ai-train=no\ndisallow: x\n",
    );
    assert_eq!(file.agentmaps(), ["https://a.example/ard.json"]);
    let notes: Vec<_> = file.notes().iter().map(|note| (note.kind, note.line)).collect();
    assert_eq!(
        notes,
        [
            (RobotsNoteKind::Misspelt, Some(2)),
            (RobotsNoteKind::ContentSignal, Some(5)),
            (RobotsNoteKind::NoSlash, Some(6))
        ]
    );
}

/// The example of draft-ietf-aipref-attach, "Example", and the requirements of its text.
#[test]
fn content_usage_of_the_longest_matching_path_applies() {
    let example = b"User-Agent: *\nAllow: /\nDisallow: /never/\nContent-Usage: train-ai=n\n\
        Content-Usage: /ai-ok/ train-ai=y\nContent-Usage: /ai-ok/\tsearch=n # a comment\n\n\
        User-Agent: ExampleBot\nAllow: /\nContent-Usage: train-ai=y\n";
    let training = |path: &str| file(example).usage(path).training;
    assert_eq!(training("/test"), PolicyChoice::Deny);
    assert_eq!(training("/ai-ok/test"), PolicyChoice::Allow);
    assert_eq!(
        file(example).usage("/ai-ok/x").search,
        PolicyChoice::Deny,
        "rules of one path apply together"
    );
    assert_eq!(file(example).usage("/test").search, PolicyChoice::Unset);
    assert_eq!(RobotsFile::parse(example, "examplebot").usage("/test").training, PolicyChoice::Allow);
    assert_eq!(file(b"user-agent: *\ndisallow:").usage("/x"), ContentUsage::default());
}

#[test]
fn content_signals_apply_to_the_whole_host() {
    let signal =
        file(b"user-agent: *\nContent-Usage: /a search=y\nContent-Signal: search=no, ai-train=yes\n");
    assert_eq!(signal.usage("/a").search, PolicyChoice::Deny, "the most restrictive statement applies");
    assert_eq!(signal.usage("/b").training, PolicyChoice::Allow);
    let ungrouped = file(b"Content-Signal: ai-train=no\nuser-agent: agentdex\ndisallow: /x");
    assert_eq!(ungrouped.usage("/").training, PolicyChoice::Deny);
    let other = file(b"user-agent: agentdex\ndisallow: /x\nuser-agent: *\nContent-Signal: search=no");
    assert_eq!(other.usage("/").search, PolicyChoice::Unset, "the group of this crawler hides that of all");
}

#[test]
fn paths_whose_use_for_search_is_denied_are_disallowed() {
    let body = "user-agent: *\nallow: /\nContent-Usage: /private search=n\nContent-Signal: ai-train=no\n";
    assert!(allowed(body, "/agent.json"));
    let line = RuleLine { line: 3, text: "Content-Usage: /private search=n".to_owned() };
    assert_eq!(verdict(body).decide("/private/agent.json"), RobotsDecision::Disallowed(Some(line)));
    let all = "user-agent: *\nContent-Signal: search=no, ai-train=no\n";
    assert!(!allowed(all, "/agent.json"));
    assert!(allowed(all, "/robots.txt"));
}

#[test]
fn usage_rules_beyond_the_limit_deny_everywhere() {
    let mut body = "user-agent: *\n".to_owned();
    body.extend((0..100).map(|number| format!("Content-Usage: /p{number} train-ai=y\n")));
    assert_eq!(file(body.as_bytes()).usage("/x").search, PolicyChoice::Unset);
    body.push_str("Content-Usage: /last search=n\n");
    assert_eq!(file(body.as_bytes()).usage("/x").search, PolicyChoice::Deny);
}

#[test]
fn treats_an_html_page_as_a_file_without_rules() {
    let page = verdict("<!doctype html><title>Not here</title>");
    assert!(page.decide("/x").is_allowed());
    let file = page.file().unwrap();
    assert_eq!(file.rules_count(), 0);
    assert_eq!(file.notes().first().map(|note| note.kind), Some(RobotsNoteKind::Html));
}

#[test]
fn uses_the_part_of_a_file_below_the_cap() {
    let mut body = "user-agent: *\ndisallow: /early\n".to_owned();
    while body.len() <= BODY_BYTES_MAX {
        body.push_str("# a comment that fills the file\n");
    }
    body.push_str("disallow: /late\n");
    assert!(!allowed(&body, "/early"));
    assert!(allowed(&body, "/late"));
    assert_eq!(verdict(&body).file().unwrap().notes()[0].kind, RobotsNoteKind::Cut);
    let one_line = "disallow: /".to_owned() + &"a".repeat(5_000_000);
    assert!(allowed(&format!("user-agent: *\n{one_line}"), "/b"));
}

#[test]
fn a_long_path_with_an_invisible_character_forbids_all_paths_with_its_prefix() {
    let rules = |path: &str| format!("user-agent: *\nallow: /\ndisallow: {path}\n");
    for end in ["", "%41", "ツツツ"] {
        let file = format!("/private/{end}{}", "x".repeat(30));
        for length in 16_360..16_390 {
            let path = format!("/private\u{200b}{}{end}{}", "*".repeat(length), "x".repeat(9_000));
            assert!(!allowed(&rules(&path), &file), "{length} {end}");
            assert!(allowed(&rules(&path), "/public"), "{length} {end}");
        }
    }
}

#[test]
fn evaluates_tens_of_thousands_of_anchored_rules() {
    let anchored: Vec<String> = (0..20_000).map(|number| format!("disallow: /*{number}$")).collect();
    let anchored = anchored.join("\n");
    let body = format!("user-agent: *\n{anchored}\nallow: /open19999$\n");
    assert!(!allowed(&body, "/x19999"));
    assert!(allowed(&body, "/open19999"));
    let stars = format!("user-agent: *\ndisallow: /{}$", "*a".repeat(200_000));
    assert!(allowed(&stars, "/aaaa"));
}

#[test]
fn maps_every_response_to_a_verdict() {
    use RobotsCause as Cause;
    let status = |status| RobotsResponse::Answered { status, body: Some(b"user-agent: *\ndisallow: /x") };
    let table = [
        (status(200), RobotsKind::Rules, None),
        (status(204), RobotsKind::Rules, None),
        (status(206), RobotsKind::Unreachable, Some(Cause::PartialAnswer)),
        (status(226), RobotsKind::Unreachable, Some(Cause::PartialAnswer)),
        (RobotsResponse::OtherSite, RobotsKind::Unreachable, Some(Cause::RedirectsToOtherSite)),
        (RobotsResponse::Wall, RobotsKind::Unreachable, Some(Cause::BotWall)),
        (status(304), RobotsKind::Unreachable, Some(Cause::UnexpectedStatus)),
        (status(400), RobotsKind::NoFile, None),
        (status(401), RobotsKind::Denied, Some(Cause::Unauthorized)),
        (status(403), RobotsKind::Denied, Some(Cause::Forbidden)),
        (status(404), RobotsKind::NoFile, None),
        (status(410), RobotsKind::NoFile, None),
        (status(429), RobotsKind::Unreachable, Some(Cause::RateLimited)),
        (status(451), RobotsKind::Denied, Some(Cause::Legal)),
        (status(500), RobotsKind::Unreachable, Some(Cause::ServerError)),
        (status(503), RobotsKind::Unreachable, Some(Cause::RateLimited)),
        (status(700), RobotsKind::Unreachable, Some(Cause::UnexpectedStatus)),
        (
            RobotsResponse::Redirect(RedirectRefusal::TooManyHops),
            RobotsKind::Denied,
            Some(Cause::TooManyRedirects),
        ),
        (RobotsResponse::Redirect(RedirectRefusal::Loop), RobotsKind::Denied, Some(Cause::RedirectLoop)),
        (
            RobotsResponse::Redirect(RedirectRefusal::NotHttps),
            RobotsKind::Denied,
            Some(Cause::RedirectRefused),
        ),
        (RobotsResponse::Failed(FetchOutcome::Timeout), RobotsKind::Unreachable, Some(Cause::Timeout)),
        (RobotsResponse::Failed(FetchOutcome::TlsFailed), RobotsKind::Unreachable, Some(Cause::TlsFailed)),
        (
            RobotsResponse::Failed(FetchOutcome::ProtocolError),
            RobotsKind::Unreachable,
            Some(Cause::ProtocolError),
        ),
    ];
    for (answer, kind, cause) in table {
        let verdict = RobotsVerdict::of(answer, PRODUCT_TOKEN);
        assert_eq!((verdict.kind(), verdict.cause()), (kind, cause), "{answer:?}");
        let permits = matches!(kind, RobotsKind::Rules | RobotsKind::NoFile);
        assert_eq!(verdict.decide("/y").is_allowed(), permits, "{answer:?}");
        assert_eq!(verdict.decide("/y").outcome().is_none(), permits, "{answer:?}");
    }
}

#[test]
fn a_2xx_without_a_body_forbids() {
    for status in 200..=299 {
        let of = |body| RobotsVerdict::of(RobotsResponse::Answered { status, body }, PRODUCT_TOKEN);
        let forbidding = of(Some(&b"user-agent: *\ndisallow: /"[..]));
        assert!(!forbidding.decide("/x").is_allowed(), "{status} with a file that forbids");
        assert!(!of(None).decide("/x").is_allowed(), "{status} whose body was not read");
        let is_part = matches!(status, 206 | 226);
        assert_eq!(of(Some(b"")).decide("/x").is_allowed(), !is_part, "{status} with an empty file");
    }
}

#[test]
fn a_bot_wall_is_unreachable_and_the_third_in_a_row_is_a_denial() {
    let headers = HeaderMap::from_iter([(
        http::HeaderName::from_static("cf-mitigated"),
        http::HeaderValue::from_static("challenge"),
    )]);
    for status in [200, 202, 302, 304, 403, 404, 429, 500, 503] {
        let bot_wall =
            || RobotsVerdict::of(RobotsResponse::answered(status, &headers, Some(&b""[..])), PRODUCT_TOKEN);
        assert_eq!(
            (bot_wall().kind(), bot_wall().cause()),
            (RobotsKind::Unreachable, Some(RobotsCause::BotWall)),
            "{status}"
        );
        for (walls_in_row, kind) in [
            (1, RobotsKind::Unreachable),
            (2, RobotsKind::Unreachable),
            (3, RobotsKind::Denied),
            (4, RobotsKind::Denied),
        ] {
            let after = bot_wall().after_bot_walls(walls_in_row);
            assert_eq!((after.kind(), after.cause()), (kind, bot_wall().cause()), "{status} {walls_in_row}");
            assert!(!after.decide("/x").is_allowed(), "{status} {walls_in_row}");
        }
        let plain =
            RobotsVerdict::of(RobotsResponse::answered(status, &HeaderMap::new(), None), PRODUCT_TOKEN);
        assert_eq!(plain.decide("/x").is_allowed(), status == 404, "{status}");
        let kind = plain.kind();
        assert_eq!(plain.after_bot_walls(3).kind(), kind, "{status}");
    }
}

#[test]
fn an_expired_copy_can_only_forbid() {
    let at = Utc.with_ymd_and_hms(2026, 7, 1, 12, 0, 0).unwrap();
    let hours = |verdict: &RobotsVerdict, max_age: Option<u64>, failures| {
        (verdict.expires_at(at, max_age.map(Duration::from_secs), failures) - at).num_hours()
    };
    let rules = verdict("user-agent: *\ndisallow: /x");
    assert_eq!(hours(&rules, None, 0), 24);
    assert_eq!(hours(&rules, Some(0), 0), 1);
    assert_eq!(hours(&rules, Some(7_200), 0), 2);
    assert_eq!(hours(&rules, Some(u64::MAX), 0), 24);
    let unreachable = RobotsVerdict::Unreachable(RobotsCause::Timeout);
    let ladder: Vec<i64> = (1..=5).map(|failures| hours(&unreachable, Some(60), failures)).collect();
    assert_eq!(ladder, [1, 6, 24, 168, 168]);
    assert_eq!(CopyUse::at(at, at - Duration::from_secs(1)), CopyUse::Current);
    assert_eq!(CopyUse::at(at, at), CopyUse::DenyOnly);
}

#[test]
fn a_copy_is_used_for_the_next_request_if_the_delay_outlasts_it() {
    use chrono::TimeDelta;
    let fetched_at = Utc.with_ymd_and_hms(2026, 11, 20, 12, 0, 0).unwrap();
    let minutes = |minutes| fetched_at + TimeDelta::minutes(minutes);
    let hours = |hours: i64| minutes(60 * hours);
    // the lifetime of the copy, the end of the delay, the time of the next request
    for (lifetime, delay_ends_at, now, expected) in [
        (24, hours(24), hours(24), CopyUse::Current),
        (24, hours(29), hours(30), CopyUse::Current),
        (24, hours(29), minutes(48 * 60 - 1), CopyUse::Current),
        (24, hours(29), hours(48), CopyUse::DenyOnly),
        (24, hours(23), hours(25), CopyUse::Current),
        (24, minutes(23 * 60 - 1), hours(24), CopyUse::DenyOnly),
        (24, minutes(1), hours(23), CopyUse::Current),
        (24, minutes(1), hours(24), CopyUse::DenyOnly),
        (1, hours(2), hours(2), CopyUse::Current),
        (24 * 7, hours(24), hours(50), CopyUse::Current),
    ] {
        let copy = (fetched_at, hours(lifetime));
        let found = CopyUse::after_delay(copy, delay_ends_at, now);
        assert_eq!(found, expected, "{lifetime} h, until {delay_ends_at}, at {now}");
    }
}

#[test]
fn an_incomplete_stored_verdict_forbids() {
    let stored = |kind, cause, body| StoredVerdict { kind, cause, status: None, body };
    let restore = |stored| RobotsVerdict::restore(stored, PRODUCT_TOKEN);
    let body = Some(&b"user-agent: *\ndisallow: /x"[..]);
    assert!(!restore(stored(RobotsKind::Rules, None, body)).decide("/x").is_allowed());
    assert!(restore(stored(RobotsKind::Rules, None, body)).decide("/y").is_allowed());
    assert!(!restore(stored(RobotsKind::Rules, None, None)).decide("/y").is_allowed());
    assert!(restore(stored(RobotsKind::NoFile, None, None)).decide("/y").is_allowed());
    for kind in [RobotsKind::Denied, RobotsKind::Unreachable] {
        let verdict = restore(stored(kind, Some(RobotsCause::Timeout), None));
        assert_eq!((verdict.kind(), verdict.cause()), (kind, Some(RobotsCause::Timeout)));
        assert!(!verdict.decide("/y").is_allowed());
    }
}

fn any_path() -> impl Strategy<Value = String> {
    "/[ab/.%$*?=é~]{0,8}"
}

/// Complete groups of rules that begin with a slash.
fn any_file() -> impl Strategy<Value = String> {
    let rule = ("(allow|disallow|Disallow)", "/[ab/.*$é~%]{0,6}")
        .prop_map(|(field, path)| format!("{field}: {path}\n"));
    let group = ("(\\*|agentdex|AgentDex|other)", proptest::collection::vec(rule, 1..5))
        .prop_map(|(agent, rules)| format!("User-agent: {agent}\n{}", rules.concat()));
    proptest::collection::vec(group, 0..4).prop_map(|groups| groups.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// No bytes make the parser panic or forbid robots.txt itself.
    #[test]
    fn parses_any_bytes(body in proptest::collection::vec(any::<u8>(), 0..400), path in any_path()) {
        let file = file(&body);
        prop_assert_eq!(file.decide("/robots.txt"), RobotsDecision::Allowed(None));
        let _decision = file.decide(&path);
        prop_assert!(file.crawl_delay().is_none_or(|delay| delay.wait <= CRAWL_DELAY_MAX));
    }

    /// An unreachable robots.txt never permits anything, for any status, body and failure.
    #[test]
    fn robots_failures_never_permit_a_path(status in 500_u16..1_000, body in any_file(), path in any_path()) {
        let answers = FetchOutcome::ALL.iter().map(|outcome| RobotsResponse::Failed(*outcome))
            .chain([RobotsResponse::Wall, RobotsResponse::OtherSite])
            .chain([RobotsResponse::Answered { status, body: Some(body.as_bytes()) }])
            .chain([401, 403, 429, 451].map(|status| {
                RobotsResponse::Answered { status, body: Some(body.as_bytes()) }
            }));
        for answer in answers {
            let verdict = RobotsVerdict::of(answer, PRODUCT_TOKEN);
            prop_assert!(!verdict.decide(&path).is_allowed(), "{:?}", answer);
        }
    }

    /// An additional Disallow line never allows more.
    #[test]
    fn an_additional_disallow_line_never_permits_more(body in any_file(), rule in "/[ab*]{0,3}", path in "/[ab]{0,5}") {
        let group = format!("User-agent: agentdex\n{}", body.replace("User-agent", "# agent"));
        let more = format!("{group}\nDisallow: {rule}\n");
        prop_assert!(allowed(&group, &path) || !allowed(&more, &path));
    }
}

#[test]
fn a_statement_that_is_too_long_disallows_with_a_note() {
    let long = "search=y, ".repeat(200);
    let body = format!("User-agent: *\nContent-Usage: /a {long}\nContent-Usage: /b search=y\n");
    let file = file(body.as_bytes());
    assert_eq!(file.usage("/a").training, PolicyChoice::Deny);
    assert_eq!(file.usage("/b").search, PolicyChoice::Allow);
    let decision = verdict(&body).decide("/a").to_string();
    assert!(decision.ends_with("se… (a statement of more than 1024 bytes is a denial)"), "{decision}");
}

#[test]
fn the_target_of_a_redirect_to_another_site_is_stored_with_the_cause() {
    let stored = RobotsCause::redirect_to("other.example");
    assert_eq!(RobotsCause::of_stored(&stored), Some(RobotsCause::RedirectsToOtherSite));
    assert_eq!(RobotsCause::target(&stored), Some("other.example"));
    assert_eq!(RobotsCause::in_words(&stored), "redirect to another site, other.example");
    let earlier = RobotsCause::RedirectsToOtherSite.as_str();
    assert_eq!(RobotsCause::of_stored(earlier), Some(RobotsCause::RedirectsToOtherSite));
    assert_eq!((RobotsCause::target(earlier), RobotsCause::target("timeout x")), (None, None));
    assert_eq!(RobotsCause::of_stored("timeout x"), None, "a text of an earlier version");
}
