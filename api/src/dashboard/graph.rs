//! The dependencies of a capability and the capabilities that depend on it, drawn in three columns.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use manifest::{Capability, Manifest};

use super::links;
use crate::text;

/// Maximum number of boxes in one column; a longer list is described next to the drawing.
const COLUMN_MAX: usize = 6;
/// Maximum number of names of one direction in the text alternative.
const NAMED_MAX: usize = 20;
/// Maximum length of a name in a box, in characters.
const NAME_CHARS_MAX: usize = 24;
const BOX_WIDTH: usize = 200;
const BOX_HEIGHT: usize = 36;
const GAP_X: usize = 60;
const GAP_Y: usize = 12;
const MARGIN: usize = 4;

pub(crate) struct Node {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) text: String,
    pub(crate) href: Option<String>,
    pub(crate) is_here: bool,
    /// Whether it is called before or after, for the list on narrow screens.
    pub(crate) step: &'static str,
}

impl Node {
    pub(crate) fn text_x(&self) -> usize {
        self.x + BOX_WIDTH / 2
    }

    pub(crate) fn text_y(&self) -> usize {
        self.y + BOX_HEIGHT / 2 + 5
    }

    fn middle_y(&self) -> usize {
        self.y + BOX_HEIGHT / 2
    }
}

/// The drawing, with a text alternative for screen readers.
pub(crate) struct Graph {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) nodes: Vec<Node>,
    /// The `d` of each arrow's path.
    pub(crate) arrows: Vec<String>,
    pub(crate) words: String,
}

impl Graph {
    pub(crate) const BOX: (usize, usize) = (BOX_WIDTH, BOX_HEIGHT);

    /// `None` without dependencies.
    pub(crate) fn of(manifest: &Manifest, capability: &Capability) -> Option<Self> {
        let before: BTreeSet<&str> = capability.depends_on.iter().map(String::as_str).collect();
        let needs_this = |other: &&Capability| {
            other.id != capability.id && other.depends_on.contains(&capability.native_id)
        };
        let after: Vec<&str> =
            manifest.capabilities.iter().filter(needs_this).map(|other| other.native_id.as_str()).collect();
        if before.is_empty() && after.is_empty() {
            return None;
        }
        let named = |ids: &mut dyn Iterator<Item = &str>| -> Vec<String> {
            ids.take(NAMED_MAX).map(|id| text::cut(name_of(manifest, id), NAME_CHARS_MAX)).collect()
        };
        let first = listed(&named(&mut before.iter().copied()), before.len());
        let then = listed(&named(&mut after.iter().copied()), after.len());
        let words = sentence(name_of(manifest, &capability.native_id), &first, &then);
        let columns: [Vec<&str>; 3] = [
            before.into_iter().take(COLUMN_MAX).collect(),
            vec![capability.native_id.as_str()],
            after.into_iter().take(COLUMN_MAX).collect(),
        ];
        let kept: Vec<Vec<&str>> = columns.into_iter().filter(|column| !column.is_empty()).collect();
        Some(Self::drawn(manifest, capability, &kept, words))
    }

    fn drawn(manifest: &Manifest, capability: &Capability, columns: &[Vec<&str>], words: String) -> Self {
        let rows = columns.iter().map(Vec::len).max().unwrap_or(1);
        let height = 2 * MARGIN + rows * BOX_HEIGHT + (rows - 1) * GAP_Y;
        let mut nodes: Vec<Vec<Node>> = Vec::new();
        let here = columns.iter().position(|column| column == &[capability.native_id.as_str()]).unwrap_or(0);
        for (index, column) in columns.iter().enumerate() {
            let x = MARGIN + index * (BOX_WIDTH + GAP_X);
            let tall = column.len() * BOX_HEIGHT + (column.len() - 1) * GAP_Y;
            let top = (height - tall) / 2;
            let node = |(row, native_id): (usize, &&str)| Node {
                x,
                y: top + row * (BOX_HEIGHT + GAP_Y),
                text: text::cut(name_of(manifest, native_id), NAME_CHARS_MAX),
                href: manifest
                    .capabilities
                    .iter()
                    .find(|other| other.native_id == **native_id && other.id != capability.id)
                    .map(|other| links::capability(&other.id)),
                is_here: **native_id == *capability.native_id,
                step: match index.cmp(&here) {
                    Ordering::Less => "before",
                    Ordering::Equal => "this call",
                    Ordering::Greater => "then",
                },
            };
            nodes.push(column.iter().enumerate().map(node).collect());
        }
        let arrows = nodes.windows(2).flat_map(|pair| match pair {
            [from, to] => from.iter().flat_map(|a| to.iter().map(move |b| arrow(a, b))).collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        Self {
            width: 2 * MARGIN + columns.len() * BOX_WIDTH + (columns.len() - 1) * GAP_X,
            height,
            arrows: arrows.collect(),
            nodes: nodes.into_iter().flatten().collect(),
            words,
        }
    }
}

/// The name of a capability of the manifest, or the id itself if the manifest has no capability with it.
pub(crate) fn name_of<'a>(manifest: &'a Manifest, native_id: &'a str) -> &'a str {
    let named = manifest.capabilities.iter().find(|other| other.native_id == native_id);
    named.map_or(native_id, |found| found.title.as_deref().unwrap_or(&found.name))
}

fn arrow(from: &Node, to: &Node) -> String {
    let (x1, y1, x2, y2) = (from.x + BOX_WIDTH, from.middle_y(), to.x, to.middle_y());
    let bend = x1.midpoint(x2);
    format!("M{x1} {y1} C{bend} {y1} {bend} {y2} {x2} {y2}")
}

fn sentence(name: &str, first: &str, then: &str) -> String {
    let name = text::cut(name, NAME_CHARS_MAX);
    match (first.is_empty(), then.is_empty()) {
        (false, true) => format!("Call {first} before {name}."),
        (true, _) => format!("{name} is called before {then}."),
        (false, false) => format!("Call {first} before {name}, and {name} before {then}."),
    }
}

/// The first names, and the number of further names.
fn listed(first: &[String], count: usize) -> String {
    let names = first.join(", ");
    if count > first.len() { format!("{names} and {} more", count - first.len()) } else { names }
}
