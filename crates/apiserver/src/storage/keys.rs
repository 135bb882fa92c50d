//! Maps keys between `/registry` and the configured prefix.

use bytes::Bytes;
use coracle_store::{End, KeyRange, KeyValue};

/// What keys begin with, as everything above knows them.
const ABOVE: &[u8] = b"/registry";

/// The prefix of keys in the store; no mapping is needed where it is the same.
#[derive(Clone, Debug)]
pub(super) struct Prefix(Option<Bytes>);

impl Prefix {
    pub(super) fn new(prefix: &str) -> Prefix {
        let prefix = format!("/{}", prefix.trim_matches('/'));
        Prefix((prefix.as_bytes() != ABOVE).then(|| Bytes::from(prefix)))
    }

    pub(super) fn down(&self, key: &Bytes) -> Bytes {
        match (&self.0, key.strip_prefix(ABOVE)) {
            (Some(below), Some(rest)) => [below, rest].concat().into(),
            _ => key.clone(),
        }
    }

    pub(super) fn range(&self, range: &KeyRange) -> KeyRange {
        if self.0.is_none() {
            return range.clone();
        }
        let start = self.down(range.start());
        match range.end() {
            End::Single => KeyRange::single(start),
            End::Before(end) => KeyRange::between(start, self.down(end)),
            End::Unbounded => KeyRange::from(start),
        }
    }

    pub(super) fn up(&self, kv: &mut KeyValue) {
        if let Some(below) = &self.0
            && let Some(rest) = kv.key.strip_prefix(&below[..])
        {
            kv.key = [ABOVE, rest].concat().into();
        }
    }

    pub(super) fn up_all(&self, kvs: &mut [KeyValue]) {
        kvs.iter_mut().for_each(|kv| self.up(kv));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_ranges_move_below_the_prefix() {
        let prefix = Prefix::new("clusters/a/");
        assert_eq!(
            prefix.down(&Bytes::from("/registry/pods/default/a")),
            "/clusters/a/pods/default/a"
        );

        assert_eq!(
            prefix.down(&Bytes::from("compact_rev_key")),
            "compact_rev_key"
        );

        assert_eq!(
            prefix.range(&KeyRange::prefix("/registry/")),
            KeyRange::prefix("/clusters/a/")
        );

        let usual = Prefix::new("/registry");
        assert_eq!(
            usual.range(&KeyRange::prefix("/registry/")),
            KeyRange::prefix("/registry/")
        );
    }
}
