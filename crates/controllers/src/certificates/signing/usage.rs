//! Key usages: names of the API and their encoding.

use super::der;

/// Bits of the key usage extension.
const KEYS: &[(&str, u16)] = &[
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];

/// Object identifiers of the extended key usage extension.
const PURPOSES: &[(&str, &[u8])] = &[
    ("any", &[0x55, 0x1d, 0x25, 0]),
    ("server auth", &[0x2b, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[0x2b, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[0x2b, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[0x2b, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[0x2b, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[0x2b, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[0x2b, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[0x2b, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 0x0a, 3, 3]),
    (
        "netscape sgc",
        &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1],
    ),
];

/// The encoded key usage and extended key usage.
type Extensions = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Encodes the two extensions; each is present if it has usages.
///
/// # Errors
/// The name of the unknown usage.
pub(super) fn encode(usages: &[&str]) -> Result<Extensions, String> {
    let mut keys = 0_u16;
    let mut purposes: Vec<&[u8]> = Vec::new();
    for usage in usages {
        let key = KEYS.iter().find(|(word, _)| word == usage);
        let purpose = PURPOSES.iter().find(|(word, _)| word == usage);
        match (key, purpose) {
            (Some((_, bit)), _) => keys |= 0x8000 >> bit,
            (None, Some((_, name))) if purposes.contains(name) => {}
            (None, Some((_, name))) => purposes.push(name),
            (None, None) => return Err((*usage).to_string()),
        }
    }

    let mut names: Vec<Vec<u8>> = purposes.iter().map(|name| der::identifier(name)).collect();
    names.sort();
    let purposes = (!names.is_empty()).then(|| der::value(0x30, &names.concat()));

    Ok(((keys != 0).then(|| bits(keys)), purposes))
}

/// A bit string without trailing zeros.
fn bits(keys: u16) -> Vec<u8> {
    let [first, second] = keys.to_be_bytes();
    let (bytes, last): (&[u8], u8) = if second == 0 {
        (&[first], first)
    } else {
        (&[first, second], second)
    };
    der::bits(
        bytes,
        u8::try_from(last.trailing_zeros()).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usages_become_bits_and_names() {
        let check = |usages: &[&str], keys: Option<&[u8]>, purposes: usize| {
            let (found, names) = encode(usages).unwrap();
            assert_eq!(found.as_deref(), keys, "{usages:?}");
            assert_eq!(
                names.map(|names| names.len()).unwrap_or_default(),
                purposes,
                "{usages:?}"
            );
        };

        check(
            &["digital signature", "key encipherment"],
            Some(&[3, 2, 5, 0xa0]),
            0,
        );

        check(&["signing", "digital signature"], Some(&[3, 2, 7, 0x80]), 0);
        check(&["decipher only"], Some(&[3, 3, 7, 0, 0x80]), 0);
        check(&["client auth"], None, 12);
        check(&["email protection", "s/mime"], None, 12);
        assert_eq!(encode(&["fly"]).unwrap_err(), "fly");
    }
}
