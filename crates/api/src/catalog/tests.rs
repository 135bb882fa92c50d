use super::*;

fn pod_spec() -> Struct<'static> {
    BUILTIN.type_named("core.v1.PodSpec").unwrap()
}

#[test]
fn fields_have_their_attributes() {
    let containers = pod_spec().field("containers").unwrap();
    assert!(containers.field.presence.required());
    assert!(!containers.field.presence.pointer());
    assert_eq!(
        containers.extra().list,
        Some(ListType::Map(vec![Text::const_new("name")].into()))
    );

    assert_eq!(containers.extra().patch.merge_key.as_deref(), Some("name"));
    assert_eq!(containers.node().go_type(), "[]v1.Container");

    assert_eq!(pod_spec().tag("containers"), [2]);
    assert_eq!(
        pod_spec()
            .field("restartPolicy")
            .unwrap()
            .extra()
            .default
            .as_deref(),
        Some("\"Always\"")
    );

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
fn every_gate_of_a_field_exists_or_was_removed() {
    // Always enabled since before v1.36, or named in a comment only: the field is kept.
    const GONE: [&str; 3] = [
        "CSIStorageCapacity",
        "TopologyAwareHints",
        "PodCertificateProjection",
    ];

    for of in BUILTIN.structs() {
        for field in of.iter() {
            for name in field.extra().gates.iter() {
                let known = gate(name).is_some() || GONE.contains(&name.as_str());
                assert!(known, "{}.{}: gate {name}", of.declared.name, field.name());
            }
        }
    }
}

#[test]
fn types_and_fields_have_descriptions() {
    let pod = BUILTIN.type_named("core.v1.Pod").unwrap();
    assert!(
        pod.description()
            .starts_with("Pod is a collection of containers"),
        "{}",
        pod.description()
    );

    assert_eq!(pod.definition_name(), "io.k8s.api.core.v1.Pod");

    let nodes = pod_spec().field("nodeName").unwrap();
    assert!(pod_spec().field_description(nodes).contains("node"));

    let crd = BUILTIN
        .type_named("apiextensions.v1.CustomResourceDefinition")
        .unwrap();
    assert_eq!(
        crd.definition_name(),
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
    );

    assert!(!crd.description().is_empty());

    for resource in BUILTIN.resources() {
        let of = BUILTIN.root(
            BUILTIN
                .kind(&resource.group, &resource.version, &resource.kind)
                .unwrap(),
        );
        assert!(!of.description().is_empty(), "{}", of.declared.name);

        for column in resource.columns.iter() {
            assert!(
                !column.description(of).is_empty(),
                "{} {}",
                resource.plural,
                column.name
            );
        }
    }
}

#[test]
fn the_whole_catalogue_is_smaller_than_four_mebibytes() {
    let of_page = |page: &Page| {
        size_of_val(&*page.types)
            + size_of_val(&*page.fields)
            + size_of_val(&*page.always)
            + size_of_val(&*page.wires)
            + size_of_val(&*page.items)
            + size_of_val(&*page.extras)
            + size_of_val(&*page.unions)
            + size_of_val(&*page.kinds)
            + size_of_val(&*page.resources)
    };

    let lists: usize = BUILTIN
        .extras
        .iter()
        .map(|extra| {
            size_of_val(&*extra.enumeration)
                + size_of_val(&*extra.known)
                + size_of_val(&*extra.gates)
        })
        .sum();

    let resources: usize = BUILTIN
        .resources
        .iter()
        .map(|r| {
            size_of_val(&*r.columns)
                + size_of_val(&*r.subresources)
                + size_of_val(&*r.selectable)
                + size_of_val(&*r.verbs)
        })
        .sum();

    let total = of_page(&BUILTIN) + lists + resources + describe::size();
    println!(
        "catalogue: {} KiB, of them descriptions {} KiB",
        total / 1024,
        describe::size() / 1024
    );

    assert!(total < 4 << 20, "{total} bytes");
}
