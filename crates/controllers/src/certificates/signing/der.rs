//! The subset of DER encoding that a certificate needs.

/// A tagged value.
pub(super) fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(length) if length < 0x80 => out.push(length),
        _ => {
            let length: Vec<u8> = content
                .len()
                .to_be_bytes()
                .into_iter()
                .skip_while(|byte| *byte == 0)
                .collect();
            out.push(0x80 | u8::try_from(length.len()).expect("a length has at most eight bytes"));
            out.extend(length);
        }
    }

    out.extend_from_slice(content);

    out
}

pub(super) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    value(0x30, &parts.concat())
}

/// A non-negative integer, big-endian.
pub(super) fn unsigned(bytes: &[u8]) -> Vec<u8> {
    let mut content: Vec<u8> = bytes
        .iter()
        .copied()
        .skip_while(|byte| *byte == 0)
        .collect();
    if content.first().is_none_or(|first| first & 0x80 != 0) {
        content.insert(0, 0);
    }
    value(0x02, &content)
}

pub(super) fn octets(content: &[u8]) -> Vec<u8> {
    value(0x04, content)
}

/// A bit string whose last `unused` bits do not count.
pub(super) fn bits(content: &[u8], unused: u8) -> Vec<u8> {
    let mut all = vec![unused];
    all.extend_from_slice(content);
    value(0x03, &all)
}

pub(super) fn identifier(content: &[u8]) -> Vec<u8> {
    value(0x06, content)
}

pub(super) const TRUE: [u8; 3] = [0x01, 0x01, 0xff];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_numbers_have_their_shortest_form() {
        assert_eq!(value(4, &[7]), [4, 1, 7]);
        assert_eq!(value(4, &[0; 200])[..3], [4, 0x81, 200]);
        assert_eq!(value(4, &[0; 300])[..4], [4, 0x82, 1, 44]);
        assert_eq!(unsigned(&[0, 0, 5]), [2, 1, 5]);
        assert_eq!(unsigned(&[0xff]), [2, 2, 0, 0xff]);
        assert_eq!(unsigned(&[]), [2, 1, 0]);
        assert_eq!(bits(&[0xa0], 5), [3, 2, 5, 0xa0]);
    }
}
