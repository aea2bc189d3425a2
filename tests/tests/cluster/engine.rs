//! What the index needs of an engine, over a broker with three shards.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use cluster::{
    Engine, EngineCondition, EngineDocument, EngineError, EngineFields, EngineSearch, EngineTerm,
    EngineWriter, Summa,
};
use tokio::runtime::Runtime;

use crate::servers::{Reads, Servers};

const INDEX: &str = "generation-000001";
const SHARDS: usize = 3;
const DOCUMENTS: usize = 600;
const TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum time until searches succeed after a failure has ended.
const RECOVERY_MAX: Duration = Duration::from_secs(20);

struct World {
    servers: Servers,
    engine: Summa,
    runtime: Runtime,
}

impl World {
    fn start(reads: Reads) -> Self {
        let servers = Servers::start(SHARDS, reads);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let fields = EngineFields {
            whole: vec!["id", "manifest", "method"],
            texts: vec!["all", "bigram", "word"],
            times: vec!["updated_ms"],
        };
        let engine = Summa::new(&servers.url(), fields, runtime.handle().clone());
        Self { servers, engine, runtime }
    }

    /// With an index of [`documents`].
    fn filled(reads: Reads) -> Self {
        let world = Self::start(reads);
        let writer = world.create(INDEX);
        writer.upsert(documents()).expect("upsert");
        writer.commit().expect("commit");
        world
    }

    fn create(&self, index: &str) -> Box<dyn EngineWriter> {
        let deadline = Instant::now() + RECOVERY_MAX;
        loop {
            // the broker looks for its servers first
            match self.engine.create(index) {
                Ok(writer) => return writer,
                Err(error) => assert!(Instant::now() < deadline, "{error}\n{}", self.servers.logs()),
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    #[track_caller]
    fn ids(&self, search: &EngineSearch) -> Vec<String> {
        let results = self.engine.search(INDEX, std::slice::from_ref(search), TIME_MAX);
        let results = results.unwrap_or_else(|error| panic!("{error}\n{}", self.servers.logs()));
        let found = results.first().expect("a result of each search");
        assert!(found.missing.is_empty(), "{:?}", found.missing);
        let ids: Vec<String> =
            found.stored.iter().map(|stored| String::from_utf8(stored.clone()).unwrap()).collect();
        let all = search.limit > ids.len();
        assert!(found.total_is_exact);
        assert!(
            if all { found.total == ids.len() as u64 } else { found.total >= ids.len() as u64 },
            "{}",
            found.total
        );
        ids
    }

    #[track_caller]
    fn total(&self, search: &EngineSearch) -> u64 {
        let searches = [EngineSearch { limit: 0, ..search.clone() }];
        let results = self.engine.search(INDEX, &searches, TIME_MAX);
        let results = results.unwrap_or_else(|error| panic!("{error}\n{}", self.servers.logs()));
        results.first().expect("a result").total
    }

    /// Searches until a search succeeds with all shards; returns the time that it took.
    fn wait_until_whole(&self) -> Duration {
        let began = Instant::now();
        loop {
            let found = self.engine.search(INDEX, &[everything()], TIME_MAX);
            if found.as_ref().is_ok_and(|found| found.iter().all(|each| each.missing.is_empty())) {
                return began.elapsed();
            }
            assert!(began.elapsed() < RECOVERY_MAX, "{found:?}\n{}", self.servers.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn term(field: &'static str, text: &str) -> EngineTerm {
    EngineTerm { field, text: text.to_owned() }
}

fn everything() -> EngineSearch {
    EngineSearch { limit: 10, ..EngineSearch::default() }
}

fn words(words: &[&str]) -> EngineSearch {
    let scored = words.iter().map(|word| (term("all", word), 1.0)).collect();
    EngineSearch { scored, limit: 20, ..EngineSearch::default() }
}

/// Documents of random words, the common ones more often; six in each manifest.
fn documents() -> Vec<EngineDocument> {
    let mut state = 25_u64;
    let mut below = |bound: u64| {
        // Knuth's MMIX generator; its high bits are the better ones
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut text = || {
        let count = 5 + below(55);
        let words = (0..count).map(|_| format!("w{}", below(40).pow(2) / 20));
        words.collect::<Vec<_>>().join(" ")
    };
    (0..DOCUMENTS).map(|number| document(number, &text())).collect()
}

fn document(number: usize, text: &str) -> EngineDocument {
    let id = format!("c{number:04}");
    let words: Vec<&str> = text.split(' ').collect();
    let bigrams: Vec<String> = words.windows(2).map(|pair| pair.join("_")).collect();
    EngineDocument {
        whole: vec![
            ("id", id.clone()),
            ("manifest", format!("m{:03}", number / 6)),
            ("method", if number.is_multiple_of(3) { "GET" } else { "POST" }.to_owned()),
        ],
        texts: vec![("all", text.to_owned()), ("bigram", bigrams.join(" ")), ("word", text.to_owned())],
        times: vec![("updated_ms", i64::try_from(number).unwrap())],
        stored: id.clone().into_bytes(),
        id,
    }
}

/// BM25 over the field `all`, computed from the documents.
fn reference(documents: &[EngineDocument], words: &[&str]) -> BTreeMap<String, f64> {
    let texts: Vec<Vec<&str>> =
        documents.iter().map(|document| document.texts[0].1.split(' ').collect()).collect();
    let mean = texts.iter().map(Vec::len).sum::<usize>() as f64 / texts.len() as f64;
    let mut scores = BTreeMap::new();
    for word in words {
        let frequency = texts.iter().filter(|text| text.contains(word)).count() as f64;
        let weight = (1.0 + (texts.len() as f64 - frequency + 0.5) / (frequency + 0.5)).ln();
        for (document, text) in documents.iter().zip(&texts) {
            let count = text.iter().filter(|other| *other == word).count() as f64;
            if count > 0.0 {
                let length = 1.2 * (0.25 + 0.75 * text.len() as f64 / mean);
                *scores.entry(document.id.clone()).or_default() += weight * count * 2.2 / (count + length);
            }
        }
    }
    scores
}

#[test]
fn documents_are_selected_in_the_order_of_bm25_over_all_shards() {
    let world = World::filled(Reads::Strict);
    let documents = documents();
    for query in [&["w3"][..], &["w0", "w40"], &["w1", "w7", "w33", "w64"], &["absent", "w12"]] {
        let scores = reference(&documents, query);
        let found = world.ids(&words(query));
        let mut best: Vec<f64> = scores.values().copied().collect();
        best.sort_by(|one, other| other.total_cmp(one));
        assert_eq!(found.len(), scores.len().min(20), "{query:?}");
        // The engine may round lengths, which changes the order of nearly equal scores.
        for (id, expected) in found.iter().zip(best) {
            let score = scores.get(id).copied().unwrap_or_else(|| panic!("{id} has none of {query:?}"));
            assert!(
                (score - expected).abs() < 0.05 * expected,
                "{query:?}: {id} has {score}, not {expected}"
            );
        }
        assert_eq!(world.total(&words(query)), scores.len() as u64, "{query:?}");
    }
    assert_eq!(world.total(&everything()), DOCUMENTS as u64);
    let weighted = EngineSearch {
        scored: vec![(term("all", "w64"), 100.0), (term("all", "w3"), 0.01)],
        limit: 5,
        ..EngineSearch::default()
    };
    let with_rare = reference(&documents, &["w64"]);
    assert!(world.ids(&weighted).iter().all(|id| with_rare.contains_key(id)), "weights multiply scores");
}

#[test]
fn statistics_are_those_of_all_shards() {
    let world = World::filled(Reads::Strict);
    let documents = documents();
    let asked: Vec<EngineTerm> = (0..300).map(|number| term("all", &format!("w{number}"))).collect();
    let statistics = world.engine.statistics(INDEX, &asked, TIME_MAX).expect("statistics");
    assert_eq!(statistics.documents, DOCUMENTS as u64);
    let lengths: usize = documents.iter().map(|document| document.texts[0].1.split(' ').count()).sum();
    let mean = lengths as f32 / DOCUMENTS as f32;
    assert!((statistics.all_length - mean).abs() < 0.01 * mean, "{} {mean}", statistics.all_length);
    assert!((statistics.bigram_length - mean + 1.0).abs() < 0.01 * mean, "{}", statistics.bigram_length);
    for (asked, frequency) in asked.iter().zip(&statistics.frequencies) {
        let expected = documents
            .iter()
            .filter(|document| document.texts[0].1.split(' ').any(|word| word == asked.text))
            .count();
        assert_eq!(*frequency, expected as u64, "{}", asked.text);
    }
    let methods = world.engine.statistics(INDEX, &[term("method", "GET")], TIME_MAX).expect("statistics");
    assert_eq!(methods.frequencies, [DOCUMENTS.div_ceil(3) as u64]);
}

#[test]
fn conditions_select_the_documents_that_satisfy_them() {
    let world = World::filled(Reads::Strict);
    let documents = documents();
    let ids = |keep: &dyn Fn(usize, &EngineDocument) -> bool| -> BTreeSet<String> {
        let kept = documents.iter().enumerate().filter(|(number, document)| keep(*number, document));
        kept.map(|(_, document)| document.id.clone()).collect()
    };
    let has =
        |document: &EngineDocument, word: &str| document.texts[0].1.split(' ').any(|other| other == word);
    let found = |required: Vec<EngineCondition>, excluded: Vec<EngineCondition>, scored: &[&str]| {
        let search = EngineSearch { required, excluded, limit: 1_000, ..words(scored) };
        assert_eq!(world.total(&search), world.ids(&search).len() as u64);
        world.ids(&search).into_iter().collect::<BTreeSet<_>>()
    };
    let get = || EngineCondition::AnyOf(vec![term("method", "GET")]);
    assert_eq!(found(vec![get()], vec![], &[]), ids(&|number, _| number.is_multiple_of(3)));
    assert_eq!(found(vec![], vec![get()], &[]), ids(&|number, _| !number.is_multiple_of(3)));
    assert_eq!(
        found(vec![get()], vec![], &["w3"]),
        ids(&|number, document| number.is_multiple_of(3) && has(document, "w3"))
    );
    let since = || EngineCondition::Since { field: "updated_ms", from_ms: 500 };
    assert_eq!(found(vec![since()], vec![], &[]), ids(&|number, _| number >= 500));
    assert_eq!(
        found(vec![since()], vec![get()], &["w3"]),
        ids(&|number, document| { number >= 500 && !number.is_multiple_of(3) && has(document, "w3") })
    );
    let both = || EngineCondition::AllOf(vec![term("all", "w1"), term("all", "w12")]);
    assert_eq!(
        found(vec![both()], vec![], &[]),
        ids(&|_, document| has(document, "w1") && has(document, "w12"))
    );
    assert_eq!(
        found(vec![], vec![both()], &[]),
        ids(&|_, document| !(has(document, "w1") && has(document, "w12")))
    );
    let phrase = || EngineCondition::Phrase(vec![term("word", "w0"), term("word", "w1")]);
    let has_phrase = |document: &EngineDocument| format!(" {} ", document.texts[0].1).contains(" w0 w1 ");
    assert!(!ids(&|_, document| has_phrase(document)).is_empty(), "the random texts contain the phrase");
    assert_eq!(found(vec![phrase()], vec![], &[]), ids(&|_, document| has_phrase(document)));
    assert_eq!(found(vec![], vec![phrase()], &[]), ids(&|_, document| !has_phrase(document)));
    let nothing = EngineCondition::AnyOf(vec![term("method", "DELETE")]);
    assert!(found(vec![nothing], vec![], &[]).is_empty());
    assert!(found(vec![EngineCondition::AnyOf(Vec::new())], vec![], &[]).is_empty());
}

#[test]
fn more_terms_than_are_scored_still_select() {
    let world = World::filled(Reads::Strict);
    let many: Vec<String> =
        (0..160).map(|number| format!("absent{number}")).chain(["w80".to_owned()]).collect();
    let scored: Vec<(EngineTerm, f32)> = many.iter().map(|word| (term("all", word), 1.0)).collect();
    let search = EngineSearch { scored, limit: 1_000, ..EngineSearch::default() };
    let expected = reference(&documents(), &["w80"]).into_keys().collect::<BTreeSet<_>>();
    assert_eq!(world.total(&search), expected.len() as u64);
    assert_eq!(world.ids(&search).into_iter().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn a_changed_manifest_replaces_its_documents_and_a_repetition_changes_nothing() {
    let world = World::filled(Reads::Strict);
    let writer = world.engine.writer(INDEX).expect("a writer");
    for _ in 0..2 {
        // staged and removed again before the commit
        writer
            .upsert(vec![EngineDocument { id: "ghost".to_owned(), ..document(0, "ghost") }])
            .expect("upsert");
        writer.delete_manifests(&["m000".to_owned(), "m001".to_owned(), "m999".to_owned()]).expect("delete");
        writer.upsert(vec![document(0, "renewed words"), document(1, "renewed words")]).expect("upsert");
        writer.delete(&["c0001".to_owned(), "absent".to_owned()]).expect("delete");
        writer.commit().expect("commit");
        assert_eq!(world.ids(&words(&["renewed"])), ["c0000"]);
        assert!(world.ids(&words(&["ghost"])).is_empty());
        assert_eq!(world.total(&everything()), DOCUMENTS as u64 - 11);
    }
}

#[test]
fn a_capability_that_moved_to_another_manifest_stays_when_the_first_is_removed() {
    let world = World::filled(Reads::Strict);
    let writer = world.engine.writer(INDEX).expect("a writer");
    let mut moved = document(0, "moved words");
    moved.whole.retain(|(field, _)| *field != "manifest");
    moved.whole.push(("manifest", "m050".to_owned()));
    writer.upsert(vec![moved]).expect("upsert");
    writer.delete_manifests(&["m000".to_owned()]).expect("delete");
    writer.commit().expect("commit");
    assert_eq!(world.ids(&words(&["moved"])), ["c0000"]);
    assert_eq!(world.total(&everything()), DOCUMENTS as u64 - 5);
}

#[test]
fn what_a_killed_writer_staged_can_be_removed_by_the_next_one() {
    let world = World::filled(Reads::Strict);
    let killed = world.engine.writer(INDEX).expect("a writer");
    killed.upsert(vec![EngineDocument { id: "ghost".to_owned(), ..document(0, "ghost") }]).expect("upsert");
    drop(killed);
    let next = world.engine.writer(INDEX).expect("a writer");
    next.delete_manifests(&["m000".to_owned()]).expect("delete");
    next.upsert((0..6).map(|number| document(number, "ghost buster")).collect()).expect("upsert");
    next.commit().expect("commit");
    let found: BTreeSet<String> = world.ids(&words(&["ghost"])).into_iter().collect();
    assert_eq!(found, (0..6).map(|number| format!("c{number:04}")).collect());
    assert_eq!(world.total(&everything()), DOCUMENTS as u64);
}

#[test]
fn a_commit_after_a_server_was_restarted_is_an_error_and_its_repetition_loses_nothing() {
    let mut world = World::filled(Reads::Strict);
    for number in 0..SHARDS {
        let text = format!("round{number}");
        let changed = || (0..60).map(|number| document(number, &text)).collect::<Vec<_>>();
        let writer = world.engine.writer(INDEX).expect("a writer");
        writer.upsert(changed()).expect("upsert");
        world.servers.shards[number].restart();
        world.wait_until_whole();
        let failed = writer.commit().expect_err("what was staged on the server is lost");
        assert!(
            matches!(failed, EngineError::Unavailable { .. } | EngineError::MissingShards { .. }),
            "{failed}"
        );
        let writer = world.engine.writer(INDEX).expect("a writer");
        writer.upsert(changed()).expect("upsert");
        writer.commit().expect("commit");
        assert_eq!(world.total(&words(&[&text])), 60);
        assert_eq!(world.total(&everything()), DOCUMENTS as u64);
    }
}

#[test]
fn a_killed_shard_is_an_error_until_it_is_back() {
    let mut world = World::filled(Reads::Strict);
    for number in 0..SHARDS {
        world.servers.shards[number].kill();
        let began = Instant::now();
        let failed = world.engine.search(INDEX, &[words(&["w3"])], TIME_MAX).expect_err("a shard is away");
        let is_orderly =
            matches!(&failed, EngineError::MissingShards { missing } if *missing == [format!("s{number}")]);
        assert!(is_orderly, "{failed}");
        assert!(began.elapsed() < TIME_MAX);
        world.servers.shards[number].restart();
        world.wait_until_whole();
        assert_eq!(world.total(&everything()), DOCUMENTS as u64);
    }
}

#[test]
fn a_killed_broker_is_an_error_until_it_is_back() {
    let mut world = World::filled(Reads::Strict);
    world.servers.broker.kill();
    let failed = world.engine.search(INDEX, &[words(&["w3"])], TIME_MAX).expect_err("the broker is away");
    assert!(matches!(failed, EngineError::Unavailable { .. }), "{failed}");
    world.servers.broker.restart();
    world.wait_until_whole();
    assert_eq!(world.total(&everything()), DOCUMENTS as u64);
}

#[test]
fn a_partial_answer_names_what_is_missing() {
    let mut world = World::filled(Reads::Partial);
    let whole = world.total(&words(&["w3"]));
    world.servers.shards[1].kill();
    let deadline = Instant::now() + RECOVERY_MAX;
    let found = loop {
        match world.engine.search(INDEX, &[words(&["w3"])], TIME_MAX) {
            Ok(found) => break found,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    };
    let found = &found[0];
    assert_eq!(found.missing.len(), 1, "{:?}", found.missing);
    assert!(found.total < whole && found.total > 0);
    // As soon as the broker has noticed, it knows which shard it is.
    while world.engine.search(INDEX, &[words(&["w3"])], TIME_MAX).expect("a partial answer")[0].missing
        != ["s1"]
    {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(100));
    }
    let statistics = world.engine.statistics(INDEX, &[term("all", "w3")], TIME_MAX).expect("statistics");
    assert_eq!(statistics.missing, ["s1"]);
    world.servers.shards[1].restart();
    world.wait_until_whole();
    assert_eq!(world.total(&words(&["w3"])), whole);
}

#[test]
fn a_cut_network_is_an_error_in_time_and_heals() {
    let world = World::filled(Reads::Strict);
    world.servers.networks[2].cut();
    let time_max = Duration::from_secs(1);
    let began = Instant::now();
    let failed = world.engine.search(INDEX, &[words(&["w3"])], time_max).expect_err("the network is cut");
    assert!(began.elapsed() < time_max + Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(!matches!(failed, EngineError::Rejected { .. }), "{failed}");
    world.servers.networks[2].mend();
    world.wait_until_whole();
    assert_eq!(world.total(&everything()), DOCUMENTS as u64);
}

#[test]
fn a_new_index_uses_an_added_shard_and_replaces_the_others() {
    let mut world = World::filled(Reads::Strict);
    world.servers.add_shard("agentdex_generation_000001");
    let fields = EngineFields {
        whole: vec!["id", "manifest", "method"],
        texts: vec!["all", "bigram", "word"],
        times: vec!["updated_ms"],
    };
    world.engine = Summa::new(&world.servers.url(), fields, world.runtime.handle().clone());
    world.wait_until_whole();
    let next = "generation-000002";
    let writer = world.create(next);
    writer.upsert(documents()).expect("upsert");
    writer.commit().expect("commit");
    assert_eq!(world.total(&everything()), DOCUMENTS as u64, "the earlier index is searched in the meantime");
    world.engine.remove_others(next).expect("remove");
    let of_next = world.engine.search(next, &[words(&["w3"])], TIME_MAX).expect("a search");
    assert_eq!(of_next[0].total, reference(&documents(), &["w3"]).len() as u64);
    // every shard has a part
    world.servers.shards[SHARDS].kill();
    assert!(world.engine.search(next, &[words(&["w3"])], TIME_MAX).is_err());
}
