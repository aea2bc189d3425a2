//! Prints how fast the embedder is with a model of the size of all-MiniLM-L6-v2, whose weights are made up.

#[path = "../tests/made_model/mod.rs"]
mod made;

use indexer::vectors::check_embedder;

/// The shape of all-MiniLM-L6-v2.
const MINILM: made::Shape =
    made::Shape { layers: 6, width: 384, heads: 12, inner: 1_536, positions: 512, tokens: 30_522 };

#[expect(clippy::print_stdout, reason = "the result of the measurement")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    // Words of the texts that the check embeds. Words without a token become one token, like most words of a trained tokenizer.
    made::write(dir.path(), MINILM, &["a", "the", "of", ",", "."], &made::random(MINILM));
    for (label, text) in check_embedder(dir.path())?.rows {
        println!("{label:<8} {text}");
    }
    Ok(())
}
