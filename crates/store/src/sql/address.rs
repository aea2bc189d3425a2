//! Politeness clocks of addresses: when a request may next be sent to an address that several workers use.
//!
//! The owner of an address limits its own requests in memory, and stores the time from which the next one may be sent (`next_ok_at_ms`).
//! Each other worker reserves a time after it and after all earlier reservations (`reserved_until_ms`). The owner reads the reserved times
//! in the statement that stores its own clock, and sends a request that is too close to them after the last one. Both statements lock the
//! row of the address, so each sees the requests of the other.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Connection, batch, convert};
use crate::convert::{RowRef, json, millis, names, until_ms};
use crate::fault::Outcome;
use crate::model::{AddressSlot, ClockOutcome, ClockWrite, SlotClaim};

#[derive(Serialize)]
struct AddressClock<'a> {
    address: &'a str,
    next_ok_at_ms: i64,
}

/// The slot of one write of a batch.
struct Wanted {
    address: String,
    index: usize,
    slot: AddressSlot,
}

/// Claims the slot of each write that will be saved. If its planned time is occupied, reserves a later one and sets the outcome.
pub(super) async fn slots_take(
    connection: &mut Connection,
    writes: &[ClockWrite],
    outcomes: &mut [ClockOutcome],
) -> Outcome<()> {
    let wanted = writes.iter().zip(&*outcomes).enumerate().filter_map(|(index, (write, outcome))| {
        let slot = write.address.filter(|_| *outcome == ClockOutcome::Saved)?;
        Some(Wanted { address: slot.address.to_string(), index, slot })
    });
    let mut wanted: Vec<Wanted> = wanted.collect();
    wanted.sort_by(|one, other| one.address.cmp(&other.address));
    let has_reservations = wanted.iter().any(|wanted| wanted.slot.claim == SlotClaim::Guest);
    // If all writes are of owners, one statement claims all slots. Otherwise each slot has its own statement. Both lock rows in the order
    // of their addresses, so that concurrent batches cannot deadlock.
    for part in wanted.chunk_by(|_, _| !has_reservations) {
        let reserved = owner_slots_take(connection, part).await?;
        for Wanted { address, index, slot } in part {
            let is_taken = match slot.claim {
                SlotClaim::PlatformOwner => false,
                SlotClaim::Owner => {
                    reserved.get(address).is_some_and(|until_ms| *until_ms > millis(slot.from))
                }
                SlotClaim::Guest => true,
            };
            if is_taken && let Some(outcome) = outcomes.get_mut(*index) {
                *outcome = match slot.claim {
                    SlotClaim::Guest => slot_reserve(connection, address, slot).await?,
                    SlotClaim::Owner | SlotClaim::PlatformOwner => {
                        slot_after_guests(connection, address, slot).await?
                    }
                };
            }
        }
    }
    Ok(())
}

/// Stores the clocks of owners. Returns for each address the end of the last reservation of another worker.
async fn owner_slots_take(connection: &mut Connection, wanted: &[Wanted]) -> Outcome<HashMap<String, i64>> {
    let mut clocks: BTreeMap<&str, i64> = BTreeMap::new();
    for Wanted { address, slot, .. } in wanted.iter().filter(|wanted| wanted.slot.claim != SlotClaim::Guest) {
        let next_ok_at_ms = clocks.entry(address).or_insert(i64::MIN);
        *next_ok_at_ms = (*next_ok_at_ms).max(until_ms(slot.from, slot.hold));
    }
    if clocks.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<_> =
        clocks.into_iter().map(|(address, next_ok_at_ms)| AddressClock { address, next_ok_at_ms }).collect();
    let reserved: Vec<(String, i64)> = sqlx::query_as(concat!(
        "INSERT INTO address_clock (address, next_ok_at_ms) SELECT address, next_ok_at_ms FROM ",
        batch!(address TEXT, next_ok_at_ms BIGINT),
        " WHERE true
         ON CONFLICT (address) DO UPDATE SET
             next_ok_at_ms = CASE WHEN address_clock.next_ok_at_ms > excluded.next_ok_at_ms
                 THEN address_clock.next_ok_at_ms ELSE excluded.next_ok_at_ms END
         RETURNING address, reserved_until_ms"
    ))
    .bind(json(&rows, "batch of address clocks")?)
    .fetch_all(&mut *connection)
    .await?;
    Ok(reserved.into_iter().collect())
}

/// Moves a request of the owner behind the times that others have reserved. The owner sends one request at a time, so no other request of it
/// has this time.
async fn slot_after_guests(
    connection: &mut Connection,
    address: &str,
    slot: &AddressSlot,
) -> Outcome<ClockOutcome> {
    let reserved_until_ms: Option<i64> = sqlx::query_scalar(
        "UPDATE address_clock SET next_ok_at_ms = CASE WHEN next_ok_at_ms > reserved_until_ms + $2
             THEN next_ok_at_ms ELSE reserved_until_ms + $2 END
         WHERE address = $1 AND reserved_until_ms <= $3
         RETURNING reserved_until_ms",
    )
    .bind(address)
    .bind(until_ms(DateTime::UNIX_EPOCH, slot.hold))
    .bind(millis(slot.latest))
    .fetch_optional(&mut *connection)
    .await?;
    match reserved_until_ms {
        Some(at_ms) => {
            let at = RowRef::new("address_clock", address).time("reserved_until_ms", at_ms)?;
            Ok(ClockOutcome::Reserved { at })
        }
        None => address_taken(connection, slot).await,
    }
}

/// The address has no free time soon enough.
async fn address_taken(connection: &mut Connection, slot: &AddressSlot) -> Outcome<ClockOutcome> {
    let until = address_clocks(connection, &[slot.address]).await?.get(&slot.address).copied();
    Ok(ClockOutcome::AddressTaken { until: until.unwrap_or(slot.latest) })
}

/// Reserves the next time that neither the owner nor another worker uses.
async fn slot_reserve(
    connection: &mut Connection,
    address: &str,
    slot: &AddressSlot,
) -> Outcome<ClockOutcome> {
    let hold_ms = until_ms(DateTime::UNIX_EPOCH, slot.hold);
    let reserved_until_ms: Option<i64> = sqlx::query_scalar(
        "INSERT INTO address_clock (address, next_ok_at_ms, reserved_until_ms) VALUES ($1, $2, $3)
         ON CONFLICT (address) DO UPDATE SET
             reserved_until_ms = $4 + CASE
                 WHEN address_clock.next_ok_at_ms > excluded.next_ok_at_ms
                     AND address_clock.next_ok_at_ms > address_clock.reserved_until_ms
                 THEN address_clock.next_ok_at_ms
                 WHEN address_clock.reserved_until_ms > excluded.next_ok_at_ms
                 THEN address_clock.reserved_until_ms
                 ELSE excluded.next_ok_at_ms END
         WHERE address_clock.next_ok_at_ms <= $5 AND address_clock.reserved_until_ms <= $5
         RETURNING reserved_until_ms",
    )
    .bind(address)
    .bind(millis(slot.from))
    .bind(until_ms(slot.from, slot.hold))
    .bind(hold_ms)
    .bind(millis(slot.latest))
    .fetch_optional(&mut *connection)
    .await?;
    let at = RowRef::new("address_clock", address);
    let Some(reserved_until_ms) = reserved_until_ms else { return address_taken(connection, slot).await };
    let reserved_at = at.time("reserved_until_ms", reserved_until_ms.saturating_sub(hold_ms))?;
    Ok(if reserved_at > slot.from { ClockOutcome::Reserved { at: reserved_at } } else { ClockOutcome::Saved })
}

/// The clocks of the listed addresses that have one.
pub(crate) async fn address_clocks(
    connection: &mut Connection,
    addresses: &[IpAddr],
) -> Outcome<HashMap<IpAddr, DateTime<Utc>>> {
    let wanted: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    let rows: Vec<(String, i64)> = sqlx::query_as(concat!(
        "SELECT address, CASE WHEN reserved_until_ms > next_ok_at_ms THEN reserved_until_ms ELSE next_ok_at_ms END
         FROM address_clock WHERE address IN ",
        list!()
    ))
    .bind(names(wanted.iter().map(String::as_str))?)
    .fetch_all(&mut *connection)
    .await?;
    let clocks = convert(rows, |(address, next_ok_at_ms)| {
        let at = RowRef::new("address_clock", &address);
        Ok((at.parse("address", &address)?, at.time("next_ok_at_ms", next_ok_at_ms)?))
    });
    Ok(clocks?.into_iter().collect())
}
