//! Properties of YAML for any input.

use crate::codec::yaml as codec;

/// Bytes are no YAML, or they round-trip; splitting a text loses nothing but separators.
pub fn yaml(data: &[u8]) {
    if let Ok((value, _)) = codec::decode_strict(data) {
        let printed = codec::print(&value);
        let again = codec::decode(printed.as_bytes()).expect("what is printed can be read");
        assert_eq!(again, value, "{printed:?} is another value");
        assert_eq!(codec::print(&again), printed, "the printed form is stable");
        assert_eq!(
            codec::decode(data).as_ref(),
            Ok(&value),
            "strict decoding reads the same value"
        );
    }

    if let Ok(text) = std::str::from_utf8(data) {
        let mut rest = text;
        for document in codec::documents(text).map_while(Result::ok) {
            assert!(!document.is_empty(), "an empty document");
            let (_, behind) = rest
                .split_once(document)
                .expect("documents come in their order");
            rest = behind;
        }
    }
}
