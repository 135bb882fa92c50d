//! The request bodies of the corpus.

use coracle_api::codec::json;
use coracle_api::patch;
use coracle_api::{Text, Value};

/// The request's body.
pub(crate) fn body(head: &Value, case: &Value) -> String {
    if let Some(raw) = case.get("raw") {
        return text_of(&expand(raw));
    }

    let object = match case.get("object") {
        Some(object) => object.clone(),
        None => head
            .at(&["bases", &text_of(case.get("base").unwrap()), "object"])
            .unwrap()
            .clone(),
    };

    let operations = case.get("patch").map_or(Value::Array(vec![]), expand);
    let patch = patch::json::decode_lenient(&json::to_vec(&operations)).unwrap();
    let mut object = patch.apply(object).unwrap();
    if let Some(pointer) = case.get("dup") {
        write_twice(&mut object, &text_of(pointer));
    }

    json::to_string(&object).replace(TWICE, "")
}

/// Marks the second of two members with one name, until it is encoded.
const TWICE: &str = "@@twice@@";

fn write_twice(object: &mut Value, pointer: &str) {
    let (parents, last) = pointer.rsplit_once('/').unwrap();
    let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
    let parent = parents
        .split('/')
        .skip(1)
        .fold(object, |value, part| match value {
            Value::Array(items) => &mut items[part.parse::<usize>().unwrap()],
            other => other
                .as_object_mut()
                .unwrap()
                .get_mut(&unescaped(part))
                .unwrap(),
        });

    let parent = parent.as_object_mut().unwrap();
    let value = parent.get(&unescaped(last)).unwrap().clone();
    parent.insert(format!("{TWICE}{}", unescaped(last)), value);
}

/// `{"$rep": ["a", "x", 300]}` is `a` and 300 times `x`; `{"$list": [n, element]}` is n copies, `#`
/// the index.
fn expand(value: &Value) -> Value {
    match value {
        Value::Object(map) if map.len() == 1 && map.contains_key("$rep") => {
            let parts = map.get("$rep").and_then(Value::as_array).unwrap();
            let times = |place: usize| parts.get(place + 1).and_then(Value::as_int).unwrap_or(1);
            let texts = parts
                .iter()
                .enumerate()
                .filter(|(_, part)| part.as_int().is_none());

            let texts = texts
                .map(|(place, part)| text_of(part).repeat(usize::try_from(times(place)).unwrap()));

            Value::string(texts.collect::<String>())
        }
        Value::Object(map) if map.len() == 1 && map.contains_key("$list") => {
            let [count, element] = map.get("$list").and_then(Value::as_array).unwrap() else {
                panic!("a pair")
            };
            let element = json::to_string(element);
            let copies =
                (0..count.as_int().unwrap()).map(|index| element.replace('#', &index.to_string()));

            Value::Array(
                copies
                    .map(|copy| json::parse_literal(copy.as_bytes()).unwrap())
                    .collect(),
            )
        }
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| (Text::new(name), expand(value)))
            .collect::<coracle_api::Map>()
            .into(),
        Value::Array(items) => Value::Array(items.iter().map(expand).collect()),
        other => other.clone(),
    }
}

/// A string, however it was written.
pub(crate) fn text_of(value: &Value) -> String {
    json::parse(&json::to_vec(value))
        .unwrap()
        .as_str()
        .unwrap()
        .to_string()
}
