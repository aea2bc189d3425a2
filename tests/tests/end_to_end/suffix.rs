//! Sites below a private suffix (`github.io`) at addresses of several workers: the limits for the suffix apply to the whole fleet.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use agentdex_tests::audit;
use testweb::{Answer, Host, Web};

use crate::world::{Backend, World, kill};

/// Each site is in its own network, and thus in its own address group.
const SITES: u8 = 24;
const CRAWLERS: usize = 3;
/// Long enough that the gap alone would allow more than four requests in flight.
const ANSWER_TIME: Duration = Duration::from_millis(2_500);
const ROBOTS: &str = "User-agent: *\nAllow: /agent.json$\nDisallow: /\n";

fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Requires at most two requests per second and four at a time below the suffix over the whole fleet, also across a kill, and that no site
/// is lost and no other site is delayed.
pub(crate) async fn limits_a_suffix_over_the_whole_fleet() {
    let below = (0..SITES).map(|index| {
        Host::new(&format!("site{index}.github.io"))
            .at([127, 0, 1 + index, 1].into())
            .robots(ROBOTS)
            .route("/agent.json", Answer::status(404).after(ANSWER_TIME))
    });
    let elsewhere = (0..SITES).map(|index| {
        Host::new(&format!("other{index}.test")).at([127, 0, 101 + index, 1].into()).robots(ROBOTS)
    });
    let web = Web::builder().hosts(below).hosts(elsewhere);
    let mut world = World::start(Backend::Postgres, web).await;
    world.delay = Duration::from_secs(1);
    let seeds: Vec<String> = world.web.hosts().into_iter().map(|(name, _)| name).collect();
    world.write_seeds(&seeds);
    let flags = ["--strict", "--lease", "5s", "--park-wait", "10m"];
    let mut commands: Vec<Command> = (0..=CRAWLERS).map(|_| world.crawler(&flags)).collect();
    let next = commands.pop().unwrap();
    let mut fleet: Vec<Child> = commands.into_iter().map(spawn).collect();

    let count =
        |log: &testweb::Log, suffix: &str| log.hits().iter().filter(|hit| hit.host.ends_with(suffix)).count();
    world.web.log().wait_until(|log| count(log, ".github.io") >= usize::from(SITES) / 2).await;
    let others = count(world.web.log(), ".test");
    assert!(others >= usize::from(SITES), "only {others} requests to other sites in the meantime");
    kill(&mut fleet[0]);
    world.kills += 1;
    fleet[0] = spawn(next);
    let ended = tokio::task::spawn_blocking(move || {
        fleet.iter_mut().all(|crawler| crawler.wait().unwrap().success())
    });
    assert!(ended.await.unwrap(), "a crawler failed");

    let hits = world.web.log().hits();
    let was_visited = |index| {
        hits.iter().any(|hit| hit.host == format!("site{index}.github.io") && hit.path == "/agent.json")
    };
    assert!((0..SITES).all(was_visited), "a site was lost");
    let paths: Vec<&str> = hits.iter().map(|hit| hit.path.as_str()).collect();
    // robots.txt and the allowed path of each site, and possibly repeats of a killed crawler
    assert!(hits.len() <= 2 * 3 * usize::from(SITES), "{} requests: {paths:?}", hits.len());
    let policy = audit::Policy {
        site_gap: Some(Duration::from_secs(1)),
        address_gap: Some(Duration::from_millis(500)),
        address_in_flight_max: Some(1),
        suffix_gap: Some(Duration::from_millis(500)),
        suffix_in_flight_max: Some(4),
        ..world.policy()
    };
    audit::check(&hits, &policy).assert_clean();
}
