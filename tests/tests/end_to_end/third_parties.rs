//! Sites and seed lists that direct a crawler to a victim through robots.txt, manifests and links. The test checks the log of all hosts,
//! including the victims.

use testweb::{Answer, Host, Web};

use crate::world::{Backend, World, output, text_of};

const ATTACKERS: usize = 30;
/// A victim that forbids everything; robots.txt, manifests and links point to it.
const CLOSED: &str = "closed.test";
/// A victim that sends Retry-After; the attackers point to it in the same way.
const BUSY: &str = "busy.test";

fn attacker(number: usize) -> Host {
    let host = Host::new(&format!("attacker{number}.test"));
    let victim = if number.is_multiple_of(2) { CLOSED } else { BUSY };
    let to = |path: &str| format!("https://{victim}{path}");
    match number % 3 {
        0 => host.redirect("/robots.txt", 302, &to("/robots.txt")),
        1 => host.redirect("/robots.txt", 301, &to("/private/rules")),
        _ => {
            let link = format!("<{}>; rel=\"agent-manifest\"", to("/private/b.json"));
            host.robots("User-agent: *\nAllow: /\n")
                .redirect("/agent.json", 302, &to("/private/a.json"))
                .route("/", Answer::html("<p>hello").header("link", &link))
        }
    }
}

pub(crate) async fn limits_apply_to_the_requested_host(backend: Backend) {
    let closed =
        Host::new(CLOSED).robots("User-agent: *\nDisallow: /\n").file("/top.txt", "text/plain", "a.test\n");
    let busy = Host::new(BUSY).catch_all(Answer::retry_after(429, "3600"));
    let lists = Host::new("lists.test")
        .robots("User-agent: *\nAllow: /\n")
        .file("/top.txt", "text/plain", "attacker0.test\n")
        .redirect("/away.txt", 302, "https://closed.test/top.txt");
    let hosts = (0..ATTACKERS).map(attacker).chain([closed, busy, lists]);
    let world = World::start(backend, Web::builder().hosts(hosts)).await;
    world.write_seeds((0..ATTACKERS).map(|number| format!("attacker{number}.test")));
    world.crawl(&["--seeds", "https://lists.test/top.txt"]);
    let hits = |host: &str| world.web.log().hits_on(host).len();
    assert_eq!((hits(CLOSED), hits(BUSY)), (0, 0), "visits to attackers must send no request to the victims");

    // the victims are now known sites, and all attackers point to them again
    world.crawl(&["--revisit", "0s"]);
    world.crawl(&["--revisit", "0s"]);
    let read = output(world.crawler(&["--seeds", "https://lists.test/away.txt"]));
    assert!(
        text_of(&read).contains("away.txt: robots.txt of closed.test does not allow it"),
        "{}",
        text_of(&read)
    );
    assert_eq!(
        (hits(CLOSED), hits(BUSY)),
        (1, 1),
        "the crawler requests robots.txt once from each victim and obeys the answer"
    );
    world.assert_polite();
}
