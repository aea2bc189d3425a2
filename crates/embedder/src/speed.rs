//! How fast a model is.

use std::time::Instant;

use crate::{Model, ModelError};

/// Names and descriptions of capabilities as they are published: 22 words on average.
const TEXTS: [&str; 8] = [
    "book flight: Books a flight between two airports on a given date, for one to nine passengers, and returns the ticket number.",
    "get weather forecast: Returns the hourly temperature, wind and rain for a city over the next five days.",
    "track order: Where is my order? Returns the status, the carrier and the expected day of delivery of an order by its number.",
    "search products: Search the catalog of the shop by words, category, price range and availability. Results are paginated.",
    "send invoice: Creates an invoice for a customer with line items, tax and due date, and sends it by email as a PDF document.",
    "translate text: Translates a text of up to 5,000 characters from one language to another. The source language is detected if omitted.",
    "list open jobs: Lists open positions by profession and region with salary, contract type and the date of publication.",
    "convert currency: Convert an amount of money at the exchange rate of the European Central Bank on a given day.",
];
/// Requests as people type them.
const REQUESTS: [&str; 4] = ["book a flight", "weather tomorrow", "where is my order", "jobs near me"];
/// Texts of one batch: the number that the indexer passes.
const BATCH: usize = 32;
/// The fastest of these rounds counts, because other programs may use the processor.
const ROUNDS: usize = 5;

/// Times on one core.
#[derive(Debug, Clone, Copy)]
pub struct Speed {
    /// Mean number of tokens of the texts.
    pub tokens_per_text: f64,
    /// In batches, as the indexer embeds capabilities.
    pub ms_per_text: f64,
    /// One at a time, as a search embeds requests.
    pub ms_per_request: f64,
}

impl Model {
    /// Embeds some texts and measures the time. Takes a second with a small model.
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    pub fn speed(&self) -> Result<Speed, ModelError> {
        let texts: Vec<&str> = TEXTS.iter().copied().cycle().take(BATCH).collect();
        let tokens: usize = self.token_ids(&texts)?.iter().map(Vec::len).sum();
        let batch = self.fastest_ms(|| self.embed(&texts).map(drop))?;
        let requests =
            self.fastest_ms(|| REQUESTS.iter().try_for_each(|text| self.embed(&[text]).map(drop)))?;
        Ok(Speed {
            tokens_per_text: tokens as f64 / texts.len() as f64,
            ms_per_text: batch / texts.len() as f64,
            ms_per_request: requests / REQUESTS.len() as f64,
        })
    }

    #[expect(clippy::disallowed_methods, reason = "measures time")]
    fn fastest_ms(&self, run: impl Fn() -> Result<(), ModelError>) -> Result<f64, ModelError> {
        let mut fastest = f64::MAX;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            run()?;
            fastest = fastest.min(start.elapsed().as_secs_f64() * 1_000.0);
        }
        Ok(fastest)
    }
}
