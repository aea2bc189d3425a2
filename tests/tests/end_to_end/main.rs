//! Tests the whole system against the test web: separate programs on both backends, with a politeness audit of every crawl.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod bad_input;
mod checks;
mod corpus;
mod database;
mod declarations;
mod faults;
mod federation;
mod first_hour;
mod fleet;
mod flow;
mod going_on;
mod harvest;
mod hostile_fleet;
mod late_database;
mod logs;
mod many;
mod metrics;
mod own;
mod owners;
mod privacy;
mod proxy;
mod reload;
mod replicas;
mod restarts;
mod stalls;
mod suffix;
mod third_parties;
mod traces;
mod validate;
mod waits;
mod world;

/// Defines each test for both backends.
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
    flow::crawled_capabilities_are_searchable,
    flow::a_second_pass_revalidates_and_changes_nothing,
    flow::search_returns_a_changed_manifest,
    flow::search_omits_a_removed_manifest,
    flow::the_next_crawler_completes_the_pass_of_a_killed_one,
    flow::an_interrupted_crawler_drains_and_the_next_continues,
    going_on::agentdex_visits_added_seeds_until_it_is_stopped,
    going_on::agentdex_visits_submissions_and_added_seeds_during_its_first_pass,
    going_on::agentdex_visits_sites_again_after_the_operators_interval,
    going_on::a_second_start_says_when_the_next_site_is_due,
    going_on::a_crawl_without_results_says_why,
    going_on::a_pass_that_reaches_no_site_says_what_is_left,
    going_on::agentdex_searches_and_decides_without_a_server,
    declarations::several_documents_declare_one_capability,
    harvest::entries_of_a_registry_are_listed_and_change_nothing,
    many::crawls_a_thousand_sites_politely_and_revisits_them_cheaply,
    own::crawls_its_own_descriptions_without_findings,
    third_parties::limits_apply_to_the_requested_host,
    restarts::kills_neither_lose_nor_duplicate_manifests,
    restarts::no_request_fails_during_a_rolling_restart,
    restarts::the_previous_version_works_with_an_expanded_schema,
    restarts::replicas_serve_published_snapshots,
    database::moves_a_database_to_the_other_back_end_and_back,
    database::rejects_an_invalid_import_with_the_reason,
    database::backs_up_and_restores_a_live_database,
    database::housekeeping_removes_only_old_data,
    database::a_damaged_document_is_not_served_and_is_fetched_again,
    faults::a_daemon_exits_with_an_error_when_its_queue_cannot_be_read,
    faults::respects_every_scope_at_once,
    faults::the_api_serves_the_key_of_a_signing_crawler,
    stalls::a_stalled_crawler_continues_its_visits,
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_apis_read_from_a_streaming_replica() {
    replicas::apis_read_from_a_streaming_replica().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_programs_wait_for_a_database_that_starts_later() {
    late_database::programs_wait_for_a_database_that_starts_later().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_cannot_forge_log_lines_or_raise_alarms_in_text() {
    logs::clients_cannot_forge_log_lines_or_raise_alarms_in_text().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_cannot_forge_log_lines_or_raise_alarms_in_json() {
    logs::clients_cannot_forge_log_lines_or_raise_alarms_in_json().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_cannot_forge_log_lines_at_trace_level() {
    logs::clients_cannot_forge_log_lines_at_trace_level().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_and_addresses_of_clients_are_not_stored() {
    privacy::searches_and_addresses_of_clients_are_not_stored().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_well_behaved_sites_keep_their_pace_among_hostile_ones() {
    hostile_fleet::well_behaved_sites_keep_their_pace_among_hostile_ones().await;
}

/// Only on PostgreSQL: an embedded database has one crawler.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_the_gap_of_an_address_holds_for_checks_and_visits_of_a_fleet() {
    checks::the_gap_of_an_address_holds_for_checks_and_visits_of_a_fleet().await;
}

/// Only on PostgreSQL: an embedded database has no connection to lose.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_an_outage_of_the_database_is_waited_out() {
    faults::an_outage_of_the_database_is_waited_out().await;
}

/// Only on PostgreSQL, too.
#[tokio::test(flavor = "multi_thread")]
async fn postgres_agentdex_keeps_submissions_when_the_database_restarts() {
    going_on::agentdex_keeps_submissions_when_the_database_restarts().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_stop_in_an_outage_of_the_database_ends_after_seconds() {
    faults::a_stop_in_an_outage_of_the_database_ends_after_seconds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_an_outage_and_a_kill_do_not_shorten_gaps() {
    faults::an_outage_and_a_kill_do_not_shorten_gaps().await;
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
async fn postgres_a_fleet_survives_kills_and_a_lost_connection() {
    fleet::a_fleet_survives_kills_and_a_lost_connection().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_stalled_worker_sends_nothing_after_its_leases() {
    stalls::a_stalled_worker_sends_nothing_after_its_leases().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_a_stalled_owner_sends_nothing_after_its_membership() {
    stalls::a_stalled_owner_sends_nothing_after_its_membership().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_explain_and_metrics_name_the_owner_of_an_address() {
    owners::explain_and_metrics_name_the_owner_of_an_address().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_limits_a_suffix_over_the_whole_fleet() {
    suffix::limits_a_suffix_over_the_whole_fleet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_spans_of_visits_and_requests() {
    traces::exports_spans_of_visits_and_requests().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn loses_only_spans_while_the_collector_is_unreachable() {
    traces::loses_only_spans_while_the_collector_is_unreachable().await;
}
