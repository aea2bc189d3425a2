//! The queue of a visit as it is written down. That happens with nearly every request, and most tasks are rows of the path
//! table: of these the row is kept alone.

use std::collections::VecDeque;

use manifest::Host;
use policy::plan::{PATHS, PlannedPath};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::prepare::planned_task;
use super::task::{Plainly, Task};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Kept<T> {
    /// Paths of one host that follow each other, by their rows.
    Rows(Host, Vec<u8>),
    Task(T),
}

pub(super) fn serialize<S: Serializer>(queue: &VecDeque<Task>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut kept: Vec<Kept<&Task>> = Vec::new();
    for task in queue {
        let host = task.url.host();
        match (row_of(task, &host), kept.last_mut()) {
            (Some(row), Some(Kept::Rows(same, slots))) if *same == host => slots.push(row.slot),
            (Some(row), _) => kept.push(Kept::Rows(host, vec![row.slot])),
            (None, _) => kept.push(Kept::Task(task)),
        }
    }
    kept.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VecDeque<Task>, D::Error> {
    let mut queue = VecDeque::new();
    for kept in Vec::<Kept<Task>>::deserialize(deserializer)? {
        match kept {
            Kept::Task(task) => queue.push_back(task),
            Kept::Rows(host, slots) => {
                let rows = slots.into_iter().filter_map(row);
                queue.extend(rows.filter_map(|row| planned_task(&host, row)));
            }
        }
    }
    Ok(queue)
}

fn row(slot: u8) -> Option<&'static PlannedPath> {
    PATHS.iter().find(|row| row.slot == slot)
}

/// The row of a task that is nothing else than its row.
fn row_of(task: &Task, host: &Host) -> Option<&'static PlannedPath> {
    let row = row(task.slot?)?;
    let Task { url, hops, body, discovery, linked_from, slot: _, role, plainly } = task;
    let path = url.as_url().as_str().strip_prefix("https://")?.strip_prefix(host.as_str())?;
    let is_plain = hops.is_empty() && linked_from.is_none() && *plainly == Plainly::No;
    let is_row = path == row.path && *body == row.body && (*discovery, *role) == Task::manner_of(row);
    (is_plain && is_row).then_some(row)
}

#[cfg(test)]
mod tests {
    use manifest::{Discovery, ManifestUrl};
    use policy::BodyKind;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Written {
        #[serde(with = "super")]
        queue: VecDeque<Task>,
    }

    fn planned(host: &str) -> impl Iterator<Item = Task> {
        let host = Host::parse(host).unwrap();
        PATHS.iter().map(move |row| planned_task(&host, row).unwrap())
    }

    #[test]
    fn rows_are_short_and_everything_else_is_whole() {
        let linked = ManifestUrl::parse("https://a.example/tools.json").unwrap();
        let mut special = planned("a.example").next().unwrap();
        special.plainly = Plainly::Yes;
        let mut redirected = planned("b.example").nth(2).unwrap();
        redirected.hops.push(linked.clone());
        let queue: VecDeque<Task> = planned("a.example")
            .chain([Task::new(linked, BodyKind::Manifest, Discovery::Submitted), special])
            .chain(planned("b.example"))
            .chain([redirected])
            .collect();
        let written = Written { queue };
        let text = serde_json::to_string(&written).unwrap();
        assert_eq!(serde_json::from_str::<Written>(&text).unwrap(), written);
        let rows = Written { queue: planned("a.example").collect() };
        let text = serde_json::to_string(&rows).unwrap();
        assert!(text.len() < 100, "{} bytes: {text}", text.len());
    }

    /// What an earlier version wrote down is still read.
    #[test]
    fn tasks_that_were_written_whole_are_read() {
        let queue: Vec<Task> = planned("a.example").collect();
        let text = serde_json::to_string(&serde_json::json!({ "queue": queue })).unwrap();
        assert_eq!(Vec::from(serde_json::from_str::<Written>(&text).unwrap().queue), queue);
    }
}
