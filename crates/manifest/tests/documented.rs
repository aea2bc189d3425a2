//! docs/FORMATS.md ends with what the tables say: the types that may be inferred and every finding code.

use std::fs;
use std::path::Path;

#[test]
fn the_end_of_the_chapter_is_generated_from_the_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/FORMATS.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, written) = text.split_once("## Inferred types\n").expect("the generated part is there");
    let generated =
        format!("\n{}\n## Finding codes\n{}", manifest::types_markdown(), manifest::catalogue_markdown());
    assert!(
        written == generated,
        "replace what follows \"## Inferred types\" by `cargo run -p manifest --example finding_codes`"
    );
}
