//! The last check of each path of the path table, in three bytes per path.
//!
//! Most visits find nothing, and with a row for each site and path, these rows would take 90 % of the database. The crawler defines the
//! meaning of slots and classes.

use serde::{Deserialize, Serialize};

/// Class of a slot that was never checked.
const CLASS_NEVER: u8 = 0;
const SLOT_BYTES: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PathCheck {
    /// The crawler's code of the result; 0 means never checked.
    pub class: u8,
    /// Day of the check, counted from 1970-01-01.
    pub day: u16,
}

/// The last check by slot of the path table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<(u8, u8, u16)>", into = "Vec<(u8, u8, u16)>")]
pub struct PathSlots(Vec<u8>);

impl PathSlots {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub fn get(&self, slot: u8) -> Option<PathCheck> {
        let start = usize::from(slot) * SLOT_BYTES;
        match self.0.get(start..start + SLOT_BYTES) {
            Some(&[class, low, high]) if class != CLASS_NEVER => {
                Some(PathCheck { class, day: u16::from_le_bytes([low, high]) })
            }
            _ => None,
        }
    }

    pub fn set(&mut self, slot: u8, check: PathCheck) {
        let start = usize::from(slot) * SLOT_BYTES;
        if self.0.len() < start + SLOT_BYTES {
            self.0.resize(start + SLOT_BYTES, CLASS_NEVER);
        }
        let [low, high] = check.day.to_le_bytes();
        for (byte, value) in self.0.iter_mut().skip(start).zip([check.class, low, high]) {
            *byte = value;
        }
    }

    /// The slots that were checked, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u8, PathCheck)> + '_ {
        (0..=u8::MAX)
            .take(self.0.len() / SLOT_BYTES)
            .filter_map(|slot| self.get(slot).map(|check| (slot, check)))
    }

    /// Whether no path was ever checked.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads the bytes of [`Self::as_bytes`]; `None` if they are not a whole number of slots.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let whole = bytes.len().is_multiple_of(SLOT_BYTES) && bytes.len() <= SLOT_BYTES * 256;
        whole.then_some(Self(bytes))
    }
}

impl From<Vec<(u8, u8, u16)>> for PathSlots {
    fn from(checks: Vec<(u8, u8, u16)>) -> Self {
        let mut slots = Self::new();
        for (slot, class, day) in checks {
            slots.set(slot, PathCheck { class, day });
        }
        slots
    }
}

impl From<PathSlots> for Vec<(u8, u8, u16)> {
    fn from(slots: PathSlots) -> Self {
        slots.iter().map(|(slot, check)| (slot, check.class, check.day)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_a_check_in_three_bytes() {
        let mut slots = PathSlots::new();
        assert!(slots.is_empty() && slots.get(0).is_none());
        let check = PathCheck { class: 4, day: 20_777 };
        slots.set(3, check);
        slots.set(255, PathCheck { class: 1, day: u16::MAX });
        assert_eq!(slots.get(3), Some(check));
        assert_eq!(slots.get(2), None);
        assert_eq!(slots.iter().map(|(slot, _)| slot).collect::<Vec<_>>(), [3, 255]);
        assert_eq!(PathSlots::from_bytes(slots.as_bytes().to_vec()), Some(slots.clone()));
        assert_eq!(PathSlots::from_bytes(vec![1, 2]), None);
        let json = serde_json::to_string(&slots).unwrap();
        assert_eq!(json, "[[3,4,20777],[255,1,65535]]");
        assert_eq!(serde_json::from_str::<PathSlots>(&json).unwrap().get(3), Some(check));
    }
}
