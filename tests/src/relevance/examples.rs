//! Requests as examples of tools: their effect on other requests, and how much a site gains if it claims requests that it does not answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexer::WordWeights;

use super::engines::{OwnIndex, scores};
use super::judge::Scores;
use super::sets::{PublicSet, Request, Tool, meaningless};

/// Maximum number of examples of one tool.
const EXAMPLES_MAX: usize = 2;
/// Number of requests that the attacker claims.
const CLAIMED: usize = 50;
/// The site of the attacker, and the number of its first invented name.
const ATTACKER: &str = "qxattacker";
const NAMES_FROM: usize = 90_000;

/// The effect on the evaluated half of the requests of one set.
#[derive(Debug, Clone, Copy)]
pub struct Effect {
    pub without: Scores,
    /// With up to two requests of the other half as examples of each tool.
    pub with: Scores,
    /// With the examples of [`Self::with`], and an attacker with one tool for each claimed request, which is its example.
    pub attacked: Scores,
    /// Shares of the claimed requests for which a tool of the attacker is first, and among the first ten.
    pub first: f64,
    pub on_page: f64,
}

/// Whether a request is evaluated; the other half of the requests are examples. The same request is always in the same half.
pub fn is_judging(text: &str) -> bool {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash >> 32) % 2 == 1
}

/// Measures the effect on a set.
#[expect(clippy::cast_precision_loss, reason = "counts of requests are small")]
pub fn effect(set: &PublicSet, known: &Arc<WordWeights>) -> anyhow::Result<Effect> {
    let (judging, chosen): (Vec<Request>, Vec<Request>) =
        set.requests.iter().cloned().partition(|request| is_judging(&request.text));
    let with = with_examples(set, &chosen);
    let claimed: Vec<Request> =
        judging.iter().step_by((judging.len() / CLAIMED).max(1)).take(CLAIMED).cloned().collect();
    let attacked = with_attacker(&with, &claimed);
    let judge = |set: &PublicSet, requests: &[Request]| -> anyhow::Result<_> {
        let rankings = OwnIndex::of(set)?.rank(requests, known, None)?;
        Ok((scores(requests, &rankings), rankings))
    };
    let (_, rankings) = judge(&attacked, &claimed)?;
    let is_attacker = |id: &String| id.starts_with(ATTACKER);
    let share = |of: &dyn Fn(&Vec<String>) -> bool| {
        rankings.iter().filter(|found| of(found)).count() as f64 / rankings.len().max(1) as f64
    };
    Ok(Effect {
        without: judge(set, &judging)?.0,
        with: judge(&with, &judging)?.0,
        attacked: judge(&attacked, &judging)?.0,
        first: share(&|found| found.first().is_some_and(is_attacker)),
        on_page: share(&|found| found.iter().any(is_attacker)),
    })
}

fn with_examples(set: &PublicSet, chosen: &[Request]) -> PublicSet {
    let mut by_tool: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for request in chosen {
        for id in &request.relevant {
            let examples = by_tool.entry(id).or_default();
            if examples.len() < EXAMPLES_MAX {
                examples.push(request.text.clone());
            }
        }
    }
    let mut with = set.clone();
    for tool in &mut with.tools {
        tool.examples = by_tool.remove(tool.id.as_str()).unwrap_or_default();
    }
    with
}

fn with_attacker(set: &PublicSet, claimed: &[Request]) -> PublicSet {
    let mut with = set.clone();
    with.tools.extend(claimed.iter().zip(NAMES_FROM..).map(|(request, number)| Tool {
        id: format!("{ATTACKER}{number}"),
        name: meaningless(number),
        site: ATTACKER.to_owned(),
        examples: vec![request.text.clone()],
        ..Tool::default()
    }));
    with
}
