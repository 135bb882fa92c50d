//! Properties of schemas and values for any input.

use crate::Value;
use crate::codec::json;
use crate::schema::check::{self, Demands};
use crate::schema::{Node, Props, Schema};
use crate::value::Path;

/// Bytes are JSON with a `schema` and a `value`, or anything else: nothing panics, pruning and
/// defaulting are idempotent, and pruning keeps everything that the schema declares.
pub fn schema(data: &[u8]) {
    let Ok(tree) = json::parse(data) else { return };
    let props = Props::of(tree.get("schema").unwrap_or(&tree));
    let value = tree.get("value").unwrap_or(&tree);
    let errors = check::schema(
        props,
        data.len().is_multiple_of(2),
        Demands::ALL,
        &Path::Root.field("s"),
    )
    .errors;

    Demands::after(&[props]);
    let Ok(compiled) = Schema::new(props) else {
        assert!(
            !errors.is_empty(),
            "a schema that is in order can be compiled"
        );
        return;
    };

    let mut object = value.clone();
    compiled.prune(&mut object);
    keeps_what_is_declared(&compiled, compiled.root(), value, &object, true);
    assert!(
        compiled.prune(&mut object).is_empty(),
        "pruning once is enough"
    );

    compiled.prune_nulls(&mut object);
    let mut coerced = object.clone();
    if compiled.coerce(&mut coerced, false).is_ok() {
        object = coerced;
    }

    compiled.default(&mut object).expect("defaults are small");
    let mut again = object.clone();
    compiled.default(&mut again).expect("defaults are small");
    assert_eq!(again, object, "defaulting once is enough");

    compiled.validate(&object, &Path::Root);
    compiled.validate(value, &Path::Root.field("status"));
    compiled.validate_update(&object, value, &Path::Root);
    compiled.validate_embedded(&object);
    compiled.validate_lists(&object);
}

fn keeps_what_is_declared(
    schema: &Schema,
    node: &Node,
    before: &Value,
    after: &Value,
    resource: bool,
) {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else {
        return;
    };
    for property in node.properties.iter() {
        let meta = resource && matches!(property.name.as_str(), "apiVersion" | "kind" | "metadata");
        if let Some(before) = before.get(&property.name).filter(|_| !meta) {
            let after = after.get(&property.name).expect("what is named is kept");
            keeps_what_is_declared(schema, schema.node(property.node), before, after, false);
        }
    }
}
