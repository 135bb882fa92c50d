//! Serializes with serde into a tree.

use serde::Serialize;
use serde::ser::{self, Impossible, Serializer};

use super::TypedError;
use crate::{Map, Text, Value};

/// Serializes into a tree.
pub(super) struct TreeWriter;

impl Serializer for TreeWriter {
    type Ok = Value;
    type Error = TypedError;
    type SerializeSeq = List;
    type SerializeTuple = List;
    type SerializeTupleStruct = List;
    type SerializeTupleVariant = Impossible<Value, TypedError>;
    type SerializeMap = Members;
    type SerializeStruct = Members;
    type SerializeStructVariant = Impossible<Value, TypedError>;

    fn serialize_bool(self, flag: bool) -> Result<Value, TypedError> {
        Ok(Value::Bool(flag))
    }

    fn serialize_i8(self, number: i8) -> Result<Value, TypedError> {
        Ok(Value::Int(i64::from(number)))
    }

    fn serialize_i16(self, number: i16) -> Result<Value, TypedError> {
        Ok(Value::Int(i64::from(number)))
    }

    fn serialize_i32(self, number: i32) -> Result<Value, TypedError> {
        Ok(Value::Int(i64::from(number)))
    }

    fn serialize_i64(self, number: i64) -> Result<Value, TypedError> {
        Ok(Value::Int(number))
    }

    fn serialize_u8(self, number: u8) -> Result<Value, TypedError> {
        Ok(Value::Int(i64::from(number)))
    }

    fn serialize_u16(self, number: u16) -> Result<Value, TypedError> {
        Ok(Value::Int(i64::from(number)))
    }

    fn serialize_u32(self, number: u32) -> Result<Value, TypedError> {
        Ok(Value::Int(i64::from(number)))
    }

    fn serialize_u64(self, number: u64) -> Result<Value, TypedError> {
        i64::try_from(number)
            .map(Value::Int)
            .map_err(|_| ser::Error::custom(format!("{number} does not fit 64 bits")))
    }

    fn serialize_f32(self, number: f32) -> Result<Value, TypedError> {
        self.serialize_f64(f64::from(number))
    }

    fn serialize_f64(self, number: f64) -> Result<Value, TypedError> {
        if number.is_finite() {
            Ok(Value::Float(number))
        } else {
            Err(ser::Error::custom("JSON has no such number"))
        }
    }

    fn serialize_char(self, character: char) -> Result<Value, TypedError> {
        let mut text = Text::default();
        text.push(character);
        Ok(Value::String(text))
    }

    fn serialize_str(self, text: &str) -> Result<Value, TypedError> {
        Ok(Value::string(text))
    }

    fn serialize_bytes(self, _bytes: &[u8]) -> Result<Value, TypedError> {
        Err(ser::Error::custom("bytes are base64 text in an object"))
    }

    fn serialize_none(self) -> Result<Value, TypedError> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, TypedError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, TypedError> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Value, TypedError> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _at: u32,
        variant: &'static str,
    ) -> Result<Value, TypedError> {
        Ok(Value::string(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, TypedError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _at: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, TypedError> {
        let mut map = Map::new();
        map.insert(variant, value.serialize(TreeWriter)?);
        Ok(Value::Object(map))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<List, TypedError> {
        Ok(List(Vec::with_capacity(len.unwrap_or_default())))
    }

    fn serialize_tuple(self, len: usize) -> Result<List, TypedError> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_struct(self, _name: &'static str, len: usize) -> Result<List, TypedError> {
        self.serialize_seq(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _at: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Self::SerializeTupleVariant, TypedError> {
        Err(ser::Error::custom(format!(
            "no object has a form for the variant {variant}"
        )))
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Members, TypedError> {
        Ok(Members {
            members: Vec::with_capacity(len.unwrap_or_default()),
            name: Text::default(),
        })
    }

    fn serialize_struct(self, _name: &'static str, len: usize) -> Result<Members, TypedError> {
        self.serialize_map(Some(len))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _at: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Self::SerializeStructVariant, TypedError> {
        Err(ser::Error::custom(format!(
            "no object has a form for the variant {variant}"
        )))
    }
}

pub(super) struct List(Vec<Value>);

impl ser::SerializeSeq for List {
    type Ok = Value;
    type Error = TypedError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TypedError> {
        self.0.push(value.serialize(TreeWriter)?);
        Ok(())
    }

    fn end(self) -> Result<Value, TypedError> {
        Ok(Value::Array(self.0))
    }
}

impl ser::SerializeTuple for List {
    type Ok = Value;
    type Error = TypedError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TypedError> {
        ser::SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<Value, TypedError> {
        ser::SerializeSeq::end(self)
    }
}

impl ser::SerializeTupleStruct for List {
    type Ok = Value;
    type Error = TypedError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TypedError> {
        ser::SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<Value, TypedError> {
        ser::SerializeSeq::end(self)
    }
}

pub(super) struct Members {
    members: Vec<(Text, Value)>,
    name: Text,
}

impl ser::SerializeMap for Members {
    type Ok = Value;
    type Error = TypedError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), TypedError> {
        match key.serialize(TreeWriter)? {
            Value::String(name) => {
                self.name = name;
                Ok(())
            }
            other => Err(ser::Error::custom(format!(
                "a member's name is a string, not {}",
                other.type_name()
            ))),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), TypedError> {
        let value = value.serialize(TreeWriter)?;
        self.members.push((std::mem::take(&mut self.name), value));
        Ok(())
    }

    fn end(self) -> Result<Value, TypedError> {
        Ok(Value::Object(Map::from_members(self.members)))
    }
}

impl ser::SerializeStruct for Members {
    type Ok = Value;
    type Error = TypedError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), TypedError> {
        let value = value.serialize(TreeWriter)?;
        self.members.push((Text::const_new(name), value));
        Ok(())
    }

    fn end(self) -> Result<Value, TypedError> {
        Ok(Value::Object(Map::from_members(self.members)))
    }
}
