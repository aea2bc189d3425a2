//! Scores A2A cards before 1.0, which have no unique marker.

use serde_json::Value;

use super::candidate::Candidate;

/// Points required for a card.
pub(super) const POINTS_MIN: u8 = 3;

pub(super) struct Score {
    pub(super) points: u8,
    pub(super) evidence: Vec<String>,
}

/// Adds up the evidence for a card. AWP and ATP have already been ruled out.
pub(super) fn score(candidate: &Candidate<'_>) -> Score {
    let mut score = Score { points: 0, evidence: Vec::new() };
    // AgentFacts documents have the same skills as a card, but name the agent in `agent_name`.
    if candidate.has("agent_name") && candidate.has("label") && !candidate.has("name") {
        return score;
    }
    let mut count = |points: u8, found: bool, words: &str| {
        if found {
            score.points += points;
            score.evidence.push(words.to_owned());
        }
    };
    let skills = candidate.objects("skills").is_some();
    let switches = candidate.object("capabilities").is_some_and(|capabilities| {
        ["streaming", "pushNotifications", "stateTransitionHistory"]
            .iter()
            .any(|key| capabilities.contains_key(*key))
    });
    let organization = candidate
        .object("provider")
        .is_some_and(|provider| provider.get("organization").is_some_and(Value::is_string));
    let transport = ["preferredTransport", "additionalInterfaces", "supportsAuthenticatedExtendedCard"];
    count(2, skills && switches, "`skills` beside `capabilities` with streaming or pushNotifications");
    count(2, candidate.list("defaultInputModes").is_some(), "`defaultInputModes` is a list");
    count(1, candidate.has("protocolVersion"), "`protocolVersion` is present");
    count(1, skills, "`skills` is a list of objects");
    count(1, organization, "`provider.organization` is a string");
    count(1, transport.iter().any(|key| candidate.has(key)), "a transport of A2A 0.3 is named");
    score
}

pub(super) fn is_card_path(candidate: &Candidate<'_>) -> bool {
    candidate.is_file(&["/agent.json", "/agent-card.json"])
}

/// Whether a document has the members of a card, with an empty list of skills.
pub(super) fn is_without_skills(candidate: &Candidate<'_>) -> bool {
    candidate.list("skills").is_some_and(<[Value]>::is_empty)
        && candidate.object("capabilities").is_some()
        && ["name", "description", "url", "version"].iter().all(|key| candidate.text(key).is_some())
}
