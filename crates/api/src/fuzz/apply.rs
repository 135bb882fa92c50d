//! Sets of fields under any input.

use crate::apply::fields_v1 as codec;

/// A text is no set of fields, or what is read is written in order, and reads and writes as the same again.
pub fn fields_v1(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(set) = codec::decode(text) else { return };
    let written = codec::encode(&set);
    let again = codec::decode(written.as_str()).expect("what is written can be read");
    assert_eq!(codec::encode(&again).as_str(), written.as_str(), "the written form is stable");
    assert_eq!(again, set, "{} is another set", written.as_str());
    assert_eq!(set.union(&set), set, "a set is its union with itself");
    assert_eq!(set.intersection(&set), set, "a set is its intersection with itself");
    assert!(set.difference(&set).is_empty(), "a set less itself is empty");
    assert!(set.paths().iter().all(|path| set.has(&path.0)), "a set has what it lists");
    assert_eq!(set.paths().len(), set.len(), "a set lists all it has");
}
