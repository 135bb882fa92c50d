use super::*;

fn pod_spec() -> Struct<'static> {
    BUILTIN.type_named("core.v1.PodSpec").unwrap()
}

#[test]
fn a_field_carries_its_facts() {
    let containers = pod_spec().field("containers").unwrap();
    assert!(containers.field.presence.required());
    assert!(!containers.field.presence.pointer());
    assert_eq!(containers.extra().list, Some(ListType::Map(vec![Text::const_new("name")].into())));
    assert_eq!(containers.extra().patch.merge_key.as_deref(), Some("name"));
    assert_eq!(containers.node().go_type(), "[]v1.Container");
    assert_eq!(pod_spec().tag("containers"), [2]);
    assert_eq!(pod_spec().field("restartPolicy").unwrap().extra().default.as_deref(), Some("\"Always\""));
    assert!(pod_spec().field("nothing").is_none());
}

#[test]
fn an_inlined_message_is_a_path_of_tags() {
    let volume = BUILTIN.type_named("core.v1.Volume").unwrap();
    assert_eq!(volume.tag("name"), [1]);
    assert_eq!(volume.tag("hostPath"), [2, 1]);
}

#[test]
fn kinds_and_resources_are_found_by_name() {
    let kind = BUILTIN.kind_of("apps/v1", "Deployment").unwrap();
    assert_eq!(kind.api_version(), "apps/v1");
    assert_eq!(BUILTIN.root(kind).short_name(), "Deployment");
    let resource = BUILTIN.resource("apps", "v1", "deployments").unwrap();
    assert_eq!(resource.short_names.as_ref(), ["deploy"]);
    assert!(BUILTIN.kind_of("apps/v9", "Deployment").is_none());
    assert!(BUILTIN.resource("", "v1", "gizmos").is_none());
}

#[test]
fn every_gate_a_field_names_is_known_or_long_gone() {
    // Always on since before v1.36, or named in a comment only: the field is kept.
    const GONE: [&str; 3] = ["CSIStorageCapacity", "TopologyAwareHints", "PodCertificateProjection"];
    for of in BUILTIN.structs() {
        for field in of.iter() {
            for name in field.extra().gates.iter() {
                let known = gate(name).is_some() || GONE.contains(&name.as_str());
                assert!(known, "{}.{}: gate {name}", of.declared.name, field.name());
            }
        }
    }
}
