//! The test cases of google/robotstxt, as tables of a file, a product token, a path and the decision.
//!
//! Cases for which google/robotstxt makes another decision are in a separate table. docs/POLITENESS.md explains the differences.

use super::line::records;
use super::*;

/// Whether a file allows a path to a crawler of this name.
fn allows(body: &[u8], token: &str, path: &str) -> bool {
    RobotsFile::parse(body, token).decide(path).is_allowed()
}

#[track_caller]
fn check(body: &str, rows: &[(&str, &str, bool)]) {
    for (token, path, expected) in rows {
        assert_eq!(allows(body.as_bytes(), token, path), *expected, "{path} for {token} under\n{body}");
    }
}

/// One group for one crawler, with its allowed and disallowed paths.
#[track_caller]
fn check_group(rules: &str, allowed: &[&str], disallowed: &[&str]) {
    let body = format!("user-agent: walker\n{rules}");
    for (paths, expected) in [(allowed, true), (disallowed, false)] {
        for path in paths {
            assert_eq!(allows(body.as_bytes(), "walker", path), expected, "{path} under\n{body}");
        }
    }
}

#[test]
fn parses_lines_and_fields() {
    check("user-agent: walker\ndisallow: /\n", &[("walker", "/a/b", false), ("other", "/a/b", true)]);
    check("who: walker\nwhat: /\n", &[("walker", "/a/b", true)]);
    check("user-agent walker\ndisallow /\n", &[("walker", "/a/b", false)]);
    for (agent, allow, disallow) in [
        ("USER-AGENT", "ALLOW", "DISALLOW"),
        ("user-agent", "allow", "disallow"),
        ("uSER-aGENT", "aLLOW", "dISALLOW"),
    ] {
        let body = format!("{agent}: walker\n{allow}: /in/\n{disallow}: /\n");
        check(&body, &[("walker", "/in/a", true), ("walker", "/out", false)]);
    }
}

#[test]
fn a_group_may_name_several_crawlers() {
    let body = "allow: /before/\n\nuser-agent: one\ndisallow: /\nallow: /a/\nuser-agent: two\ndisallow: /\n\
                allow: /b/\n\n\nallow: /c/\nuser-agent: three\n\nuser-agent: one\nallow: /d/\ndisallow: /\n";
    check(
        body,
        &[
            ("one", "/a/1", true),
            ("one", "/d/1", true),
            ("one", "/b/1", false),
            ("two", "/b/1", true),
            ("two", "/c/1", true),
            ("two", "/d/1", false),
            ("three", "/d/1", true),
            ("one", "/before/", false),
            ("two", "/before/", false),
            ("three", "/before/", false),
        ],
    );
    // only a rule ends a group: both names share the rule that follows
    for other in ["Sitemap: https://a.example/map", "Something-Else: entirely"] {
        let body = format!("User-agent: one\n{other}\nUser-agent: *\nDisallow: /\n");
        check(&body, &[("one", "/", false), ("two", "/", false)]);
    }
}

#[test]
fn groups_match_the_product_token() {
    for name in ["WALKER ON FOOT", "walker on foot", "WaLkEr oN fOoT"] {
        let body = format!("User-agent: {name}\nAllow: /in/\nDisallow: /\n");
        for token in ["walker", "Walker", "WALKER"] {
            check(&body, &[(token, "/in/a", true), (token, "/out", false)]);
        }
    }
    let two_words = "User-agent: *\nDisallow: /\nUser-agent: walker on foot\nAllow: /in/\nDisallow: /\n";
    check(two_words, &[("walker", "/in/a", true), ("other", "/in/a", false)]);
    check("", &[("walker", "/a", true)]);
    let everyone_first = "user-agent: *\nallow: /\nuser-agent: walker\ndisallow: /\n";
    check(everyone_first, &[("walker", "/a", false), ("other", "/a", true)]);
    let only_some =
        "user-agent: one\nallow: /\nuser-agent: two\ndisallow: /\nuser-agent: three\ndisallow: /\n";
    check(only_some, &[("one", "/a", true), ("two", "/a", false), ("four", "/a", true)]);
    let own_hides_all = "User-agent: *\nDisallow: /a/\nUser-agent: walker\nDisallow: /b/\n";
    check(own_hides_all, &[("walker", "/a/1", true), ("walker", "/b/1", false)]);
}

/// Only letters, underscores and hyphens (§2.2.1), as other parsers require.
#[test]
fn the_product_token_is_valid() {
    assert!(PRODUCT_TOKEN.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-')));
}

#[test]
fn the_longest_pattern_applies_and_case_matters() {
    check_group("disallow: /a/\n", &["/A/b"], &["/a/b"]);
    check_group("disallow: /a/one.html\nallow: /a/\n", &["/a/"], &["/a/one.html"]);
    check_group("allow: /a/one.html\ndisallow: /a/\n", &["/a/one.html"], &["/a/"]);
    check_group("disallow: \nallow: \n", &["/a/one.html"], &[]);
    check_group("disallow: /\nallow: /\n", &["/a/one.html"], &[]);
    check_group("disallow: /a\nallow: /a/\n", &["/a/"], &["/a"]);
    check_group("disallow: /a/one.html\nallow: /a/one.html\n", &["/a/one.html"], &[]);
    check_group("allow: /one\ndisallow: /*.html\n", &["/one"], &["/one.html"]);
    check_group("allow: /a/one.\ndisallow: /*.html\n", &["/a/one.html"], &["/a/two.html"]);
}

#[test]
fn compares_percent_encodings_in_normal_form() {
    check_group(
        "disallow: /\nallow: /a/b?c=d&e=https://f.example?g&h\n",
        &["/a/b?c=d&e=https://f.example?g&h"],
        &["/a/b"],
    );
    check_group("disallow: /\nallow: /a/ツ\n", &["/a/%E3%83%84"], &["/a/%E3%83%85"]);
    check_group("disallow: /\nallow: /a/%E3%83%84\n", &["/a/%E3%83%84"], &["/a/%E3%83"]);
    check_group("disallow: /\nallow: /a/%62%61%7A\n", &["/a/%62%61%7A"], &["/a/b"]);
}

#[test]
fn supports_wildcards_and_end_anchors() {
    check_group("disallow: /a/b/c\nallow: /a/*/d\n", &["/a/c", "/a//c", "/a/e/c"], &["/a/b/c"]);
    check_group("disallow: /a/b$\nallow: /a/b/d\n", &["/a/b/d", "/a/b/", "/a/b/e"], &["/a/b"]);
    check_group("# disallow: /\ndisallow: /a/c#d\nallow: /\n", &["/a/b"], &["/a/c"]);
}

/// The examples of Google's documentation, with other names.
#[test]
fn matches_patterns_as_documented_by_google() {
    let beneath = ["/tea", "/tea.html", "/tea/green.html", "/teapot", "/teapot/lid.html", "/tea.html?cup=1"];
    let not_beneath = ["/cup", "/Tea.asp", "/icetea", "/?cup=tea"];
    check_group("disallow: /\nallow: /tea\n", &beneath, &not_beneath);
    check_group("disallow: /\nallow: /tea*\n", &beneath, &not_beneath);
    check_group(
        "disallow: /\nallow: /tea/\n",
        &["/tea/", "/tea/green", "/tea/?green", "/tea/green.html", "/tea/?cup=1"],
        &["/cup", "/tea", "/tea.html", "/Tea/Green.html"],
    );
    check_group(
        "disallow: /\nallow: /*.cgi\n",
        &[
            "/pot.cgi",
            "/tea/pot.cgi",
            "/tea/pot.cgi?lid",
            "//tea/any.cgi.file.html",
            "/pot.cgi/",
            "/index?f=pot.cgi/",
        ],
        &["/cup", "/cgi/", "/index?cgi", "/pot.CGI"],
    );
    check_group(
        "disallow: /\nallow: /*.cgi$\n",
        &["/pot.cgi", "/tea/pot.cgi"],
        &["/cup", "/pot.cgi?lid", "/pot.cgi/", "/pot.cgi5", "/cgi/", "/pot?cgi", "/aaacgiaaa", "//pot.CGI"],
    );
    check_group(
        "disallow: /\nallow: /tea*.cgi\n",
        &["/tea.cgi", "/teapot/icetea.cgi?lid"],
        &["/Tea.CGI", "/cup.cgi"],
    );
    check_group("allow: /t\ndisallow: /\n", &["/tea"], &["/cup"]);
    check_group("allow: /tea\ndisallow: /tea\n", &["/tea/green"], &[]);
    check_group("allow: /tea\ndisallow: /*.htm\n", &["/tea"], &["/tea.htm"]);
    check_group("allow: /$\ndisallow: /\n", &["/"], &["/tea.html"]);
}

#[test]
fn counts_line_ends_and_skips_byte_order_marks() {
    let lines = ["User-Agent: one", "Allow: /a", "User-Agent: two", "", "", "Disallow: /"];
    for end in ["\n", "\r\n", "\r"] {
        for text in [lines.join(end), lines.join(end) + end] {
            let last = records(text.as_bytes()).last().map(|record| record.line);
            assert_eq!((records(text.as_bytes()).count(), last), (4, Some(6)), "{text:?}");
        }
    }
    let mixed = "User-Agent: one\nAllow: /a\r\nUser-Agent: two\n\r\n\nDisallow: /";
    assert_eq!(records(mixed.as_bytes()).last().map(|record| record.line), Some(6));
    let (group, rules) = (&b"User-agent: walker\nDisallow: /a\n"[..], [("/a", false), ("/b", true)]);
    for mark in [&b"\xef\xbb\xbf"[..], b"\xef\xbb", b"\xef"] {
        for (path, expected) in rules {
            assert_eq!(allows(&[mark, group].concat(), "walker", path), expected, "{mark:?}");
        }
    }
    // any other sequence invalidates the first line, here the User-agent line
    assert!(allows(&[b"\xef\x11\xbf", group].concat(), "walker", "/a"));
    let in_the_middle = b"User-agent: walker\n\xef\xbb\xbfDisallow: /a\nDisallow: /b\n";
    // google/robotstxt allows /a: the first rule has a mark before its field
    assert!(!allows(in_the_middle, "walker", "/a"));
    assert!(!allows(in_the_middle, "walker", "/b"));
}

#[test]
fn agentmap_lines_may_be_anywhere() {
    let groups = "User-Agent: one\nAllow: /a\nUser-Agent: two\n\n\n";
    let map = "Agentmap: https://a.example/ard.json\n";
    for body in [format!("{groups}{map}"), format!("{map}{groups}")] {
        let file = RobotsFile::parse(body.as_bytes(), "walker");
        assert_eq!(file.agentmaps(), ["https://a.example/ard.json"]);
    }
}

/// Cases for which google/robotstxt makes another decision, which is in the last column.
#[test]
fn differs_from_google_robotstxt_where_documented() {
    let cut = "b".repeat(2_083 * 8);
    let long = format!("disallow: /a/{cut}/c\n");
    let beyond_its_cut = format!("/a/{cut}/d");
    let rows: [(&str, &str, bool, bool); 5] = [
        // RFC 9309 §2.2.2 compares bytes that need no escape as they are, on both sides
        ("disallow: /\nallow: /a/%62%61%7A\n", "/a/baz", true, false),
        // paths are escaped before the comparison
        ("disallow: /\nallow: /a/ツ\n", "/a/ツ", true, false),
        ("disallow: /\nallow: /a/%E3%83%84\n", "/a/ツ", true, false),
        // index.html is a file like any other
        ("disallow: /\nallow: /a/index.html\n", "/a/", false, true),
        // a long line is read completely, so that it forbids exactly what it states
        (&long, &beyond_its_cut, true, false),
    ];
    for (rules, path, ours, google) in rows {
        let body = format!("user-agent: walker\n{rules}");
        assert_eq!(allows(body.as_bytes(), "walker", path), ours, "{rules:.60}");
        assert_ne!(ours, google);
    }
    check_group("disallow: /\nallow: /a/index.html\n", &["/a/index.html"], &["/a/index.htm", "/b"]);
    check_group(&long, &["/a"], &[&format!("/a/{cut}/c/d")]);
}
