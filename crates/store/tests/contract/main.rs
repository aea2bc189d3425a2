//! The contract of the store: one suite that runs on SQLite and on PostgreSQL.
//!
//! `AGENTDEX_TEST_POSTGRES` contains the URL of a PostgreSQL superuser (`tests/postgres start DIR` prints
//! one); each test gets its own database, which is dropped afterwards. Without the variable, these tests print that they
//! are skipped.

mod addresses;
mod blocks;
mod build;
mod claims;
mod compaction;
mod damage;
mod declarations;
mod feed;
mod feedback;
mod groups;
mod harness;
mod history;
mod host_checks;
mod leases;
mod moving;
mod naming;
mod opening;
mod plans;
mod read_attempts;
mod reader_keys;
mod reading;
mod registry_entries;
mod reports;
mod room;
mod seeds;
mod slow;
mod suffixes;
mod tasks;
mod visits;
mod watches;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_many_declarations_are_saved_in_linear_time() {
    harness::run(harness::sqlite, |db| {
        Box::pin(declarations::many_declarations_are_saved_in_linear_time(db))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_semantic_types_are_counted_in_linear_time() {
    harness::run(harness::sqlite, |db| Box::pin(reading::semantic_types_are_counted_in_linear_time(db)))
        .await;
}

/// One test for each case, on one backend.
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
                eight_concurrent_opens_migrate_once, tables_that_the_user_may_not_read_are_not_missing, damaged_pages_of_a_file_are_found, a_directory_is_no_database_file, only_the_owner_of_a_new_database_file_can_read_it, writes_of_a_replica_go_to_its_primary, migrates_every_released_schema, reads_compacted_sites_of_earlier_schemas, refuses_incompatible_newer_schemas,
                reports_unreachable_databases_with_advice, says_that_its_user_has_to_own_the_database, data_survives_reopening,
                recovers_from_lost_connections_and_waits_for_other_writers, reports_schema_version_and_size,
                opening_for_reading_creates_nothing,
            },
            slow::{ logs_slow_statements, waiting_for_a_migration_is_not_slow },
            seeds::{
                adding_the_same_seeds_changes_nothing, adds_a_large_file_in_batches,
                new_url_makes_its_site_due_and_a_link_once_a_day, revisit_moves_the_next_visit_to_now,
                revisits_sites_visited_before_a_time, leases_sites_by_rank,
                first_visits_of_a_list_are_shuffled, refuses_long_links_and_omits_long_sources,
                leases_linked_sites_last_with_a_minimum_share, submitted_sites_leave_half_of_a_batch_to_lists, submission_does_not_change_the_priority_of_a_listed_site, a_visit_requested_during_another_one_follows_it, a_submission_can_make_a_site_due_later, link_does_not_change_the_priority_of_a_listed_site,
                a_url_without_a_manifest_becomes_a_hint_again, a_list_read_again_does_not_repeat_the_request_of_a_planned_path, a_link_that_its_site_still_has_leads_to_a_few_more_requests, bounds_the_sites_that_one_site_adds, bounds_hosts_and_urls_of_a_site,
                sites_share_the_limit_on_urls, refused_links_of_a_manifest_are_read_again,
                hosts_without_manifests_make_room_for_links,
                host_keeps_its_most_trusted_origin,
                site_with_60_000_hosts_is_leased_and_reported_in_linear_time,
            },
            leases::{
                only_one_of_two_workers_gets_a_lease, many_workers_lease_distinct_sites,
                expired_lease_goes_to_another_worker_and_its_holder_is_refused, renews_held_leases_only,
                released_site_is_due_again_and_keeps_its_progress, parked_visit_resumes_at_its_progress,
                next_visit_gets_the_progress_of_a_killed_visit, saves_a_clock_only_under_a_lease_that_is_held,
                concurrent_takeover_of_a_site_refuses_or_reads_a_clock, postpones_a_damaged_site_and_leases_the_others,
                lists_a_postponed_parked_site_by_its_due_time,
                leases_a_thousand_sites_by_priority_and_time, leases_only_the_listed_sites,
                host_of_a_seed_list_can_be_leased_and_is_never_due, releases_the_leases_of_a_killed_worker, housekeeping_removes_expired_clocks_and_progress, saved_clocks_never_move_backward, counts_requests_by_day,
            },
            groups::{
                group_has_one_owner, worker_without_heartbeat_loses_its_groups,
                does_not_save_clocks_of_an_expired_membership, saved_clocks_renew_a_membership,
                concurrent_takeover_refuses_or_reads_a_clock,
                leases_sites_by_the_group_of_their_address, hands_over_a_visit_with_its_progress, hands_over_hundreds_of_visits_together,
                compacted_site_keeps_its_group, lists_workers_with_their_groups,
            },
            addresses::{
                requests_of_owners_and_guests_are_a_gap_apart,
                an_owner_keeps_its_own_gap_after_the_last_guest, the_owner_of_a_platform_waits_for_nobody,
                a_time_that_is_too_late_is_not_reserved, concurrent_workers_use_an_address_at_successive_times,
            },
            suffixes::{
                suffix_permits_are_a_gap_apart_and_at_most_four_are_open, refuses_a_suffix_permit_that_would_start_too_late,
                suffix_permits_outlive_their_worker_and_expire, concurrent_workers_get_successive_suffix_permits,
            },
            visits::{
                saves_a_visit_with_all_its_results, saves_a_visit_completely_or_not_at_all,
                saves_each_visit_of_a_batch_independently,
                failed_visit_does_not_block_others_of_its_batch, damaged_manifest_writes_nothing, unchanged_manifest_adds_no_feed_row, a_later_reader_replaces_what_an_earlier_one_read,
                a_later_reader_with_an_equal_reading_writes_its_version, a_document_that_was_not_requested_is_not_confirmed,
                an_earlier_program_leaves_outdated_manifests,
                keeps_the_last_50_visits, unicode_and_control_characters_survive,
                stores_large_bodies_and_many_capabilities, keeps_validators_when_the_server_fails, validators_move_only_with_what_was_read,
                stores_no_row_for_paths_without_content, robots_and_path_slots_survive_a_round_trip,
                a_brief_report_has_the_hosts_of_the_site_before_those_that_others_name,
                only_short_robots_of_main_hosts_are_read_with_a_site, hosts_that_visits_discovered_are_bounded,
            },
            host_checks::{
                a_host_is_checked_at_most_once_on_a_day, an_abandoned_check_begins_again_on_the_same_day, concurrent_workers_share_the_hosts,
                a_domain_has_a_limited_number_of_checked_hosts,
                hosts_that_others_name_take_no_place_of_those_that_the_site_names, hosts_of_blocked_sites_are_not_checked, checks_are_deleted_by_age,
            },
            tasks::{ failures_of_a_task_are_counted_until_it_succeeds, failures_of_tasks_are_deleted_by_age },
            reader_keys::{ a_reader_has_one_key_until_it_is_revoked, reader_keys_have_a_cap },
            registry_entries::{
                an_entry_that_may_not_be_kept_any_more_is_removed, entries_of_which_the_site_is_the_publisher_come_first,
                listings_of_several_sites_are_read_at_once,
                registry_entries_are_replaced_and_removed, registry_entries_of_opted_out_sites_are_not_kept,
                registry_entries_expire_without_a_reading, registry_rows_have_a_cap,
                the_rows_about_a_site_have_a_cap_and_its_own_entries_stay,
                others_do_not_replace_an_entry_at_the_site_of_its_publisher,
                other_customers_do_not_replace_an_entry_at_the_host_of_its_publisher,
                a_withdrawn_entry_removes_the_rows_with_its_url_alone,
            },
            watches::{
                a_watch_delivers_only_after_its_receiver_answered, watches_have_caps,
                a_watch_of_a_search_moves_over_every_change,
                an_opt_out_removes_the_site_from_waiting_messages_of_searches,
                an_opt_out_composes_a_message_again_that_is_just_being_stored,
                a_client_has_a_share_of_the_watches, changes_are_delivered_in_order,
                a_message_is_sent_again_if_its_worker_was_killed, two_workers_send_different_messages,
                a_dead_receiver_leaves_dead_letters_and_pauses_its_watch, messages_to_a_domain_are_counted_by_day,
                challenges_and_changes_are_claimed_separately, an_opt_out_ends_watches_of_both_sides, watches_are_deleted_by_age, rotation_keeps_the_previous_secret,
            },
            claims::{
                a_check_is_requested_once_in_ten_minutes, a_visit_that_the_owner_requests_is_a_check, a_visit_saves_the_owner_and_keeps_the_request,
                a_check_requested_during_a_visit_causes_another_one, a_parked_visit_saves_the_claim_that_it_checked,
                a_compacted_site_keeps_its_owner, a_block_removes_the_owner, keeps_the_first_secret,
                counts_searches_of_sites_with_owners,
            },
            declarations::{
                two_declarations_of_one_operation_are_one_capability,
                a_document_that_others_name_does_not_lead_a_capability_of_its_site, a_semantic_type_counts_a_shared_capability_once,
                a_change_of_leader_keeps_the_id, known_capabilities_that_become_one_are_merged,
                a_split_is_reported_and_gives_each_its_own_id, an_id_stays_valid_after_its_declaration_is_gone,
                manifests_of_an_earlier_schema_are_grouped_at_the_next_visit,
                a_block_removes_the_shared_capabilities_of_its_site, the_feed_names_a_bounded_number_of_moves,
                statements_are_stored_when_a_site_has_several_manifests,
                statements_of_an_earlier_schema_are_stored_at_the_next_visits, a_damaged_statement_is_left_out,
                the_declarations_that_are_read_with_a_manifest_are_bounded,
            },
            history::{
                stores_a_version_for_each_change, removes_a_manifest_after_two_misses_and_adds_it_again, removes_a_manifest_immediately_when_gone_or_denied,
                errors_do_not_remove_a_manifest, removes_the_manifests_of_a_dead_site,
                an_end_at_the_sites_own_hosts_does_not_remove_documents_of_a_customer,
                does_not_store_a_document_with_no_store, keeps_the_training_preference_of_the_last_response, stores_equal_documents_once, keeps_parts_of_manifests_while_permitted,
                bounds_old_versions_of_a_site_by_bytes, old_versions_of_others_are_deleted_first,
            },
            room::{
                a_site_has_at_most_500_manifests_that_it_does_not_name, a_manifest_takes_the_place_of_one_of_the_owner_with_the_most, what_a_site_does_not_name_takes_at_most_256_mib, a_larger_reading_of_an_unchanged_document_needs_room,
            },
            naming::{
                a_document_without_its_source_is_no_longer_named_by_the_site, a_link_that_failed_stays_until_it_was_missed_in_a_row, the_links_that_a_site_keeps_are_bounded,
                stores_who_names_a_document_and_reports_a_change, others_name_a_new_version_and_a_returned_document_too,
                the_operator_names_the_host_of_a_customer, a_change_of_naming_regroups_the_declarations, a_change_of_publisher_regroups_the_declarations, what_an_earlier_program_grouped_is_grouped_again,
                the_url_decides_until_the_next_visit_of_an_earlier_schema,
            },
            moving::{
                dump_restores_everything_on_both_backends,
                dump_holds_every_column_of_every_table, import_of_a_damaged_dump_changes_nothing,
                imports_or_refuses_dumps_of_earlier_schemas,
                declarations_of_an_earlier_dump_are_grouped_at_the_next_visit,
                retention_keeps_entries_that_registered_readers_need,
            },
            compaction::{
                compacts_a_site_without_content_and_expands_it, does_not_compact_sites_whose_rows_are_needed,
                compacts_seeds_until_they_have_more_data, compacted_site_keeps_its_robots_verdict,
                compacted_site_takes_at_most_300_bytes, removes_sites_that_left_a_list,
            },
            blocks::{
                block_deletes_the_data_of_a_site_and_keeps_a_tombstone, block_ends_a_visit_in_progress,
                unblocked_site_is_due_again, block_keeps_documents_of_other_sites,
                suspension_removes_a_site_until_it_is_lifted, an_owner_objects_to_a_suspension_and_the_operator_answers,
                suspended_site_of_an_owner_who_opted_out_stays_closed,
            },
            feed::{
                reads_every_change_of_concurrent_writers, feed_keeps_the_order_of_visits_of_many_workers,
                empty_feed_has_a_head_and_an_id, filters_changes_by_site_and_finds_the_position_of_a_time,
                skips_damaged_entries_of_the_feed,
            },
            feedback::{
                feedback_is_stored_once_listed_and_removed, feedback_has_caps, keeps_one_salt_for_today_only,
            },
            reports::{
                reports_are_stored_once_counted_and_dismissed, reports_have_caps, old_reports_are_deleted,
            },
            read_attempts::{stores_an_attempt_unless_an_earlier_one_exists,
                keeps_an_attempt_until_its_document_is_read, reads_a_quarantined_document_again_only_with_another_version,
                block_and_expiry_remove_attempts,
            },
            damage::{
                a_damaged_cell_does_not_hide_other_rows_or_stop_leases,
                a_lease_that_ends_later_than_any_lease_counts_as_expired,
            },
            reading::{
                pages_manifests_by_id, bounds_pages_of_manifests_by_bytes,
                loads_manifests_in_the_requested_order, pages_and_filters_sites, interrupts_lists_of_sites_after_their_deadline, stats_count_all_rows,
                lists_dialect_usage_and_newest_sites, counts_a_semantic_type_once_per_capability, a_namespace_of_a_site_is_separate_from_the_standard_ones, a_type_counts_in_its_own_namespace_only,
                interrupts_operations_that_read_whole_tables_after_their_deadline, counts_visits_by_interval_and_lists_workers, returns_the_due_time_of_the_next_site,
                lists_checked_paths_of_sites_with_manifests,
                lookups_of_missing_rows_return_none, error_names_the_damaged_row, lists_omit_damaged_rows,
                damaged_planned_time_does_not_block_the_queue_or_its_statistics,
                refuses_a_document_that_does_not_match_its_hash,
                fetching_a_damaged_document_again_replaces_it,
            },
        }
    };
}

contract_tests!(sqlite);
contract_tests!(postgres);
