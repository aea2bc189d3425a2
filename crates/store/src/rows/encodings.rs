//! Short encodings of columns of compacted sites.

/// Milliseconds as whole seconds, one byte if there are none.
pub(crate) mod seconds {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    #[expect(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(crate) fn serialize<S: Serializer>(at_ms: &Option<i64>, to: S) -> Result<S::Ok, S::Error> {
        at_ms.map_or(0, |at_ms| at_ms.div_euclid(1_000) + 1).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
        let seconds = i64::deserialize(from)?;
        Ok((seconds != 0).then(|| (seconds - 1).saturating_mul(1_000)))
    }
}

/// Run-length encoding of path slots. After a first visit, all slots are equal.
pub(crate) mod path_runs {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    type Slot = [u8; 3];

    #[expect(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(crate) fn serialize<S: Serializer>(slots: &Option<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
        let (slots, _) = slots.as_deref().unwrap_or_default().as_chunks::<3>();
        let runs = slots.chunk_by(|one, next| one == next);
        runs.filter_map(|run| Some((u16::try_from(run.len()).ok()?, run.first()?)))
            .collect::<Vec<(u16, &Slot)>>()
            .serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
        let runs = Vec::<(u16, Slot)>::deserialize(from)?;
        Ok(expand(runs))
    }

    pub(crate) fn expand(runs: Vec<(u16, Slot)>) -> Option<Vec<u8>> {
        let slots = runs.into_iter().flat_map(|(length, slot)| slot.repeat(usize::from(length)));
        Some(slots.collect()).filter(|slots: &Vec<u8>| !slots.is_empty())
    }
}
