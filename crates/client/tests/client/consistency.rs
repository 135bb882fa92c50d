//! The resource version semantics of lists: every cell of upstream's table, and every rejected
//! combination.

use coracle_api::codec::json;
use coracle_client::{Access, ListOptions, Resource};
use coracle_testkit::objects::config_map;
use coracle_testkit::store::embedded::files::SimulatedDisk;
use coracle_testkit::{Cluster, Setup, simulated};

/// Four objects, created one after the other, and the version at which there were three.
struct Fixture {
    cluster: Cluster,
    disk: SimulatedDisk,
    maps: Access,
    then: String,
}

impl Fixture {
    async fn new() -> Fixture {
        let disk = SimulatedDisk::default();
        let (cluster, maps) = start(&disk).await;

        let mut then = String::new();
        for name in ["a", "b", "c"] {
            then = maps
                .create(&config_map(name, "1"))
                .await
                .unwrap()
                .meta()
                .resource_version()
                .to_string();
        }

        maps.create(&config_map("d", "1")).await.unwrap();

        Fixture {
            cluster,
            disk,
            maps,
            then,
        }
    }

    /// Writes an object of another resource.
    async fn write_elsewhere(&self) {
        let secrets = Resource::builtin("", "v1", "secrets");
        let secrets = self
            .cluster
            .client()
            .resource(&secrets)
            .namespace("default");
        let secret = br#"{"apiVersion":"v1","kind":"Secret","metadata":{"generateName":"s-"}}"#;
        secrets.create(&json::parse(secret).unwrap()).await.unwrap();
    }

    /// Restarts the server.
    async fn restart(self) -> Fixture {
        self.cluster.stop().await;
        let (cluster, maps) = start(&self.disk).await;
        Fixture {
            cluster,
            maps,
            ..self
        }
    }

    /// The number of objects of a list and its version, or the error. A version is `then`, `0`, or
    /// literal.
    async fn list(&self, version: &str, matches: &str, limit: u32, continue_token: &str) -> String {
        let options = ListOptions {
            resource_version: if version == "then" {
                self.then.clone()
            } else {
                version.to_string()
            },
            resource_version_match: matches.to_string(),
            limit,
            continue_token: continue_token.to_string(),
            ..ListOptions::default()
        };

        match self.maps.list(&options).await {
            Ok(list) => {
                let at = if list.resource_version == self.then {
                    "then"
                } else {
                    "now"
                };

                let left = list
                    .remaining
                    .map(|left| format!(" of {left} more"))
                    .unwrap_or_default();

                format!("{}{left} {at}", list.items.len())
            }
            Err(error) => {
                let status = error.status().unwrap();
                let causes: Vec<&str> = status
                    .causes
                    .iter()
                    .map(|cause| cause.reason.as_str())
                    .collect();

                format!("{} {} {}", status.code, status.reason, causes.join(" "))
                    .trim_end()
                    .to_string()
            }
        }
    }
}

async fn start(disk: &SimulatedDisk) -> (Cluster, Access) {
    let cluster = Cluster::with(Setup {
        disk: disk.clone(),
        ..Setup::default()
    })
    .await;
    let maps = cluster
        .client()
        .resource(&Resource::builtin("", "v1", "configmaps"))
        .namespace("default");
    (cluster, maps)
}

#[tokio::test]
async fn how_new_a_list_is_follows_from_version_match_and_limit() {
    let fixture = Fixture::new().await;
    let check = async |version: &str, matches: &str, limit: u32, expected: &str| {
        assert_eq!(
            fixture.list(version, matches, limit, "").await,
            expected,
            "{version} {matches} {limit}"
        );
    };

    // Without a match: the newest, any, not older than; with a limit, exactly that version.
    check("", "", 0, "4 now").await;

    check("0", "", 0, "4 now").await;
    check("then", "", 0, "4 now").await;
    check("", "", 2, "2 of 2 more now").await;
    check("then", "", 2, "2 of 1 more then").await;

    // A limit may be ignored where any version is allowed.
    let any = fixture.list("0", "", 2, "").await;
    assert!(
        ["4 now", "2 of 2 more now"].contains(&any.as_str()),
        "{any}"
    );

    check("then", "Exact", 0, "3 then").await;
    check("then", "Exact", 2, "2 of 1 more then").await;
    check("then", "NotOlderThan", 0, "4 now").await;
    check("0", "NotOlderThan", 0, "4 now").await;

    for (version, matches) in [
        ("", "Exact"),
        ("0", "Exact"),
        ("", "NotOlderThan"),
        ("then", "Sometimes"),
    ] {
        let refused = fixture.list(version, matches, 0, "").await;
        assert!(
            refused.starts_with("422 Invalid"),
            "{version} {matches}: {refused}"
        );
    }

    fixture.cluster.stop().await;
}

#[tokio::test]
async fn the_pages_of_a_list_are_of_one_version_and_no_other_may_be_asked_for() {
    let fixture = Fixture::new().await;
    let first = ListOptions {
        limit: 1,
        resource_version: fixture.then.clone(),
        ..ListOptions::default()
    };

    let token = fixture
        .maps
        .list(&first)
        .await
        .unwrap()
        .continue_token
        .to_string();
    assert_eq!(fixture.list("", "", 0, &token).await, "2 then");

    assert_eq!(fixture.list("0", "", 0, &token).await, "2 then");
    assert_eq!(fixture.list("", "", 1, &token).await, "1 of 1 more then");
    assert_eq!(fixture.list("then", "", 0, &token).await, "400 BadRequest");

    for matches in ["Exact", "NotOlderThan"] {
        assert!(
            fixture
                .list("then", matches, 0, &token)
                .await
                .starts_with("422 Invalid")
        );
    }

    // A page of a resource that has not changed since expires like any other, though the cache has
    // what there was.
    let first = ListOptions {
        limit: 1,
        ..ListOptions::default()
    };
    let unchanged = fixture.maps.list(&first).await.unwrap();
    let unchanged = unchanged.continue_token.to_string();
    fixture.write_elsewhere().await;
    assert_eq!(fixture.list("", "", 0, &unchanged).await, "3 now");
    fixture.cluster.expire_versions().await;
    for (version, matches, token) in [
        ("then", "Exact", ""),
        ("", "", &token),
        ("", "", &unchanged),
    ] {
        let found = fixture.list(version, matches, 0, token).await;
        assert_eq!(found, "410 Expired", "{version} {token}");
    }

    let fixture = fixture.restart().await;
    assert_eq!(fixture.list("then", "Exact", 0, "").await, "410 Expired");
    assert_eq!(fixture.list("", "", 0, &token).await, "410 Expired");

    fixture.cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_does_not_exist_yet_is_waited_for_and_then_given_up() {
    let cluster = Cluster::with(Setup {
        world: simulated(1),
        bare: true,
        ..Setup::default()
    })
    .await;

    let maps = cluster
        .client()
        .resource(&Resource::builtin("", "v1", "configmaps"))
        .namespace("default");

    let future = ListOptions {
        resource_version: "1000000".to_string(),
        ..ListOptions::default()
    };

    let begun = tokio::time::Instant::now();
    let refused = maps.list(&future).await.unwrap_err();
    assert!(begun.elapsed().as_secs() >= 3);

    let status = refused.status().unwrap();
    assert_eq!((status.code, status.reason.as_str()), (504, "Timeout"));
    assert!(status.has_cause("ResourceVersionTooLarge"));
    assert_eq!(status.retry_after.map(|after| after.as_secs()), Some(1));

    cluster.kill().await;
}
