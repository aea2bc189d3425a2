//! Every test that docs/SECURITY.md names exists.

use std::path::Path;

#[test]
fn every_test_named_in_the_threat_model_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("docs/SECURITY.md")).unwrap();
    let mut file = String::new();
    let mut checked = 0;
    for word in text.split('`').skip(1).step_by(2) {
        if word.contains('/') && word.rsplit_once('.').is_some_and(|(_, end)| matches!(end, "rs" | "py")) {
            file = std::fs::read_to_string(root.join(word)).unwrap_or_else(|error| panic!("{word}: {error}"));
        } else if word.matches('_').count() >= 4 && word.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
            assert!(file.contains(&format!("fn {word}(")), "{word} is not where SECURITY.md says");
            checked += 1;
        }
    }
    assert!(checked >= 15, "too few claims name a test: {checked}");
}
