//! The terms of a phrasing with their weights, and the parts of a long one.
//!
//! Repeated words count once. Words of conversation are left out unless the phrasing has no others. A phrasing of several sentences is also
//! scored sentence by sentence, because each sentence may request another capability.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::intent::{Intent, Times, is_deciding, verb_weight};
use crate::analysis::{Stemming, bigram, detect, is_chat_verb, is_stop_word, is_topical, words};
use crate::lexicon::{WordWeights, is_english_word, is_only_foreign, synonyms, translations};

/// Maximum number of words of one phrasing that count.
const WORDS_MAX: usize = 64;
/// Maximum number of parts of one phrasing.
const PARTS_MAX: usize = 6;
/// A part with fewer words is joined to the previous one.
const PART_WORDS_MIN: usize = 2;

/// Weights of a bigram, a correction and a synonym; a word of the phrasing has 1.
const BIGRAM_WEIGHT: f32 = 0.3;
/// Weights of a conversational word, of a term from an expression, and of an unwanted term.
const TALK_WEIGHT: f32 = 0.3;
const INTENT_WEIGHT: f32 = 0.5;
/// Weight of a verb from an expression that distinguishes actions: "call off" is "cancel".
const DECIDING_INTENT_WEIGHT: f32 = 1.0;
const OPPOSITE_WEIGHT: f32 = -1.0;
/// Minimum length of each part of a word that is also searched as two words.
const PART_CHARS_MIN: usize = 3;
/// Maximum number of words of a request that are also searched as one word joined with the next.
const JOINED_WORDS_MAX: usize = 8;
/// Weight of a bigram of words that are written together, as in "bookFlight" or "S3".
const JOINED_WEIGHT: f32 = 1.0;
/// Weight of a bigram if the whole phrasing is one identifier, as `ledger_key`: results with all of it come before those with a part of it
/// in their name. With 2 instead of 5, 13 instead of 9 of 2,847 words of published manifests do not find their capability. In longer
/// phrasings, it would lower the mean of the public sets by .001.
const IDENTIFIER_WEIGHT: f32 = 5.0;
const CORRECTION_WEIGHT: f32 = 0.8;
const SYNONYM_WEIGHT: f32 = 0.15;
/// Weight of a synonym of a word that no capability contains.
const UNKNOWN_SYNONYM_WEIGHT: f32 = 0.3;
/// Weight of a synonym of a verb that distinguishes actions: interfaces use "delete" where people write "remove".
const DECIDING_SYNONYM_WEIGHT: f32 = 1.0;
/// Weights of English translations: the closest one if no other word matches a capability, the closest one otherwise, and all others.
const TRANSLATION_WEIGHT: f32 = 0.8;
const NEAR_TRANSLATION_WEIGHT: f32 = 0.4;
const FAR_TRANSLATION_WEIGHT: f32 = 0.3;
/// Maximum number of concepts of one word.
const CONCEPTS_MAX: usize = 3;
/// Maximum number of forms of one word in the languages of the index; the most frequent are taken.
const FORMS_MAX: usize = 6;

/// The source of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Word,
    /// A word of the phrasing in the form of another language of the index.
    Variant,
    Bigram,
    Correction,
    /// An English translation of a word of another language.
    Translation,
    Synonym,
    /// A conversational word, or a term from an expression. It ranks candidates but does not select any.
    Talk,
    /// An unwanted term, if it is in the name. It ranks candidates but does not select any.
    Opposite,
}

impl Role {
    /// Whether a term with this role selects candidates.
    pub(crate) fn selects(self) -> bool {
        !matches!(self, Self::Talk | Self::Opposite)
    }
}

/// One term that is searched for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueryTerm {
    pub(crate) text: String,
    pub(crate) role: Role,
    pub(crate) weight: f32,
    /// Index of the word that it represents; a bigram represents its second word.
    pub(crate) word: usize,
}

/// One phrasing as terms.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Plan {
    pub(crate) terms: Vec<QueryTerm>,
    /// For each part of a phrasing of several parts, indexes of its terms in `terms`.
    pub(crate) parts: Vec<Vec<usize>>,
    /// The distinct words that are used.
    pub(crate) words: Vec<PlanWord>,
    /// Conversational words that can name a topic.
    topical: Vec<String>,
    /// How the words were stemmed.
    pub(crate) stemming: Stemming,
    /// Whether the request is read-only.
    pub(crate) only_reads: bool,
}

/// How the words of one text are analysed.
struct Analysis<'a> {
    stemming: Stemming,
    keeps_chat: bool,
    is_identifier: bool,
    weights: &'a WordWeights,
}

impl Analysis<'_> {
    /// Weight of a bigram of a word that ends at a byte and the next one. Pairs of characters of a script without spaces overlap.
    fn bigram_weight(&self, end: usize, next_start: usize) -> f32 {
        if self.is_identifier && end <= next_start {
            IDENTIFIER_WEIGHT
        } else if end == next_start {
            JOINED_WEIGHT
        } else {
            BIGRAM_WEIGHT
        }
    }
}

/// A word of the request that is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanWord {
    /// The word as written, after case folding.
    pub(crate) text: String,
    pub(crate) stem: String,
    /// Number of capabilities that contain it, in any form.
    pub(crate) count: u64,
}

/// A likely intended spelling of a word of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Correction {
    /// Index into the words of the plan.
    pub(crate) word: usize,
    pub(crate) replacement: String,
}

impl Plan {
    pub(crate) fn of(text: &str, weights: &WordWeights) -> Self {
        let stemming = detect(text).map_or(Stemming::English, Stemming::for_language);
        let keeps_chat = !words(text).any(|word| !is_stop_word(&word.text) && !is_chat_verb(&word.text));
        let is_identifier = !text.trim().contains(char::is_whitespace);
        let analysis = Analysis { stemming, keeps_chat, is_identifier, weights };
        let mut plan = Self { stemming, ..Self::default() };
        let mut seen = HashSet::new();
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for part in split_parts(text) {
            let first = plan.terms.len();
            plan.add_part(part, &analysis, &mut seen);
            let indexes: Vec<usize> = (first..plan.terms.len()).collect();
            let is_small = plan.words_in(&indexes) < PART_WORDS_MIN;
            match parts.last_mut() {
                // a part that only repeats earlier words has no new terms
                Some(before) if is_small || before.is_empty() || indexes.is_empty() => before.extend(indexes),
                _ => parts.push(indexes),
            }
        }
        if parts.len() > PARTS_MAX {
            let rest: Vec<usize> = parts.drain(PARTS_MAX - 1..).flatten().collect();
            parts.push(rest);
        }
        parts.retain(|part| !part.is_empty());
        if parts.len() > 1 {
            plan.parts = parts;
        }
        plan
    }

    /// Number of terms that select candidates.
    pub(crate) fn terms_that_select(&self) -> usize {
        self.terms.iter().filter(|term| term.role.selects()).count()
    }

    fn words_in(&self, indexes: &[usize]) -> usize {
        indexes.iter().filter(|at| self.terms.get(**at).is_some_and(|term| term.role == Role::Word)).count()
    }

    fn add_part(&mut self, part: &str, analysis: &Analysis<'_>, seen: &mut HashSet<String>) {
        let mut before: Option<(String, usize)> = None;
        for word in words(part) {
            if self.words.len() >= WORDS_MAX {
                return;
            }
            if is_stop_word(&word.text) {
                continue;
            }
            let stem = analysis.stemming.stem(&word.text).into_owned();
            if !analysis.keeps_chat && is_chat_verb(&word.text) {
                if is_topical(&word.text) {
                    self.topical.push(word.text);
                }
                if analysis.is_identifier {
                    before = Some((stem.clone(), word.span.end));
                }
                if seen.insert(stem.clone()) {
                    self.push(stem, Role::Talk, TALK_WEIGHT, self.words.len());
                }
                continue;
            }
            let term = analysis.stemming.term(&word.text).into_owned();
            if let Some((before, end)) = before.replace((stem.clone(), word.span.end)) {
                let joined = bigram(&before, &stem);
                let weight = analysis.bigram_weight(end, word.span.start);
                if seen.insert(joined.clone()) {
                    self.push(joined, Role::Bigram, weight, self.words.len());
                }
            }
            if seen.insert(stem.clone()) {
                let weight = analysis.weights.get(&stem).unwrap_or(1.0) * verb_weight(&word.text);
                self.push(term, Role::Word, weight, self.words.len());
                self.words.push(PlanWord { text: word.text, stem, count: 0 });
            }
        }
    }

    fn push(&mut self, text: String, role: Role, weight: f32, word: usize) {
        self.terms.push(QueryTerm { text, role, weight, word });
    }

    /// If no capability contains any other word, also searches for conversational words that can name a topic ("plan", "next"). `count_of`
    /// returns the number of capabilities with a term.
    pub(crate) fn add_topical<E>(&mut self, count_of: impl Fn(&str) -> Result<u64, E>) -> Result<(), E> {
        if self.words.iter().any(|word| word.count > 0) {
            return Ok(());
        }
        for text in std::mem::take(&mut self.topical) {
            let stem = self.stemming.stem(&text).into_owned();
            let count = count_of(&stem)?;
            if count > 0 {
                self.terms.retain(|term| term.role != Role::Talk || term.text != stem);
                self.push(stem.clone(), Role::Word, TALK_WEIGHT, self.words.len());
                self.words.push(PlanWord { text, stem, count });
            }
        }
        Ok(())
    }

    /// Adds the terms of the text's intent.
    pub(crate) fn add_intent(&mut self, text: &str) {
        let Intent { wanted, unwanted, only_reads } = Intent::of(text);
        self.only_reads = only_reads;
        let wanted = wanted.into_iter().map(|stem| {
            let weight = if is_deciding(&stem) { DECIDING_INTENT_WEIGHT } else { INTENT_WEIGHT };
            (stem, Role::Talk, weight)
        });
        let unwanted = unwanted.into_iter().map(|stem| (stem, Role::Opposite, OPPOSITE_WEIGHT));
        for (stem, role, weight) in wanted.chain(unwanted) {
            if !self.has_term(&stem) {
                self.push(stem, role, weight, 0);
            }
        }
    }

    /// Adds the terms for the time that a text mentions, unless it already contains them. A synonym with the same stem does not count,
    /// because it selects candidates.
    pub(crate) fn add_times(&mut self, text: &str) {
        let Times { wanted, unwanted } = Times::of(text);
        for (stems, role, weight) in
            [(wanted, Role::Talk, INTENT_WEIGHT), (unwanted, Role::Opposite, OPPOSITE_WEIGHT)]
        {
            for stem in stems {
                let is_asked = |term: &QueryTerm| term.text == stem && term.role != Role::Synonym;
                if !self.terms.iter().any(is_asked) {
                    self.push(stem, role, weight, 0);
                }
            }
        }
    }

    /// Adds unknown words as two words ("zipcode"), and neighbouring words as one ("zip code"), if the index contains them in this form.
    pub(crate) fn add_spellings<E>(
        &mut self,
        word_count: impl Fn(&str) -> Result<u64, E>,
        pair_count: impl Fn(&str) -> Result<u64, E>,
    ) -> Result<(), E> {
        let words = self.words.clone();
        for (at, word) in words.iter().enumerate().filter(|(_, word)| word.count == 0) {
            for (split, _) in word.text.char_indices().skip(PART_CHARS_MIN) {
                let (first, second) = word.text.split_at(split);
                if second.chars().count() < PART_CHARS_MIN {
                    break;
                }
                let stems = [first, second].map(|part| self.stemming.stem(part).into_owned());
                let joined = bigram(&stems[0], &stems[1]);
                if pair_count(&joined)? > 0 {
                    self.push(joined, Role::Bigram, JOINED_WEIGHT, at);
                    for stem in stems.into_iter().filter(|stem| !stem.is_empty()) {
                        self.push(stem, Role::Correction, CORRECTION_WEIGHT, at);
                    }
                    break;
                }
            }
        }
        if words.len() > JOINED_WORDS_MAX {
            return Ok(());
        }
        for (at, pair) in words.windows(2).enumerate() {
            let [first, second] = pair else { continue };
            let stem = self.stemming.stem(&format!("{}{}", first.text, second.text)).into_owned();
            if !self.has_term(&stem) && word_count(&stem)? > 0 {
                for word in [at, at + 1] {
                    self.push(stem.clone(), Role::Correction, CORRECTION_WEIGHT, word);
                }
            }
        }
        Ok(())
    }

    /// Adds the forms of the words in the other languages of the index that some capability contains. `count_of` returns the number of
    /// capabilities with a term, `rarity_of` the weight for that number. All forms of a word together count as one word.
    pub(crate) fn add_variants<E>(
        &mut self,
        languages: &[Stemming],
        count_of: impl Fn(&str) -> Result<u64, E>,
        rarity_of: impl Fn(u64) -> f32,
    ) -> Result<(), E> {
        for at in 0..self.terms.len() {
            let Some(term) = self.terms.get(at).filter(|term| term.role == Role::Word).cloned() else {
                continue;
            };
            let Some(word) = self.words.get_mut(term.word) else { continue };
            let mut counted = vec![(count_of(&term.text)?, term.text.clone())];
            let forms = [Stemming::Plain, Stemming::English].iter().chain(languages);
            for form in forms.map(|language| language.term(&word.text).into_owned()) {
                if counted.iter().any(|(_, known)| *known == form) {
                    continue;
                }
                let count = count_of(&form)?;
                if count > 0 {
                    counted.push((count, form));
                }
            }
            // the most frequent form represents the word; if several are equally frequent, the first
            counted.sort_by_key(|(count, _)| Reverse(*count));
            counted.truncate(FORMS_MAX);
            word.count = counted.iter().map(|(count, _)| count).sum();
            let rarity = rarity_of(word.count);
            let weighted = |(count, form): (u64, String)| (term.weight * rarity / rarity_of(count), form);
            let mut forms = counted.into_iter().filter(|(count, _)| *count > 0).map(weighted);
            if let (Some((weight, most)), Some(own)) = (forms.next(), self.terms.get_mut(at)) {
                (own.weight, own.text) = (weight, most);
            }
            for (weight, form) in forms {
                self.add_to_part_of(term.word);
                self.push(form, Role::Variant, weight, term.word);
            }
        }
        Ok(())
    }

    pub(crate) fn add_corrections(&mut self, corrections: &[Correction]) {
        for correction in corrections {
            let stem = Stemming::English.stem(&correction.replacement).into_owned();
            if !self.has_term(&stem) {
                self.push(stem, Role::Correction, CORRECTION_WEIGHT, correction.word);
            }
        }
    }

    /// Adds English translations of words that no capability contains. Their weight is lower if some capability contains another word of
    /// the request.
    pub(crate) fn add_translations(&mut self) {
        let words = self.words.clone();
        let is_known = words.iter().any(|word| word.count > 0);
        let closest = if is_known { NEAR_TRANSLATION_WEIGHT } else { TRANSLATION_WEIGHT };
        let unknown = |(_, word): &(usize, &PlanWord)| {
            word.count == 0 && (!is_english_word(&word.text) || is_only_foreign(&word.text))
        };
        for (at, word) in words.iter().enumerate().filter(unknown) {
            for concept in translations(&word.text, self.stemming).into_iter().take(CONCEPTS_MAX) {
                for (place, stem) in concept.iter().enumerate().filter(|(_, stem)| !stem.is_empty()) {
                    if !self.has_term(stem) {
                        let weight = if place == 0 { closest } else { FAR_TRANSLATION_WEIGHT };
                        self.add_to_part_of(at);
                        self.push(stem.clone(), Role::Translation, weight, at);
                    }
                }
            }
        }
    }

    /// Adds the next term to the part that contains a word.
    fn add_to_part_of(&mut self, word: usize) {
        let next = self.terms.len();
        let own = self.terms.iter().position(|term| term.role == Role::Word && term.word == word);
        if let Some(part) = self.parts.iter_mut().find(|part| own.is_some_and(|own| part.contains(&own))) {
            part.push(next);
        }
    }

    pub(crate) fn add_synonyms(&mut self) {
        for at in 0..self.words.len() {
            let Some(word) = self.words.get(at) else { return };
            let weight = synonym_weight(word);
            let stem = word.stem.clone();
            for synonym in synonyms(&stem) {
                if !self.has_term(synonym) {
                    self.push(synonym.clone(), Role::Synonym, weight, at);
                }
            }
        }
    }

    fn has_term(&self, text: &str) -> bool {
        self.terms.iter().any(|term| term.text == text)
    }
}

/// Weight of each synonym of a word.
fn synonym_weight(word: &PlanWord) -> f32 {
    if is_deciding(&word.text) {
        DECIDING_SYNONYM_WEIGHT
    } else if word.count == 0 {
        UNKNOWN_SYNONYM_WEIGHT
    } else {
        SYNONYM_WEIGHT
    }
}

/// Splits a phrasing at the ends of sentences and at words that begin another request.
fn split_parts(text: &str) -> Vec<&str> {
    const OPENERS: [&str; 6] =
        [" also ", " then ", " finally ", " additionally ", " afterwards ", " furthermore "];
    let mut cuts = vec![0];
    let lower = text.to_ascii_lowercase();
    for (at, c) in text.char_indices() {
        let next = at + c.len_utf8();
        let is_end = matches!(c, '!' | '?' | ';' | '\n' | '。' | '？' | '！')
            || (c == '.' && text.get(next..).is_none_or(|rest| rest.is_empty() || rest.starts_with(' ')));
        if is_end {
            cuts.push(next);
        }
    }
    for opener in OPENERS {
        cuts.extend(lower.match_indices(opener).map(|(at, _)| at));
    }
    cuts.push(text.len());
    cuts.sort_unstable();
    cuts.windows(2)
        .filter_map(|pair| text.get(*pair.first()?..*pair.last()?))
        .filter(|part| !part.trim().is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_of(text: &str) -> Plan {
        Plan::of(text, &WordWeights::default())
    }

    fn texts(plan: &Plan, role: Role) -> Vec<&str> {
        plan.terms.iter().filter(|term| term.role == role).map(|term| term.text.as_str()).collect()
    }

    #[test]
    fn removes_conversational_words_unless_there_are_no_others() {
        let plan = plan_of("Could you please help me find a cheap flight?");
        assert_eq!(texts(&plan, Role::Word), ["cheap", "flight"]);
        assert_eq!(texts(&plan, Role::Bigram), ["cheap_flight"]);
        assert_eq!(texts(&plan_of("find"), Role::Word), ["find"]);
        assert!(plan_of("the of and").terms.is_empty());
    }

    #[test]
    fn an_identifier_weighs_more_than_its_words() {
        let bigrams = |text: &str| {
            let terms = plan_of(text).terms.into_iter().filter(|term| term.role == Role::Bigram);
            terms.map(|term| (term.text, term.weight)).collect::<Vec<_>>()
        };
        let of = |text: &str, weight: f32| vec![(text.to_owned(), weight)];
        assert_eq!(bigrams("ledger_key"), of("ledger_key", IDENTIFIER_WEIGHT));
        assert_eq!(bigrams(" getFailure"), of("get_failur", IDENTIFIER_WEIGHT));
        assert_eq!(bigrams("the bookFlight"), of("book_flight", JOINED_WEIGHT));
        assert_eq!(bigrams("book flight"), of("book_flight", BIGRAM_WEIGHT));
        assert_eq!(bigrams("天气预"), of("天气_气预", BIGRAM_WEIGHT));
    }

    #[test]
    fn repeated_words_count_once() {
        assert_eq!(texts(&plan_of("flights, flight and Flight!"), Role::Word), ["flight"]);
    }

    #[test]
    fn sentences_become_parts() {
        let plan = plan_of("Book a flight to Oslo. Then reserve a hotel room! Thanks.");
        assert_eq!(plan.parts.len(), 2);
        let second: Vec<&str> = plan.parts[1]
            .iter()
            .map(|at| plan.terms[*at].text.as_str())
            .filter(|text| !text.contains('_'))
            .collect();
        assert_eq!(second, ["reserv", "hotel", "room"]);
        assert!(plan_of("version 2.5 of the book flight").parts.is_empty());
    }

    #[test]
    fn limits_words_and_parts() {
        let long = (0..2_000).map(|at| format!("word{at}x.")).collect::<Vec<_>>().join(" ");
        let plan = plan_of(&long);
        assert!(plan.words.len() <= WORDS_MAX);
        assert!(plan.parts.len() <= PARTS_MAX);
    }
}
