//! Cycles of a graph: sets of nodes that reach each other.

use std::collections::{BTreeMap, BTreeSet};

/// Nodes with the nodes that they depend on.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

/// Sets of two or more nodes that reach each other, the largest first.
pub(crate) fn cycles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|node| (node, reached_from(graph, node))).collect();
    let mut cycles = BTreeSet::new();
    for (node, reached_by_node) in &reached {
        let back = |other: &&&String| reached.get(**other).is_some_and(|reached| reached.contains(node));
        let cycle: BTreeSet<String> =
            reached_by_node.iter().filter(back).map(|other| (*other).clone()).collect();
        if cycle.len() > 1 {
            cycles.insert(cycle);
        }
    }
    let mut cycles: Vec<_> = cycles.into_iter().collect();
    cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
    cycles
}

/// The nodes reachable from a node over one or more edges.
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

/// The edges inside a cycle, for messages.
pub(crate) fn edges_within(graph: &Graph, cycle: &BTreeSet<String>) -> Vec<String> {
    let edges = cycle
        .iter()
        .flat_map(|node| graph[node].intersection(cycle).map(move |target| format!("{node} -> {target}")));
    edges.collect()
}
