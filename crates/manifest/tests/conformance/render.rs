//! docs/CONFORMANCE.md.

use std::fmt::Write as _;

use crate::register::{Clause, Level, Register, Support};

const HEAD: &str = "# Conformance\n\nWhat agentdex does about each clause of the core specifications, and of those of agent cards, catalogs and MCP servers. The tables are rendered from the registers in\n`tests/conformance`, which also name the tests of each clause and mutate a complete example of each specification.\n\n- **reads**: the value is in the normalised manifest, at `/manifests/{id}`.\n- **reports**: a document that breaks the clause gets a finding of the same level at the same place.\n- **obeys**: agentdex acts as the clause asks of a consumer.\n- **follows**: agentdex requests the document that the value names.\n- **serves**: an instance answers as the clause asks of a registry.\n- **does not**: the reason is given.\n";

pub(crate) fn document(registers: &[Register]) -> String {
    let mut text = HEAD.to_owned();
    for register in registers {
        let supported = register.clauses.iter().filter(|clause| clause.agentdex != Support::DoesNot).count();
        write!(
            text,
            "\n## {}\n\n{supported} of {} clauses are supported.\n\n| section | level | clause | agentdex | detail |\n|---|---|---|---|---|\n",
            register.name,
            register.clauses.len()
        )
        .expect("a string can be written to");
        for clause in &register.clauses {
            text.push_str(&row(clause));
        }
    }
    text
}

fn row(clause: &Clause) -> String {
    let members: Vec<String> = clause.members().map(|(member, _)| format!("`{member}`")).collect();
    let member = if members.is_empty() { String::new() } else { format!("{}: ", members.join(", ")) };
    let level = match clause.level {
        Level::Must => "MUST",
        Level::Should => "SHOULD",
        Level::May => "MAY",
        Level::Field => "field",
        Level::Consumer => "consumer",
    };
    let support = match clause.agentdex {
        Support::Reads => "reads",
        Support::Reports => "reports",
        Support::Obeys => "obeys",
        Support::Follows => "follows",
        Support::Serves => "serves",
        Support::DoesNot => "does not",
    };
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    format!(
        "| {} | {level} | {member}{} | {support} | {} |\n",
        clause.section,
        cell(&clause.says),
        cell(&clause.how)
    )
}
