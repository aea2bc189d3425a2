//! An index of made documents, for tests.

use std::path::Path;

use manifest::{ManifestId, ManifestUrl};
use store::FeedPosition;
use tantivy::TantivyDocument;

use super::loaded::Loaded;
use crate::index::{Fields, Generations, Writer, schema};
use crate::query::{Associations, QueryTerm, Role};

const WORDS: [&str; 7] = ["book", "flight", "hotel", "room", "seat", "train", "weather"];

/// Numbers that look like chance.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number ^ (number >> 29)
}

fn manifest(number: u64) -> ManifestId {
    ManifestId::of(&ManifestUrl::parse(&format!("https://n{number}.example/agent.json")).unwrap())
}

/// Most documents have one, some none or two.
pub(super) fn methods(number: u64) -> Vec<&'static str> {
    let all = [("get", 2), ("post", 3), ("put", 900)];
    all.iter().filter(|(_, in_so_many)| number.is_multiple_of(*in_so_many)).map(|(name, _)| *name).collect()
}

/// Whether a document has a word.
pub(super) fn is_said(number: u64, word: &str) -> bool {
    let at = WORDS.iter().position(|known| *known == word).unwrap() as u64;
    mixed(number * 31 + at).is_multiple_of(2 + at * at * 20)
}

/// Whether a document was deleted again.
pub(super) fn is_deleted(number: u64) -> bool {
    number.is_multiple_of(11)
}

/// A document whose words and pairs depend on its number; the first word is in most documents, the last in few.
fn document(fields: &Fields, number: u64) -> TantivyDocument {
    let mut document = TantivyDocument::default();
    let said: Vec<&str> = WORDS.into_iter().filter(|word| is_said(number, word)).collect();
    let times = 1 + usize::try_from(mixed(number) % 4).unwrap();
    let length = 1 + usize::try_from(mixed(number + 7) % 60).unwrap();
    let words = said
        .iter()
        .flat_map(|word| std::iter::repeat_n(*word, times))
        .chain(std::iter::repeat_n("else", length));
    document.add_text(fields.all, words.collect::<Vec<_>>().join(" "));
    document.add_text(fields.word, said.join(" "));
    for method in methods(number) {
        document.add_text(fields.method, method);
    }
    document.add_text(fields.site, format!("s{}.example", number / 100));
    document.add_i64(fields.updated_ms, i64::try_from(number).unwrap());
    let pairs: Vec<String> = said.windows(2).map(|pair| pair.join("_")).collect();
    document.add_text(fields.bigram, pairs.join(" "));
    document.add_text(fields.manifest, manifest(number).as_str());
    for field in [fields.tie, fields.site_number, fields.text_number] {
        document.add_u64(field, number);
    }
    document.add_f64(fields.prior, 1.0);
    document
}

/// An index of so many documents, some of them deleted. It has several segments, one of which has four tenths of them or more:
/// two threads share the last commit.
pub(super) fn opened(dir: &Path, count: u64) -> Loaded {
    let generations = Generations::new(dir);
    let path = generations.prepare_next().unwrap();
    let mut writer = Writer::create(&path, "feed").unwrap();
    let fields = schema().fields;
    for part in [0..count / 10, count / 10..count / 5, count / 5..count] {
        writer.add(part.map(|number| document(&fields, number)).collect()).unwrap();
        writer.commit(FeedPosition(1)).unwrap();
    }
    for number in (0..count).filter(|number| is_deleted(*number)) {
        writer.remove(&manifest(number));
    }
    writer.commit(FeedPosition(2)).unwrap();
    generations.switch_to(&path).unwrap();
    writer.finish().unwrap();
    Loaded::open(&generations, &Associations::built_in()).unwrap()
}

pub(super) fn terms(said: &[(&str, f32)]) -> Vec<QueryTerm> {
    let role = |text: &str| if text.contains('_') { Role::Bigram } else { Role::Word };
    let term = |(text, weight): &(&str, f32)| QueryTerm {
        text: (*text).to_owned(),
        role: role(text),
        weight: *weight,
        word: 0,
    };
    said.iter().map(term).collect()
}
