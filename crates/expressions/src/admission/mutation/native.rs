//! Apply configurations as trees.
//!
//! Upstream converts the fields of an object, their elements and members, but not what is in a list
//! or map literal below those: such values, and those that JSON does not have, are foreign to
//! the merge, which refuses them.

use coracle_api::apply::{Element, Foreign};
use coracle_api::{Map as Members, Text, Value as Tree};
use coracle_cel::value::{List, Map, Object, Value, shown};

/// A configuration.
pub(super) struct Configuration {
    pub(super) value: Tree,
    /// Places of values that no object can have.
    pub(super) foreign: Vec<Foreign>,
}

/// No object nests deeper than this; a value that does is foreign.
const DEEPEST: usize = 100;

/// What stands for a foreign value: any scalar.
const PLACEHOLDER: Tree = Tree::Bool(false);

/// The configuration that an object is. `None`: it is none, or a map in it has other keys than
/// strings.
pub(super) fn configuration(made: &Value<'_>) -> Option<Configuration> {
    let Value::Object(object) = made else {
        return None;
    };
    let mut converter = Converter::default();
    let value = converter.object(object)?;
    Some(Configuration {
        value,
        foreign: converter.foreign,
    })
}

#[derive(Default)]
struct Converter {
    path: Vec<Element>,
    foreign: Vec<Foreign>,
}

impl Converter {
    fn object(&mut self, object: &Object<'_>) -> Option<Tree> {
        let mut members = Vec::with_capacity(object.fields.len());
        for (name, value) in &object.fields {
            let value = self.below(Element::field(name), |it| it.field(value))?;
            members.push((Text::new(&**name), value));
        }
        Some(Tree::Object(Members::from_members(members)))
    }

    /// The value of a field.
    fn field(&mut self, value: &Value<'_>) -> Option<Tree> {
        match value {
            Value::List(list @ (List::Slice(_) | List::Shared(_))) => self.items(list),
            Value::Map(map @ (Map::Entries(_) | Map::Shared(_))) => {
                let mut members = Vec::with_capacity(map.len());
                for index in 0..map.len() {
                    let (key, value) = map.entry(index)?;
                    let (name, value) = (Text::new(key.as_str()?), value.ok()?);
                    let value = self.below(Element::Field(name.clone()), |it| it.content(&value));
                    members.push((name, value));
                }
                Some(Tree::Object(Members::from_members(members)))
            }
            other => Some(self.content(other)),
        }
    }

    fn items(&mut self, list: &List<'_>) -> Option<Tree> {
        let mut items = Vec::with_capacity(list.len());
        for (index, item) in (0..).zip(list.iter()) {
            let item = item.ok()?;
            items.push(self.below(Element::Index(index), |it| it.content(&item)));
        }
        Some(Tree::Array(items))
    }

    /// What upstream's `Value()` returns.
    fn content(&mut self, value: &Value<'_>) -> Tree {
        if self.path.len() > DEEPEST {
            return self.foreign(value);
        }
        match value {
            Value::Bool(flag) => Tree::Bool(*flag),
            Value::Int(number) => Tree::Int(*number),
            Value::Double(number) => Tree::Float(*number),
            Value::String(text) => Tree::string(&**text),
            Value::List(List::Tree(tree)) | Value::Map(Map::Tree(tree)) => tree.json().clone(),
            Value::List(list @ List::Concat(_)) => {
                self.items(list).unwrap_or_else(|| self.foreign(value))
            }
            Value::Object(object) => match self.object(object) {
                Some(tree) => tree,
                None => self.foreign(value),
            },
            Value::Optional(None) => Tree::Null,
            Value::Optional(Some(inner)) => match &**inner {
                Value::Optional(_) => self.foreign(value),
                inner => self.content(inner),
            },
            other => self.foreign(other),
        }
    }

    fn foreign(&mut self, value: &Value<'_>) -> Tree {
        self.foreign.push(Foreign {
            path: self.path.clone(),
            go_type: go_type(value),
            shown: match value {
                Value::Null => "NULL_VALUE".to_owned(),
                other => shown(other),
            },
        });
        PLACEHOLDER
    }

    fn below<T>(&mut self, step: Element, work: impl FnOnce(&mut Converter) -> T) -> T {
        self.path.push(step);
        let result = work(self);
        self.path.pop();
        result
    }
}

/// Go's type of what is in a foreign value.
fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "structpb.NullValue",
        Value::Uint(_) => "uint64",
        Value::Bytes(_) => "[]uint8",
        Value::Timestamp(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::List(_) => "[]ref.Val",
        Value::Map(_) => "map[ref.Val]ref.Val",
        Value::Type(_) => "string",
        Value::Extra(extra) => match extra.type_name() {
            "kubernetes.Quantity" => "*resource.Quantity",
            "kubernetes.URL" => "*url.URL",
            other => other,
        },
        _ => "*types.Err",
    }
}
