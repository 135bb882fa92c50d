//! The limit on the number of updaters.

use super::*;

fn data(keys: usize) -> String {
    let members: Vec<String> = (0..keys).map(|key| format!("k{key:02}: '1'")).collect();
    format!("{{data: {{{}}}}}", members.join(", "))
}

#[test]
fn the_oldest_updaters_are_merged() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    for writer in 0..10 {
        scenario.update(&format!("w{writer:02}"), &data(writer + 1));
    }

    assert_eq!(scenario.owners().len(), 10);

    scenario.update("w10", &data(11));
    let owners = scenario.owners();
    assert_eq!(owners.len(), 10);
    assert_eq!(
        owners[0],
        r#"ancient-changes Update +1 {"f:data":{".":{},"f:k00":{},"f:k01":{}}}"#
    );

    scenario.update("w11", &data(12));
    let owners = scenario.owners();
    assert_eq!(owners.len(), 10);
    assert_eq!(
        owners[0],
        r#"ancient-changes Update +2 {"f:data":{".":{},"f:k00":{},"f:k01":{},"f:k02":{}}}"#
    );
}

#[test]
fn appliers_are_not_counted() {
    let mut scenario = Scenario::of("v1", "ConfigMap");
    for writer in 0..20 {
        scenario
            .apply(
                &format!("a{writer:02}"),
                &format!("{{data: {{k{writer:02}: '1'}}}}"),
            )
            .unwrap();
    }
    assert_eq!(scenario.owners().len(), 20);
}

#[test]
fn each_version_has_its_own_ancient_changes() {
    let versions = ["v1", "v2"];
    let mut owners = Owners::default();
    for writer in 0..14usize {
        owners.set(Owner {
            manager: Manager {
                name: Text::new(format!("w{writer:02}")),
                operation: Operation::Update,
                api_version: Text::new(versions[writer % 2]),
                subresource: Text::default(),
            },
            time: Some(Timestamp::from_unix(i64::try_from(writer).unwrap(), 0)),
            fields: Set::of([FieldPath::fields(&[&format!("f{writer:02}")])]),
        });
    }

    owners.cap_updaters();

    let mut shown: Vec<String> = owners
        .iter()
        .filter(|owner| owner.manager.name == "ancient-changes")
        .map(|owner| {
            format!(
                "{} {}",
                owner.manager.api_version,
                fields_v1::encode(&owner.fields).as_str()
            )
        })
        .collect();
    shown.sort();

    assert_eq!(owners.iter().count(), 10);
    assert_eq!(
        shown,
        [
            r#"v1 {"f:f00":{},"f:f02":{},"f:f04":{}}"#,
            r#"v2 {"f:f01":{},"f:f03":{},"f:f05":{}}"#
        ]
    );
}

#[test]
fn thousands_of_updaters_are_merged_at_once() {
    let mut entries = Vec::new();
    for writer in 0..20_000usize {
        entries.push(Owner {
            manager: Manager {
                name: Text::new(format!("w{writer:05}")),
                operation: Operation::Update,
                api_version: Text::new("v1"),
                subresource: Text::default(),
            },
            time: None,
            fields: Set::of([FieldPath::fields(&[&format!("f{writer:05}")])]),
        });
    }

    let mut owners = Owners(entries);
    owners.cap_updaters();
    assert_eq!(owners.iter().count(), 10);

    let ancient = owners
        .iter()
        .find(|owner| owner.manager.name == "ancient-changes")
        .unwrap();
    assert_eq!(ancient.fields.len(), 19_991);
}
