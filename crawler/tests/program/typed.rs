//! What is typed that cannot be meant, and what comes of a pass that reached nobody.

use super::desk::{Desk, text};

#[tokio::test]
async fn whoever_only_reads_makes_no_database() {
    let desk = Desk::with([]).await;
    for words in [["status"].as_slice(), &["explain", "shop.example"]] {
        let run = desk.run(words).await;
        let told = text(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{told}");
        for part in ["there is no database at data/", "--data-dir", "--database-url"] {
            assert!(told.contains(part), "{told}");
        }
    }
    assert!(!desk.dir.path().join("data").exists());
}

#[tokio::test]
async fn a_pass_that_reached_nobody_says_so_and_has_no_colours_in_its_log() {
    let desk = Desk::with([]).await;
    desk.file("seeds", "nobody.example\n");
    desk.file("hosts", "127.0.0.1:1 nobody.example\n");
    let run = desk.run(&["--seeds", "seeds", "--delay", "0s"]).await;
    let (summary, log) = (text(&run.stdout), text(&run.stderr));
    assert_eq!(run.status.code(), Some(0), "{log}");
    assert!(
        summary.contains("Visits: 1 unreachable") && summary.contains("No site was reached"),
        "{summary}"
    );
    assert!(log.contains("cannot reach you") && !log.contains('\u{1b}'), "{log}");
    assert_eq!(log.matches("1 seed read").count(), 1, "{log}");
    assert!(!log.contains("1 seeds"), "{log}");
}

#[tokio::test]
async fn a_setting_of_a_wrong_name_ends_with_2_wherever_it_is_said() {
    let desk = Desk::with([]).await;
    desk.file("agentdex.toml", "delay = \"5s\"\n");
    let run = desk.run(&["status", "--config", "agentdex.toml"]).await;
    assert_eq!(run.status.code(), Some(2));
    let told = text(&run.stderr);
    assert!(told.contains("line 1: unknown key `delay` here: it belongs in `[crawler]`"), "{told}");
    let run = desk.command(&["status"]).env("AGENTDEX_CRAWLR_DELAY", "5s").output().await.unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(text(&run.stderr).contains("did you mean AGENTDEX_CRAWLER_DELAY?"), "{}", text(&run.stderr));
}
