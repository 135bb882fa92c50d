//! The user and groups named by the subject of a certificate or of a certificate request.
//!
//! The common name is the user, the organizations are the groups. All components use this parser:
//! the API server, the kubelet, the etcd API, and the approving and signing controllers. If two of
//! them parsed a subject differently, a certificate could be approved for one user and authenticate
//! as another.
//!
//! The subject is parsed from its DER as Go's `crypto/x509` parses that of a certificate: of
//! several common names the last one counts, and a subject with any unreadable attribute is refused
//! as a whole.

#[cfg(test)]
mod tests;

/// The subject of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateSubject {
    /// Empty: there is none.
    pub common_name: String,
    pub organizations: Vec<String>,
    /// UIDs of the user, from upstream's attribute for them.
    uids: Vec<String>,
}

/// A user as named by a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateUser {
    pub name: String,
    /// Empty: there is none.
    pub uid: String,
    pub groups: Vec<String>,
}

/// Why a certificate does not identify a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    #[error("x509: invalid RDNSequence")]
    Malformed,
    #[error("x509: invalid RDNSequence: invalid attribute value: {0}")]
    Text(#[from] TextError),
    #[error("UID cannot be an empty string")]
    EmptyUid,
    #[error("expected 1 UID, but found multiple")]
    SeveralUids,
}

/// Why the text of an attribute cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error("invalid {0}")]
    Invalid(&'static str),
    #[error("unsupported string type: {0}")]
    Unsupported(u8),
}

const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANIZATION: &[u8] = &[0x55, 4, 10];
/// 1.3.6.1.4.1.57683.2, upstream's attribute for a user's UID.
const UID: &[u8] = &[0x2b, 6, 1, 4, 1, 0x83, 0xc2, 0x53, 2];

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;

impl CertificateSubject {
    /// Parses a subject, a `Name` in DER.
    ///
    /// # Errors
    /// It is malformed, or the text of an attribute cannot be decoded.
    pub fn from_der(name: &[u8]) -> Result<CertificateSubject, SubjectError> {
        let mut subject = CertificateSubject::default();
        let mut sets = only(name, SEQUENCE)?;
        while !sets.is_empty() {
            let mut attributes = next(&mut sets, SET)?;
            while !attributes.is_empty() {
                let mut attribute = next(&mut attributes, SEQUENCE)?;
                let kind = next(&mut attribute, OBJECT_IDENTIFIER)?;
                let (tag, value) = any(&mut attribute)?;
                if !attribute.is_empty() || !is_identifier(kind) {
                    return Err(SubjectError::Malformed);
                }
                subject.add(kind, text(tag, value)?);
            }
        }

        Ok(subject)
    }

    fn add(&mut self, kind: &[u8], value: String) {
        match kind {
            COMMON_NAME => self.common_name = value,
            ORGANIZATION => self.organizations.push(value),
            UID => self.uids.push(value),
            _ => {}
        }
    }

    /// The user that the subject names; `None` without a common name.
    ///
    /// # Errors
    /// It is ambiguous which user it is.
    pub fn user(self) -> Result<Option<CertificateUser>, SubjectError> {
        if self.common_name.is_empty() {
            return Ok(None);
        }

        let mut uids = self.uids;
        let uid = match (uids.pop(), uids.is_empty()) {
            (None, _) => String::new(),
            (Some(_), false) => return Err(SubjectError::SeveralUids),
            (Some(uid), true) if uid.is_empty() => return Err(SubjectError::EmptyUid),
            (Some(uid), true) => uid,
        };

        Ok(Some(CertificateUser {
            name: self.common_name,
            uid,
            groups: self.organizations,
        }))
    }
}

/// The content of the one value in `der`.
fn only(mut der: &[u8], tag: u8) -> Result<&[u8], SubjectError> {
    let content = next(&mut der, tag)?;
    if der.is_empty() {
        Ok(content)
    } else {
        Err(SubjectError::Malformed)
    }
}

/// The content of the next value, which must have this tag.
fn next<'a>(der: &mut &'a [u8], tag: u8) -> Result<&'a [u8], SubjectError> {
    match any(der)? {
        (found, content) if found == tag => Ok(content),
        _ => Err(SubjectError::Malformed),
    }
}

/// Tag and content of the next value.
fn any<'a>(der: &mut &'a [u8]) -> Result<(u8, &'a [u8]), SubjectError> {
    /// With these bits the tag number follows in further bytes, which attributes never use.
    const LONG_TAG: u8 = 0x1f;

    let [tag, length, rest @ ..] = *der else {
        return Err(SubjectError::Malformed);
    };
    if tag & LONG_TAG == LONG_TAG {
        return Err(SubjectError::Malformed);
    }

    let (length, rest) = match length {
        0..=0x7f => (usize::from(*length), rest),
        // The bytes of the length follow; DER requires the shortest form.
        0x81..=0x84 => {
            let (bytes, rest) = rest
                .split_at_checked(usize::from(length & 0x7f))
                .ok_or(SubjectError::Malformed)?;

            let length = bytes
                .iter()
                .fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
            if bytes[0] == 0 || length < 0x80 {
                return Err(SubjectError::Malformed);
            }

            (length, rest)
        }
        _ => return Err(SubjectError::Malformed),
    };

    let (content, rest) = rest
        .split_at_checked(length)
        .ok_or(SubjectError::Malformed)?;
    *der = rest;

    Ok((*tag, content))
}

/// Whether the arcs of an object identifier are complete and minimally encoded: no attribute has
/// two encodings.
fn is_identifier(bytes: &[u8]) -> bool {
    let mut numbers = bytes.split_inclusive(|byte| byte & 0x80 == 0);
    bytes.last().is_some_and(|last| last & 0x80 == 0) && numbers.all(|number| number[0] != 0x80)
}

/// The text of a value, in the string types that Go supports.
fn text(tag: u8, value: &[u8]) -> Result<String, TextError> {
    let ascii = |name, fits: fn(&u8) -> bool| match value.iter().all(fits) {
        true => Ok(value.iter().map(|byte| char::from(*byte)).collect()),
        false => Err(TextError::Invalid(name)),
    };

    match tag {
        0x0c => String::from_utf8(value.to_vec()).map_err(|_| TextError::Invalid("UTF-8 string")),
        0x12 => ascii("NumericString", |byte| {
            byte.is_ascii_digit() || *byte == b' '
        }),
        0x13 => ascii("PrintableString", is_printable),
        // T.61 is treated as Latin-1, as other implementations do.
        0x14 => Ok(value.iter().map(|byte| char::from(*byte)).collect()),
        0x16 => ascii("IA5String", u8::is_ascii),
        0x1e => basic_plane(value).ok_or(TextError::Invalid("BMPString")),
        other => Err(TextError::Unsupported(other)),
    }
}

/// `*` and `&` do not belong to a PrintableString, but certificates have them there.
fn is_printable(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(byte)
}

/// Decodes UCS-2. A terminating zero is dropped; surrogates and noncharacters are refused.
fn basic_plane(value: &[u8]) -> Option<String> {
    let (pairs, rest) = value.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let pairs = pairs.strip_suffix(&[[0, 0]]).unwrap_or(pairs);
    let code = |pair: &[u8; 2]| match u16::from_be_bytes(*pair) {
        0xfffe | 0xffff | 0xfdd0..=0xfdef => None,
        other => char::from_u32(other.into()),
    };
    pairs.iter().map(code).collect()
}
