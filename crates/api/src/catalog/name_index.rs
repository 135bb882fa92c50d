//! Hash index of a table by names of three parts (group, version, name). Every request looks up its
//! resource, its kind and those that admission needs.

use std::sync::OnceLock;

/// Row numbers of a table, by the hash of their names; built on first use.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameIndex(OnceLock<Box<[u16]>>);

/// An empty slot.
const FREE: u16 = u16::MAX;

impl NameIndex {
    pub(crate) const fn new() -> NameIndex {
        NameIndex(OnceLock::new())
    }

    /// The row with this name. All calls must pass the same table.
    pub(crate) fn find<'t, T>(
        &self,
        table: &'t [T],
        name: [&str; 3],
        name_of: impl Fn(&'t T) -> [&'t str; 3],
    ) -> Option<usize> {
        let slots = self.0.get_or_init(|| slots(table, &name_of));
        let row = |slot: usize| Some(usize::from(slots[slot])).filter(|_| slots[slot] != FREE);
        // There are more slots than rows, so the sequence reaches a free one.
        let taken = probes(name, slots.len()).map_while(row);
        taken
            .into_iter()
            .find(|row| table.get(*row).is_some_and(|row| name_of(row) == name))
    }
}

fn slots<'t, T>(table: &'t [T], name_of: impl Fn(&'t T) -> [&'t str; 3]) -> Box<[u16]> {
    let mut slots = vec![FREE; (2 * table.len() + 1).next_power_of_two()];
    for (index, row) in table.iter().enumerate() {
        let mut probes = probes(name_of(row), slots.len());
        let free = probes
            .find(|slot| slots[*slot] == FREE)
            .expect("there are more slots than rows");
        slots[free] = u16::try_from(index).expect("a table has fewer than 65,535 rows");
    }
    slots.into()
}

/// The probe sequence of a name; the number of slots is a power of two.
fn probes(name: [&str; 3], slots: usize) -> impl Iterator<Item = usize> {
    let [first, second, ..] = name.into_iter().fold(0, hash).to_be_bytes();
    let first = usize::from(u16::from_be_bytes([first, second]));
    (0..slots).map(move |step| (first + step) & (slots - 1))
}

/// Hashes eight bytes at a time. Not collision-resistant: the names are not chosen by attackers.
fn hash(seed: u64, name: &str) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

    let bytes = name.as_bytes();
    let add = |sum: u64, part: u64| {
        let mixed = (sum ^ part).wrapping_mul(ODD);
        mixed ^ mixed >> 32
    };

    let (whole, rest) = bytes.as_chunks();
    let sum = whole
        .iter()
        .fold(seed, |sum, chunk| add(sum, u64::from_le_bytes(*chunk)));
    let rest = rest.iter().fold(bytes.len() as u64, |part, byte| {
        part << 8 | u64::from(*byte)
    });

    add(sum, rest)
}

#[cfg(test)]
mod tests {
    use crate::catalog::BUILTIN;

    #[test]
    fn every_resource_and_kind_is_found_and_nothing_else() {
        for (index, of) in BUILTIN.resources().iter().enumerate() {
            let found = BUILTIN
                .resource(&of.group, &of.version, &of.plural)
                .unwrap();
            assert!(std::ptr::eq(found, &BUILTIN.resources()[index]));
            assert!(
                BUILTIN
                    .resource(&of.group, &of.version, &format!("{}x", of.plural))
                    .is_none()
            );

            assert!(
                BUILTIN
                    .resource(&of.version, &of.group, &of.plural)
                    .is_none()
            );
        }

        for (index, of) in BUILTIN.kinds().iter().enumerate() {
            assert_eq!(
                BUILTIN.kind_index(&of.group, &of.version, &of.name),
                Some(index)
            );
            assert!(BUILTIN.kind(&of.group, &of.version, "").is_none());
        }
    }
}
