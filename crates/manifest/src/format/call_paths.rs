//! The paths of the capabilities of a draft, for parsers that compare the calls of texts with them.
//!
//! Texts may name many calls, and a document may list thousands with long paths. So the paths are grouped by their number of segments, and
//! the bytes that are compared for one document are limited.

use std::collections::HashMap;
use std::ops::Range;

use super::listed_calls::path_range;
use crate::model::Capability;

/// Maximum number of bytes of segments that are compared for one document: 100 calls with 5,000 paths that share 30 bytes.
const BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// The path of a capability's endpoint.
#[derive(Debug)]
struct Known {
    /// Index of the capability.
    position: usize,
    /// Bytes of the endpoint that are the path.
    path: Range<usize>,
}

/// The paths of capabilities by their number of segments.
#[derive(Debug)]
pub(super) struct CallPaths {
    by_segments: HashMap<usize, Vec<Known>>,
    /// Number of capabilities whose paths were added.
    added: usize,
    bytes_left: usize,
}

impl Default for CallPaths {
    fn default() -> Self {
        Self { by_segments: HashMap::new(), added: 0, bytes_left: BYTES_MAX }
    }
}

impl CallPaths {
    /// Whether the limit is reached. Nothing is compared any more.
    pub(super) const fn is_spent(&self) -> bool {
        self.bytes_left == 0
    }

    /// The position of the first capability for which `is_meant` is true and whose path matches, segment by segment. `is_same` compares a
    /// segment of a listed path with one of `path`. `None` once the limit is reached.
    pub(super) fn first(
        &mut self,
        path: &str,
        capabilities: &[Capability],
        is_same: impl Fn(&str, &str) -> bool,
        is_meant: impl Fn(&Capability) -> bool,
    ) -> Option<usize> {
        if self.is_spent() {
            return None;
        }
        self.add(capabilities);
        let candidates = self.by_segments.get(&path.split('/').count())?;
        for known in candidates {
            let capability = capabilities.get(known.position)?;
            let listed = capability.invocation.endpoint().and_then(|url| url.get(known.path.clone()));
            let Some(listed) = listed else { continue };
            let mut compared = 1;
            let fits = listed.split('/').zip(path.split('/')).all(|(listed, own)| {
                compared += listed.len() + 1;
                is_same(listed, own)
            });
            compared += if fits { capability.invocation.endpoint().map_or(0, str::len) } else { 0 };
            self.bytes_left = self.bytes_left.saturating_sub(compared);
            if self.bytes_left == 0 {
                return None;
            }
            if fits && is_meant(capability) {
                return Some(known.position);
            }
        }
        None
    }

    /// Adds the paths of the capabilities that were pushed since the last call.
    fn add(&mut self, capabilities: &[Capability]) {
        for (position, capability) in capabilities.iter().enumerate().skip(self.added) {
            let Some(endpoint) = capability.invocation.endpoint() else { continue };
            let path = path_range(endpoint);
            let segments = endpoint.get(path.clone()).unwrap_or_default().split('/').count();
            self.by_segments.entry(segments).or_default().push(Known { position, path });
        }
        self.added = capabilities.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CapabilityKind, Format};
    use crate::name::ManifestUrl;

    fn calls(paths: &[String]) -> Vec<Capability> {
        let url = ManifestUrl::parse("https://a.example/agent.json").unwrap();
        let call = |path: &String| {
            let kind = CapabilityKind::Operation;
            let mut call = Capability::new(&url, Format::Generic, path, path, kind, String::new());
            call.invocation.url = Some(["https://a.example", path].concat());
            call
        };
        paths.iter().map(call).collect()
    }

    #[test]
    fn finds_the_first_capability_with_a_matching_path() {
        let mut known = calls(&["/a".into(), "/{b}/c".into(), "/b/c".into()]);
        let mut paths = CallPaths::default();
        let is_same = |listed: &str, own: &str| listed == own || listed.starts_with('{');
        assert_eq!(paths.first("/b/c", &known, is_same, |_| true), Some(1));
        assert_eq!(paths.first("/b/c", &known, is_same, |call| call.name == "/b/c"), Some(2));
        assert_eq!(paths.first("/a/b/c", &known, is_same, |_| true), None);
        known.extend(calls(&["/a/b/c?d=/e".into()]));
        assert_eq!(paths.first("/a/b/c", &known, is_same, |_| true), Some(3));
    }

    /// Without the limit, a hundred calls are compared with 42 MB of paths.
    #[test]
    fn few_bytes_are_compared_for_a_hundred_calls_beside_many_long_paths() {
        let long = "/a".repeat(450);
        let known = calls(&(0..465).map(|at| format!("{long}/{at}")).collect::<Vec<_>>());
        let (mut paths, mut compared) = (CallPaths::default(), 0);
        let own = format!("{long}/x");
        for _ in 0..100 {
            let counted = std::cell::Cell::new(0);
            let is_same = |listed: &str, own: &str| {
                counted.set(counted.get() + listed.len() + 1);
                listed == own
            };
            assert_eq!(paths.first(&own, &known, is_same, |_| true), None);
            compared += counted.get();
        }
        assert!(paths.is_spent());
        assert!(compared <= BYTES_MAX + 2 * own.len(), "{compared} bytes are compared");
    }
}
