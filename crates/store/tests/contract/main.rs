//! The contract of the store: one suite, run against SQLite and against PostgreSQL.
//!
//! PostgreSQL is found through `AGENTDEX_TEST_POSTGRES`, the URL of a superuser (`tests/postgres start DIR` prints
//! one); each test gets a database of its own, dropped afterwards. Without it those tests say that they were skipped.

mod blocks;
mod build;
mod compaction;
mod feed;
mod feedback;
mod groups;
mod harness;
mod history;
mod leases;
mod moving;
mod opening;
mod plans;
mod read_attempts;
mod reading;
mod seeds;
mod slow;
mod suffixes;
mod visits;

/// One test for each case, on one back end.
macro_rules! tests_on {
    ($backend:ident: $($module:ident :: { $($case:ident),* $(,)? }),* $(,)?) => {
        mod $backend {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    crate::harness::run(crate::harness::$backend, |db| Box::pin(crate::$module::$case(db))).await;
                }
            )*)*
        }
    };
}

macro_rules! contract_tests {
    ($backend:ident) => {
        tests_on! { $backend:
            opening::{
                eight_opens_of_an_empty_database_migrate_it_once, every_shipped_schema_is_brought_up_to_date, compacted_sites_of_earlier_schemas_are_read, a_newer_schema_is_refused,
                an_unreachable_place_is_told_with_what_to_do, what_was_stored_is_there_after_reopening,
                lost_connections_and_other_writers_are_survived, the_schema_and_the_space_are_told,
            },
            slow::{ slow_statements_are_named },
            seeds::{
                the_same_seeds_change_nothing, a_large_file_is_added_in_batches,
                a_new_url_makes_its_site_due_and_a_link_once_a_day, a_revisit_moves_the_next_visit_to_now,
                sites_visited_before_a_time_are_visited_again, ranks_decide_who_is_first,
                neighbours_in_a_list_are_spread, long_links_are_refused_and_long_sources_left_out,
                linked_sites_come_last_and_have_a_share, a_link_leaves_a_listed_site_where_its_list_puts_it,
                one_site_makes_a_bounded_number_of_sites_known, hosts_and_urls_of_a_site_are_bounded,
                hosts_keep_who_named_them,
                a_site_with_very_many_hosts_is_leased_and_told_at_once,
            },
            leases::{
                two_workers_race_for_one_lease, many_workers_share_the_sites_without_overlap,
                an_expired_lease_moves_on_and_the_old_holder_is_refused, leases_are_renewed_while_they_are_held,
                a_released_site_is_due_again_and_keeps_its_progress, a_parked_visit_goes_on_where_it_was,
                a_killed_visit_leaves_its_progress_to_the_next, a_damaged_site_is_set_aside_and_the_others_are_leased,
                a_parked_site_that_was_set_aside_is_listed_by_when_it_is_due,
                a_thousand_sites_come_by_priority_and_time, only_the_listed_sites_are_leased,
                a_site_that_is_only_asked_is_leased_and_never_due, a_killed_worker_is_forgotten, housekeeping_forgets_what_has_passed, clocks_move_forward_only, requests_are_counted_by_day,
            },
            groups::{
                a_group_has_one_owner, a_worker_that_gives_no_sign_of_life_loses_its_groups,
                a_clock_is_not_written_under_a_membership_that_has_ended, clocks_keep_a_membership_alive,
                a_clock_and_the_end_of_its_membership_exclude_each_other,
                sites_are_leased_by_the_group_of_their_address, a_visit_is_handed_over_with_what_it_has_done, hundreds_of_visits_are_handed_over_together,
                a_site_at_rest_keeps_its_group, workers_are_told_with_their_groups,
            },
            suffixes::{
                turns_at_a_suffix_are_a_gap_apart_and_four_are_open, a_turn_that_comes_too_late_is_not_taken,
                turns_outlive_whoever_took_them_and_end_by_themselves, workers_that_ask_at_once_get_one_turn_after_the_other,
            },
            visits::{
                a_visit_is_kept_with_all_it_found, a_visit_is_saved_whole_or_not_at_all,
                visits_that_end_together_are_saved_each_for_itself,
                a_visit_that_cannot_be_saved_keeps_no_other_from_it, a_damaged_manifest_writes_nothing, an_unchanged_manifest_adds_no_feed_row,
                the_last_fifty_visits_are_kept, unicode_and_control_characters_survive,
                big_bodies_and_many_capabilities_fit, validators_are_kept_when_the_server_fails,
                paths_that_were_merely_tried_leave_no_row, robots_and_slots_come_back_as_they_were,
                only_short_robots_of_main_hosts_are_read_with_a_site, hosts_that_visits_met_are_bounded,
            },
            history::{
                each_change_is_a_version, two_misses_remove_and_a_return_adds, gone_and_denied_remove_at_once,
                errors_never_remove, a_dead_site_takes_its_manifests_along,
                a_document_that_may_not_be_kept_is_not, documents_are_shared_by_content, parts_of_manifests_are_kept_while_they_may,
                old_versions_of_a_site_are_bounded_in_bytes,
            },
            moving::{
                a_dump_moves_everything_there_and_back, a_damaged_dump_leaves_nothing_behind,
                a_dump_of_an_earlier_schema_is_imported_or_refused_with_a_remedy,
                retention_waits_for_registered_readers,
            },
            compaction::{
                a_site_with_nothing_rests_in_one_row_and_wakes, what_may_be_needed_does_not_rest,
                seeds_rest_until_they_bring_more, a_refusal_is_remembered_at_rest,
                a_negative_site_takes_few_bytes, a_list_that_is_read_again_is_followed,
            },
            blocks::{
                a_block_purges_and_leaves_a_tombstone, a_block_beats_the_visit_under_way,
                an_unblocked_site_is_due_again, documents_of_others_survive_a_block,
            },
            feed::{
                no_change_is_missed_under_concurrent_writers, visits_of_many_workers_reach_the_feed_in_order,
                an_empty_feed_has_a_head_and_an_id, a_site_has_its_own_changes_and_a_time_has_its_place,
                a_damaged_entry_is_left_out_and_readers_pass_it,
            },
            feedback::{
                feedback_is_kept_once_told_and_removed, feedback_has_caps, a_day_has_one_salt_and_yesterday_none,
            },
            read_attempts::{a_begin_without_an_earlier_attempt_wrote_its_own,
                an_attempt_stands_until_its_document_is_read, a_quarantined_document_is_read_again_by_another_version_only,
                a_block_and_time_remove_attempts,
            },
            reading::{
                manifests_are_paged_by_id, pages_of_manifests_are_bounded_by_bytes,
                a_batch_keeps_the_order_that_was_asked_for, sites_are_paged_and_filtered, stats_count_what_is_there,
                dialects_and_new_sites_are_told, semantic_types_are_counted_once_a_capability, the_last_hours_and_the_workers_are_told, the_next_due_site_is_known,
                paths_are_told_of_sites_that_have_manifests,
                what_is_not_there_is_none, a_damaged_row_is_named, lists_leave_damaged_rows_out,
                a_damaged_planned_time_stops_neither_the_queue_nor_its_numbers,
                a_document_that_is_not_what_its_hash_says_is_never_handed_out,
                a_damaged_document_is_replaced_when_it_is_fetched_again,
            },
        }
    };
}

contract_tests!(sqlite);
contract_tests!(postgres);
