//! Tests which ids capabilities keep after merges, splits and changes of the leader.

use super::*;
use crate::name::ManifestUrl;

fn capability(letter: &str) -> CapabilityId {
    CapabilityId::of_key(letter)
}

fn manifest(letter: &str) -> ManifestId {
    ManifestId::of(&ManifestUrl::parse(&format!("https://shop.example/{letter}")).unwrap())
}

/// Groups written as `ab c`: each letter is a declaration in a separate manifest, and the first one is the leader.
fn groups(text: &str) -> Vec<Group> {
    let member = |letter: char| {
        let letter = letter.to_string();
        Member { id: capability(&letter), manifest: manifest(&letter) }
    };
    text.split_whitespace().map(|group| Group(group.chars().map(member).collect())).collect()
}

/// The decision after an earlier one, and the state for the next decision.
fn next(text: &str, before: &Before) -> (Vec<Named>, Regrouped, Before) {
    decided(groups(text), before)
}

fn decided(groups: Vec<Group>, before: &Before) -> (Vec<Named>, Regrouped, Before) {
    let (named, changes) = name(groups, before);
    let mut after = Before::default();
    for capability in &named {
        for member in &capability.members {
            after.known.insert(member.id.clone());
        }
        if !capability.is_plain() {
            let members = capability.members.iter().map(|member| &member.id);
            for id in members.chain(&capability.former) {
                after.capabilities.insert(id.clone(), capability.id.clone());
            }
        }
    }
    (named, changes, after)
}

fn after(steps: &[&str]) -> Before {
    steps.iter().fold(Before::default(), |before, step| next(step, &before).2)
}

/// `id: members (former)` of each capability, with the letters of the ids.
fn described(named: &[Named]) -> Vec<String> {
    let letter = |id: &CapabilityId| {
        let letters = ('a'..='z').map(String::from);
        letters.into_iter().find(|letter| capability(letter) == *id).unwrap()
    };
    let letters = |ids: Vec<&CapabilityId>| {
        let mut letters: Vec<String> = ids.into_iter().map(letter).collect();
        letters.sort_unstable();
        letters.concat()
    };
    let describe = |named: &Named| {
        let members: String = named.members.iter().map(|member| letter(&member.id)).collect();
        let former = letters(named.former.iter().collect());
        if former.is_empty() {
            format!("{}: {members}", letter(&named.id))
        } else {
            format!("{}: {members} ({former})", letter(&named.id))
        }
    };
    named.iter().map(describe).collect()
}

fn named_after(steps: &[&str]) -> Vec<String> {
    let (last, earlier) = steps.split_last().unwrap();
    described(&next(last, &after(earlier)).0)
}

#[test]
fn a_new_group_has_the_id_of_its_leader() {
    assert_eq!(named_after(&["ab c"]), ["a: ab", "c: c"]);
}

#[test]
fn a_change_of_leader_keeps_the_id() {
    assert_eq!(named_after(&["ab", "ba"]), ["a: ba"]);
    assert_eq!(named_after(&["ab", "ba", "cba"]), ["a: cba"]);
    assert_eq!(named_after(&["a", "ba"]), ["a: ba"], "a fuller declaration is new");
}

#[test]
fn merged_capabilities_keep_the_id_of_the_fullest() {
    assert_eq!(named_after(&["a b", "ba"]), ["b: ba"]);
    assert_eq!(named_after(&["a b", "cab"]), ["a: cab"], "the leader is new");
    assert_eq!(named_after(&["ab dc", "abdc"]), ["a: abdc"]);
}

#[test]
fn an_id_stays_valid_after_its_declaration_is_gone() {
    assert_eq!(named_after(&["ab", "b"]), ["a: b (a)"]);
    assert_eq!(named_after(&["ab", "a"]), ["a: a (b)"]);
    assert_eq!(named_after(&["ab", "b", "cb"]), ["a: cb (a)"]);
    assert_eq!(named_after(&["ab", "b", "b d", "db"]), ["d: db (a)"], "`d` leads the merged group");
    assert_eq!(named_after(&["ab", ""]), Vec::<String>::new());
    assert_eq!(named_after(&["ab", "", "b"]), ["b: b"], "no declaration is left");
}

#[test]
fn a_split_leaves_the_id_with_the_declaration_of_the_same_id() {
    assert_eq!(named_after(&["abc", "a bc"]), ["a: a", "b: bc"]);
    assert_eq!(named_after(&["abc", "bc"]), ["a: bc (a)"]);
    assert_eq!(named_after(&["abc", "bc", "bc a"]), ["b: bc", "a: a"], "`a` is declared again");
    assert_eq!(named_after(&["abcd", "b cd"]), ["b: b", "a: cd (a)"], "with most declarations");
}

/// The moves of declarations, as each of these manifests reports them.
fn moves(manifests: &[&str], moved: &[(&str, &str)]) -> BTreeMap<ManifestId, Moves> {
    let listed: BTreeSet<Move> =
        moved.iter().map(|(one, into)| (capability(one), capability(into))).collect();
    let moved = Moves { count: listed.len(), listed };
    manifests.iter().map(|letter| (manifest(letter), moved.clone())).collect()
}

/// A site whose manifests all declare the same operations. Each operation is one shared capability, or a separate capability in each
/// manifest.
fn shared(manifests: usize, operations: usize, are_one: bool) -> Vec<Group> {
    let member = |operation: usize, number: usize| Member {
        id: capability(&format!("{operation} {number}")),
        manifest: manifest(&number.to_string()),
    };
    let together = |operation| Group((0..manifests).map(|number| member(operation, number)).collect());
    let groups = (0..operations).map(together);
    if are_one {
        return groups.collect();
    }
    groups.flat_map(|Group(members)| members).map(|member| Group(vec![member])).collect()
}

/// Memory and time of regrouping a whole site are linear in the number of declarations.
#[test]
fn regrouping_a_site_is_linear_in_its_declarations() {
    let bytes = |manifests: usize| {
        let (_, _, before) = decided(shared(manifests, 20, true), &Before::default());
        let groups = shared(manifests, 20, false);
        let mut changes = Regrouped::default();
        let allocated = allocation_counter::measure(|| changes = name(groups, &before).1).bytes_total;
        assert_eq!(changes.split.len(), manifests);
        assert!(changes.split.values().all(|moves| moves.listed.len() <= MOVES_LISTED_MAX));
        let counted: usize = changes.split.values().map(|moves| moves.count).max().unwrap_or_default();
        assert_eq!(counted, 20 * (manifests - 1), "the manifest with the remaining declarations");
        allocated
    };
    let (one, double) = (bytes(200), bytes(400));
    assert!(double < 3 * one, "{one} bytes for 200 manifests, {double} for 400");
}

#[test]
fn merges_and_splits_are_reported_with_their_manifests() {
    let (_, changes, _) = next("ab c", &after(&["a b c"]));
    assert_eq!(changes.merged, moves(&["a", "b"], &[("b", "a")]));
    assert!(changes.split.is_empty());
    let (_, changes, _) = next("a b c", &after(&["ab c"]));
    assert_eq!(changes.split, moves(&["a", "b"], &[("b", "a")]));
    assert!(changes.merged.is_empty());
    let (_, changes, _) = next("a", &after(&["ab"]));
    assert_eq!(changes.split, moves(&["a"], &[("b", "a")]), "the other is gone");
    let (_, changes, _) = next("ba c", &after(&["ab c"]));
    assert_eq!(changes, Regrouped::default(), "another leader is neither");
}

#[test]
fn merging_merged_capabilities_is_not_a_split() {
    let (_, changes, _) = next("abcd", &after(&["ab cd"]));
    assert!(changes.split.is_empty());
    assert_eq!(changes.merged, moves(&["a", "b", "c", "d"], &[("c", "a"), ("d", "a")]));
}

#[test]
fn a_capability_has_a_bounded_number_of_former_ids() {
    let mut before = after(&["ab"]);
    for number in 0..100 {
        before.capabilities.insert(capability(&number.to_string()), capability("a"));
    }
    let (named, _) = name(groups("b"), &before);
    assert_eq!(named[0].former.len(), FORMER_MAX);
    assert!(named[0].former.contains(&capability("a")), "its own id is one of them");
}

#[test]
fn grouping_the_same_declarations_again_changes_nothing() {
    for steps in [&["ab c"][..], &["a b", "ba"], &["ab", "b"], &["abc", "a bc"], &["abcd", "b cd"]] {
        let before = after(steps);
        let last = steps.last().unwrap();
        let (named, changes, after) = next(last, &before);
        assert_eq!(changes, Regrouped::default(), "{steps:?} {:?}", described(&named));
        assert_eq!(after.capabilities, before.capabilities);
    }
}
