//! Generates the tables at the end of docs/FORMATS.md from the tables of the crate.

/// The types that may be inferred, then every finding by dialect.
pub(crate) fn tables() -> String {
    let types = manifest::known_types().map(|(name, words)| format!("| `{name}` | {words} |"));
    let mut lines =
        vec![String::new(), "| type | words that lead to it |".to_owned(), "|---|---|".to_owned()];
    lines.extend(types);
    lines.extend([String::new(), "## Finding codes".to_owned()]);
    let mut title = "";
    for entry in manifest::catalogue() {
        if entry.title != title {
            title = entry.title;
            lines.push(format!("\n### {title}\n"));
            lines.push("| code | severity | specification | what is wrong | what to do |".to_owned());
            lines.push("|---|---|---|---|---|".to_owned());
        }
        let (code, severity, spec) = (&entry.code, entry.severity.as_str(), entry.spec);
        let (wrong, fix) = (entry.wrong.replace('|', "\\|"), entry.fix.replace('|', "\\|"));
        lines.push(format!("| `{code}` | {severity} | {spec} | {wrong} | {fix} |"));
    }
    lines.join("\n") + "\n"
}
