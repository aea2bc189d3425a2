//! Circles of a graph: sets of nodes that reach each other.

use std::collections::{BTreeMap, BTreeSet};

/// Nodes with the nodes that they depend on.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

/// Sets of two or more nodes that reach each other, the largest first.
pub(crate) fn circles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|node| (node, reached_from(graph, node))).collect();
    let mut circles = BTreeSet::new();
    for (node, reached_by_node) in &reached {
        let back = |other: &&&String| reached.get(**other).is_some_and(|reached| reached.contains(node));
        let circle: BTreeSet<String> =
            reached_by_node.iter().filter(back).map(|other| (*other).clone()).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    let mut circles: Vec<_> = circles.into_iter().collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// The nodes at the end of one or more edges from a node.
fn reached_from<'g>(graph: &'g Graph, node: &str) -> BTreeSet<&'g String> {
    let mut todo: Vec<&String> = graph[node].iter().collect();
    let mut reached = BTreeSet::new();
    while let Some(next) = todo.pop() {
        if reached.insert(next) {
            todo.extend(graph.get(next).into_iter().flatten());
        }
    }
    reached
}

/// The edges inside a circle, for messages.
pub(crate) fn edges_within(graph: &Graph, circle: &BTreeSet<String>) -> Vec<String> {
    let edges = circle
        .iter()
        .flat_map(|node| graph[node].intersection(circle).map(move |target| format!("{node} -> {target}")));
    edges.collect()
}
