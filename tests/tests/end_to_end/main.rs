//! The whole system against the test web, as separate programs on both back ends, every run judged by the politeness audit.

#![expect(clippy::unwrap_used, reason = "a test ends where something unexpected happens")]

mod bad_input;
mod corpus;
mod database;
mod faults;
mod fleet;
mod flow;
mod hostile_fleet;
mod late_database;
mod logs;
mod many;
mod own;
mod owners;
mod proxy;
mod reload;
mod restarts;
mod suffix;
mod third_parties;
mod traces;
mod validate;
mod waits;
mod world;

/// One test for each back end from one body.
macro_rules! on_both_back_ends {
    ($($module:ident::$test:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                crate::$module::$test(crate::world::Backend::Sqlite).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                crate::$module::$test(crate::world::Backend::Postgres).await;
            })+
        }
    };
}

on_both_back_ends! {
    flow::seeds_in_search_out,
    flow::a_second_pass_is_conditional_and_changes_nothing,
    flow::a_changed_manifest_reaches_search,
    flow::a_removed_manifest_leaves_search,
    flow::a_killed_crawler_is_finished_by_the_next,
    flow::an_interrupted_crawler_drains_and_the_next_goes_on,
    many::a_thousand_sites_politely_and_cheaply_again,
    own::it_finds_itself_with_nothing_to_mend,
    third_parties::limits_belong_to_the_host_that_is_asked,
    restarts::nothing_is_lost_or_doubled_by_kills,
    restarts::a_rolling_restart_fails_no_request,
    restarts::an_expanded_schema_serves_the_version_before,
    restarts::replicas_serve_published_snapshots,
    database::a_crawled_database_moves_to_the_other_back_end_and_back,
    database::what_cannot_be_imported_is_refused_with_its_reason,
    database::a_live_database_is_backed_up_and_restored,
    database::housekeeping_keeps_what_is_young_enough,
    database::a_damaged_document_is_never_served_and_asked_for_again,
    faults::every_scope_is_kept_at_once,
    faults::the_interface_serves_the_key_of_a_signing_crawler,
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_programs_wait_for_a_database_that_starts_later() {
    late_database::programs_wait_for_a_database_that_starts_later().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_forge_no_line_and_raise_no_alarm_in_text() {
    logs::clients_forge_no_line_and_raise_no_alarm_in_text().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_forge_no_line_and_raise_no_alarm_in_json() {
    logs::clients_forge_no_line_and_raise_no_alarm_in_json().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_forge_no_line_where_everything_is_logged() {
    logs::clients_forge_no_line_where_everything_is_logged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_honest_sites_keep_their_pace_among_hostile_ones() {
    hostile_fleet::honest_sites_keep_their_pace_among_hostile_ones().await;
}

/// The embedded database cannot go away by itself.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_an_outage_of_the_database_is_waited_out() {
    faults::an_outage_of_the_database_is_waited_out().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_an_outage_and_a_kill_shorten_no_gap() {
    faults::an_outage_and_a_kill_shorten_no_gap().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_fail_over_of_the_database_is_waited_out() {
    faults::a_fail_over_of_the_database_is_waited_out().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_slow_database_only_slows_the_crawl() {
    waits::a_slow_database_only_slows_the_crawl().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_full_disk_of_the_server_is_waited_out() {
    waits::a_full_disk_of_the_server_is_waited_out().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_a_lock_of_another_program_is_waited_out() {
    waits::a_lock_of_another_program_is_waited_out().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_crawlers_share_one_queue_on_postgres() {
    flow::four_crawlers_share_one_queue(world::Backend::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_fleet_survives_kills_and_a_cut() {
    fleet::a_fleet_survives_kills_and_a_cut().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_explain_and_metrics_name_the_owner_of_an_address() {
    owners::explain_and_metrics_name_the_owner_of_an_address().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_suffix_is_paced_over_the_whole_fleet() {
    suffix::a_suffix_is_paced_over_the_whole_fleet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn visits_and_requests_are_traced() {
    traces::visits_and_requests_are_traced().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_costs_spans_alone() {
    traces::a_collector_that_is_away_costs_spans_alone().await;
}
