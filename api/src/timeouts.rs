//! Timeouts for slow clients: a time allowance that waiting for the client reduces and transferred bytes refill.
//!
//! One rule applies to request bodies, responses and endless streams: only the time that this process waits for the client counts, so a
//! stream without data to send does not use up the allowance. A client that stalls is disconnected when the allowance is used up; a client
//! below the minimum rate is disconnected eventually, so the maximum time grows with the size.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinRate {
    /// Maximum stall of a transfer.
    pub allowance: Duration,
    /// Bytes that refill one second of the allowance, which never exceeds its initial value.
    pub bytes_per_second: u32,
}

/// Timeouts of connections and minimum rates of transfers.
#[derive(Debug, Clone, Copy)]
pub struct ClientTimeouts {
    /// Time until the headers of the next request are complete.
    pub headers: Duration,
    /// Minimum rate at which a client sends a request body.
    pub sends: MinRate,
    /// Minimum rate at which a client reads a response.
    pub reads: MinRate,
    /// Maximum time for a client to read a large response that is kept in memory.
    pub large_responses: Duration,
    /// Minimum rate at which a client must read an export: only a few exports run at the same time, and each reads the whole database.
    pub exports: MinRate,
    /// How long a closed connection still reads, so that a client that is sending receives the response.
    pub linger: Duration,
    /// How long open requests may take after the signal to stop.
    pub drain: Duration,
}

/// The defaults are long enough for slow connections, and short enough to limit attacks by slow clients.
impl Default for ClientTimeouts {
    fn default() -> Self {
        Self {
            headers: Duration::from_secs(10),
            sends: MinRate { allowance: Duration::from_secs(10), bytes_per_second: 4 * 1024 },
            // The kernel takes the next bytes when a third of its buffer is free, which is up to 43 KiB: twice that rate.
            reads: MinRate { allowance: Duration::from_secs(20), bytes_per_second: 4 * 1024 },
            // 16 MiB take at least 280 KiB/s, and less memory is not held for longer.
            large_responses: Duration::from_mins(1),
            // A gigabyte takes at most two and a half hours.
            exports: MinRate { allowance: Duration::from_secs(30), bytes_per_second: 128 * 1024 },
            linger: Duration::from_secs(5),
            drain: Duration::from_secs(5),
        }
    }
}

/// The remaining allowance of one client.
#[derive(Debug)]
pub(crate) struct Allowance {
    pace: MinRate,
    left: Duration,
}

impl Allowance {
    pub(crate) const fn new(pace: MinRate) -> Self {
        Self { pace, left: pace.allowance }
    }

    /// Maximum duration of the next wait.
    pub(crate) const fn left(&self) -> Duration {
        self.left
    }

    /// Records a wait of this duration for the client, and the bytes that it then transferred.
    pub(crate) fn moved(&mut self, bytes: usize, waited: Duration) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let refill = Duration::from_secs_f64(f64::from(bytes) / f64::from(self.pace.bytes_per_second.max(1)));
        self.left = self.left.saturating_sub(waited).saturating_add(refill).min(self.pace.allowance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: MinRate = MinRate { allowance: Duration::from_secs(10), bytes_per_second: 1_000 };

    #[test]
    fn waiting_spends_the_allowance_and_bytes_refill_it() {
        let mut allowance = Allowance::new(PACE);
        allowance.moved(0, Duration::from_secs(4));
        assert_eq!(allowance.left(), Duration::from_secs(6));
        allowance.moved(2_000, Duration::ZERO);
        assert_eq!(allowance.left(), Duration::from_secs(8));
        allowance.moved(1_000_000, Duration::ZERO);
        assert_eq!(
            allowance.left(),
            PACE.allowance,
            "fast transfers do not raise the allowance above its initial value"
        );
    }

    #[test]
    fn client_below_the_minimum_rate_runs_out_of_allowance() {
        let steps = |bytes_a_second: usize| {
            let mut allowance = Allowance::new(PACE);
            (0..10_000)
                .take_while(|_| {
                    let waits = Duration::from_secs(1);
                    let is_open = waits <= allowance.left();
                    allowance.moved(bytes_a_second, waits);
                    is_open
                })
                .count()
        };
        assert_eq!(steps(0), 10);
        assert_eq!(steps(500), 19);
        assert_eq!(steps(1_000), 10_000);
    }
}
