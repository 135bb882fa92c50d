//! Cost of decoding and encoding a typical running Pod, compared with `serde_json` and typed
//! structs in the same run.

mod measure;

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Struct};
use coracle_api::codec::{canonical, json, protobuf, yaml};
use coracle_api::typed;
use k8s_openapi::api::core::v1::Pod;
use measure::{Case, POD, measure};

/// Index of the first encoding case. Each half starts with the baseline that the others are
/// compared with.
const FIRST_ENCODER: usize = 8;

fn main() {
    let of: Struct<'static> =
        BUILTIN.root(BUILTIN.kind_of("v1", "Pod").expect("Pods are built in"));
    let decode = || {
        json::decode(POD, Some(of.node()))
            .expect("the fixture decodes")
            .value
    };
    let tree = decode();
    let bytes = protobuf::encode(&tree, of).expect("the fixture encodes");

    let yaml_text = yaml::print(&tree);

    let serde_tree: serde_json::Value = serde_json::from_slice(POD).expect("JSON");
    let pod: Pod = serde_json::from_slice(POD).expect("a Pod");
    let mut canonical_tree = tree.clone();
    canonical::canonicalize(&mut canonical_tree, of.node());

    let cases = vec![
        Case::new("serde_json::Value  decode", || {
            serde_json::from_slice::<serde_json::Value>(POD)
        }),
        Case::new("k8s-openapi Pod    decode", || {
            serde_json::from_slice::<Pod>(POD)
        }),
        Case::new("json               decode", decode),
        Case::new("json untyped       decode", || json::parse(POD)),
        Case::new("protobuf           decode", || {
            protobuf::decode(&bytes, &BUILTIN)
        }),
        Case::new("yaml               decode", || {
            yaml::decode(yaml_text.as_bytes())
        }),
        Case::new("tree to typed Pod", || typed::from_tree::<Pod>(&tree)),
        Case::new("canonical form, settled", || {
            let mut value: Value = canonical_tree.clone();
            canonical::canonicalize(&mut value, of.node());
            value
        }),
        Case::new("serde_json::Value  encode", || {
            serde_json::to_vec(&serde_tree)
        }),
        Case::new("k8s-openapi Pod    encode", || serde_json::to_vec(&pod)),
        Case::new("json               encode", || json::to_vec(&tree)),
        Case::new("protobuf           encode", || protobuf::encode(&tree, of)),
        Case::new("yaml               encode", || yaml::print(&tree)),
    ];

    let about = format!(
        "a Pod of {} bytes JSON, {} protobuf, {} YAML",
        POD.len() - 1,
        bytes.len(),
        yaml_text.len()
    );

    measure(&about, cases, |place, cases| {
        let peer = &cases[if place < FIRST_ENCODER {
            0
        } else {
            FIRST_ENCODER
        }];

        format!(
            "  {:5.2}x of serde_json::Value",
            cases[place].micros() / peer.micros()
        )
    });
}
