//! The encoding of messages: fields in order, numbers little-endian, strings and lists with a
//! length prefix.
//!
//! Implemented here to keep the supervisor small and without dependencies.

/// Bytes that are not a valid message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed message")]
pub struct Malformed;

/// A value that can be sent.
pub trait Wire: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(input: &mut &[u8]) -> Result<Self, Malformed>;
}

pub fn encode<T: Wire>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    value.put(&mut out);
    out
}

/// Decodes all of the bytes.
pub fn decode<T: Wire>(mut input: &[u8]) -> Result<T, Malformed> {
    let value = T::take(&mut input)?;
    if input.is_empty() {
        Ok(value)
    } else {
        Err(Malformed)
    }
}

fn bytes<'a>(input: &mut &'a [u8], count: usize) -> Result<&'a [u8], Malformed> {
    let (taken, rest) = input.split_at_checked(count).ok_or(Malformed)?;
    *input = rest;
    Ok(taken)
}

macro_rules! numbers {
    ($($kind:ty),*) => { $(
        impl Wire for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(input: &mut &[u8]) -> Result<Self, Malformed> {
                let taken = bytes(input, size_of::<Self>())?;
                Ok(Self::from_le_bytes(taken.try_into().expect("the slice has the requested length")))
            }
        }
    )* };
}
numbers!(u8, u16, u32, u64, i32, i64);

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn take(input: &mut &[u8]) -> Result<Self, Malformed> {
        match u8::take(input)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_length(self.len(), out);
        out.extend_from_slice(self.as_bytes());
    }
    fn take(input: &mut &[u8]) -> Result<Self, Malformed> {
        let length = take_length(input)?;
        String::from_utf8(bytes(input, length)?.to_vec()).map_err(|_| Malformed)
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_length(self.len(), out);
        self.iter().for_each(|value| value.put(out));
    }
    fn take(input: &mut &[u8]) -> Result<Self, Malformed> {
        // Grows as values are decoded: a wrong length allocates nothing.
        (0..take_length(input)?).map(|_| T::take(input)).collect()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn take(input: &mut &[u8]) -> Result<Self, Malformed> {
        if bool::take(input)? {
            T::take(input).map(Some)
        } else {
            Ok(None)
        }
    }
}

fn put_length(length: usize, out: &mut Vec<u8>) {
    u32::try_from(length)
        .expect("no message is that long")
        .put(out);
}

fn take_length(input: &mut &[u8]) -> Result<usize, Malformed> {
    u32::take(input).map(|length| length as usize)
}

/// A struct whose fields are sent in order.
macro_rules! record {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$field_about:meta])* pub $field:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$field_about])* pub $field: $kind,)* }

        impl $crate::protocol::wire::Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }
            fn take(input: &mut &[u8]) -> Result<Self, $crate::protocol::wire::Malformed> {
                Ok(Self { $($field: $crate::protocol::wire::Wire::take(input)?,)* })
            }
        }
    };
}

/// An enum that is sent as its tag and the fields of the variant.
macro_rules! choice {
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$variant_about:meta])* $tag:literal = $variant:ident { $($field:ident: $kind:ty),* },)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_about])* $variant { $($field: $kind),* },)* }

        impl $crate::protocol::wire::Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$variant { $($field),* } => {
                        out.push($tag);
                        $($field.put(out);)*
                    })*
                }
            }
            fn take(input: &mut &[u8]) -> Result<Self, $crate::protocol::wire::Malformed> {
                match u8::take(input)? {
                    $($tag => Ok($name::$variant { $($field: $crate::protocol::wire::Wire::take(input)?),* }),)*
                    _ => Err($crate::protocol::wire::Malformed),
                }
            }
        }
    };
}

pub(super) use {choice, record};

#[cfg(test)]
#[expect(unreachable_pub, reason = "the macros make public types")]
mod tests {
    use super::*;

    record! {
        pub struct Sample {
            pub name: String,
            pub numbers: Vec<u16>,
            pub maybe: Option<i64>,
        }
    }

    choice! {
        pub enum Either {
            1 = Left { of: Sample },
            2 = Right {},
        }
    }

    #[test]
    fn decode_reverses_encode() {
        let of = Sample {
            name: "ä".to_owned(),
            numbers: vec![1, 65535],
            maybe: Some(-3),
        };
        for either in [Either::Left { of }, Either::Right {}] {
            assert_eq!(decode(&encode(&either)), Ok(either));
        }
    }

    #[test]
    fn truncated_and_overlong_messages_are_refused() {
        let whole = encode(&Either::Left {
            of: Sample {
                name: "x".to_owned(),
                ..Sample::default()
            },
        });

        for cut in 0..whole.len() {
            assert_eq!(decode::<Either>(&whole[..cut]), Err(Malformed));
        }

        let mut longer = whole;
        longer.push(0);
        assert_eq!(decode::<Either>(&longer), Err(Malformed));
    }

    #[test]
    fn a_wrong_length_is_refused_without_allocation() {
        assert_eq!(
            decode::<Vec<u64>>(&[0xff, 0xff, 0xff, 0xff]),
            Err(Malformed)
        );
        assert_eq!(
            decode::<String>(&[0xff, 0xff, 0xff, 0x7f, b'a']),
            Err(Malformed)
        );
    }
}
