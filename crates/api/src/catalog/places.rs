//! Where things with names of three parts are in a table: every request asks several times, for its
//! resource, its kind and what admission looks at beside them.

use std::sync::OnceLock;

/// The places of a table's rows, by the hash of their names; made when the first one is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(OnceLock<Box<[u16]>>);

/// A slot that holds nothing.
const FREE: u16 = u16::MAX;

impl Places {
    pub(crate) const fn new() -> Places {
        Places(OnceLock::new())
    }

    /// The row with this name. The table is always the same one.
    pub(crate) fn find<'t, T>(
        &self,
        table: &'t [T],
        name: [&str; 3],
        name_of: impl Fn(&'t T) -> [&'t str; 3],
    ) -> Option<usize> {
        let slots = self.0.get_or_init(|| slots(table, &name_of));
        let row = |slot: usize| Some(usize::from(slots[slot])).filter(|_| slots[slot] != FREE);
        // There are more slots than rows, so this ends.
        let taken = probes(name, slots.len()).map_while(row);
        taken
            .into_iter()
            .find(|row| table.get(*row).is_some_and(|row| name_of(row) == name))
    }
}

fn slots<'t, T>(table: &'t [T], name_of: impl Fn(&'t T) -> [&'t str; 3]) -> Box<[u16]> {
    let mut slots = vec![FREE; (2 * table.len() + 1).next_power_of_two()];
    for (place, row) in table.iter().enumerate() {
        let mut probes = probes(name_of(row), slots.len());
        let free = probes
            .find(|slot| slots[*slot] == FREE)
            .expect("there are more slots than rows");
        slots[free] = u16::try_from(place).expect("a table has fewer than 65,535 rows");
    }
    slots.into()
}

/// The slots where a name may be, the likeliest first; the number of slots is a power of two.
fn probes(name: [&str; 3], slots: usize) -> impl Iterator<Item = usize> {
    let [first, second, ..] = name.into_iter().fold(0, hash).to_be_bytes();
    let first = usize::from(u16::from_be_bytes([first, second]));
    (0..slots).map(move |step| (first + step) & (slots - 1))
}

/// Eight bytes at a time: good enough for names that nobody chooses in order to collide.
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
        for (place, of) in BUILTIN.resources().iter().enumerate() {
            let found = BUILTIN
                .resource(&of.group, &of.version, &of.plural)
                .unwrap();
            assert!(std::ptr::eq(found, &BUILTIN.resources()[place]));
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

        for (place, of) in BUILTIN.kinds().iter().enumerate() {
            assert_eq!(
                BUILTIN.place_of_kind(&of.group, &of.version, &of.name),
                Some(place)
            );
            assert!(BUILTIN.kind(&of.group, &of.version, "").is_none());
        }
    }
}
