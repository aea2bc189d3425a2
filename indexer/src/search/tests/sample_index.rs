//! An index of generated documents.

use std::path::Path;

use manifest::{ManifestId, ManifestUrl};
use store::FeedPosition;
use tantivy::{TantivyDocument, Term};

use super::super::opened::OpenedIndex;
use crate::config::{Contents, IndexConfig};
use crate::filter::FacetKey;
use crate::index::{Fields, Generations, SUGGESTION_MARK, Writer, schema};
use crate::lexicon::WordWeights;
use crate::query::{FilterPart, QueryTerm, Restriction, Role};

const WORDS: [&str; 7] = ["book", "flight", "hotel", "room", "seat", "train", "weather"];

/// A pseudo-random number.
fn scrambled(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number ^ (number >> 29)
}

pub(crate) fn manifest(number: u64) -> ManifestId {
    ManifestId::of(&ManifestUrl::parse(&format!("https://n{number}.example/agent.json")).unwrap())
}

/// Most documents have one method, some have none or two.
pub(crate) fn methods(number: u64) -> Vec<&'static str> {
    let all = [("get", 2), ("post", 3), ("put", 900)];
    all.iter().filter(|(_, in_so_many)| number.is_multiple_of(*in_so_many)).map(|(name, _)| *name).collect()
}

pub(crate) fn has_word(number: u64, word: &str) -> bool {
    let at = WORDS.iter().position(|known| *known == word).unwrap() as u64;
    scrambled(number * 31 + at).is_multiple_of(2 + at * at * 20)
}

pub(crate) fn is_deleted(number: u64) -> bool {
    number.is_multiple_of(11)
}

/// A document whose words and pairs depend on its number; the first word is in most documents, the last in few.
fn document(fields: &Fields, number: u64) -> TantivyDocument {
    let mut document = TantivyDocument::default();
    let own: Vec<&str> = WORDS.into_iter().filter(|word| has_word(number, word)).collect();
    let times = 1 + usize::try_from(scrambled(number) % 4).unwrap();
    let length = 1 + usize::try_from(scrambled(number + 7) % 60).unwrap();
    let words = own
        .iter()
        .flat_map(|word| std::iter::repeat_n(*word, times))
        .chain(std::iter::repeat_n("else", length));
    document.add_text(fields.all, words.collect::<Vec<_>>().join(" "));
    // The words and suggestions of deleted documents sort first.
    let late = (number > 2_000 && number.is_multiple_of(13)).then(|| "quillz".to_owned());
    let unusual = if is_deleted(number) { Some(format!("quilla{number}")) } else { late };
    document
        .add_text(fields.word, own.iter().copied().chain(unusual.as_deref()).collect::<Vec<_>>().join(" "));
    let letter = if is_deleted(number) { 'a' } else { 'z' };
    document.add_text(fields.suggest, format!("somersault{letter}{number}{SUGGESTION_MARK}name"));
    for method in methods(number) {
        document.add_text(fields.facet(FacetKey::Method), method);
    }
    document.add_text(fields.facet(FacetKey::Site), format!("s{}.example", number / 100));
    document.add_i64(fields.updated_ms, i64::try_from(number).unwrap());
    let pairs: Vec<String> = own.windows(2).map(|pair| pair.join("_")).collect();
    document.add_text(fields.bigram, pairs.join(" "));
    document.add_text(fields.manifest, manifest(number).as_str());
    let numbers = [fields.tie, fields.site_number, fields.text_number, fields.sketch, fields.name_number];
    for field in numbers.into_iter().chain([fields.address_number]) {
        document.add_u64(field, number);
    }
    document.add_f64(fields.prior, 1.0);
    document
}

/// An index of `count` documents, some of them deleted. It has several segments, one with at least four tenths of the documents:
/// two threads share the last commit.
pub(crate) fn opened(dir: &Path, count: u64) -> OpenedIndex {
    let generations = Generations::new(dir);
    let path = generations.prepare_next().unwrap();
    let mut writer = Writer::create(&path, "feed", &IndexConfig::at(dir.to_owned())).unwrap();
    let fields = Fields::of(&schema()).unwrap();
    for part in [0..count / 10, count / 10..count / 5, count / 5..count] {
        writer.add(part.map(|number| document(&fields, number)).collect()).unwrap();
        writer.commit(FeedPosition(1)).unwrap();
    }
    let deleted = (0..count).filter(|number| is_deleted(*number));
    writer.remove_all(&deleted.map(manifest).collect::<Vec<_>>()).unwrap();
    writer.commit(FeedPosition(2)).unwrap();
    generations.switch_to(&path).unwrap();
    writer.finish().unwrap();
    OpenedIndex::open(&generations, Contents::Capabilities, &WordWeights::built_in()).unwrap()
}

pub(crate) fn terms(texts: &[(&str, f32)]) -> Vec<QueryTerm> {
    let role = |text: &str| if text.contains('_') { Role::Bigram } else { Role::Word };
    let term = |(text, weight): &(&str, f32)| QueryTerm {
        text: (*text).to_owned(),
        role: role(text),
        weight: *weight,
        word: 0,
    };
    texts.iter().map(term).collect()
}

/// A filter by methods.
pub(crate) fn any_of(opened: &OpenedIndex, methods: &[&str]) -> FilterPart {
    let field = opened.fields.facet(FacetKey::Method);
    let terms = methods.iter().map(|method| Term::from_field_text(field, method)).collect();
    FilterPart { facet: Some(FacetKey::Method), restriction: Restriction::AnyOf(terms) }
}
