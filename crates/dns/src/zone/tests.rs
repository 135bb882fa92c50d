use std::fmt::Write as _;

use coracle_api::Value;
use coracle_api::codec::json;

use super::answer::{Answer, Data, QueryType, answer};
use super::facts::{Key, Service, Slice};
use super::{Snapshot, Zone};

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

fn service(name: &str, spec: &str) -> Service {
    let text = format!(r#"{{"metadata":{{"name":"{name}","namespace":"shop"}},"spec":{spec}}}"#);
    Service::read(&tree(&text)).unwrap()
}

fn slice(name: &str, of: &str, rest: &str) -> Slice {
    let labels = format!(r#""labels":{{"kubernetes.io/service-name":"{of}"}}"#);
    let text = format!(r#"{{"metadata":{{"name":"{name}","namespace":"shop",{labels}}},{rest}}}"#);
    Slice::read(&tree(&text)).unwrap()
}

/// A web Service with both families, a headless database, and an ExternalName.
fn shop() -> Zone {
    let mut zone = Zone::default();
    zone.add_namespace("shop");
    let ports = r#"[{"name":"http","port":80},{"name":"dns","port":53,"protocol":"UDP"}]"#;
    zone.set_service(service(
        "web",
        &format!(r#"{{"type":"ClusterIP","clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","fd00::1"],"ports":{ports}}}"#),
    ));

    zone.set_service(service(
        "db",
        r#"{"clusterIP":"None","clusterIPs":["None"]}"#,
    ));

    zone.set_service(service(
        "empty",
        r#"{"clusterIP":"None","clusterIPs":["None"]}"#,
    ));

    zone.set_service(service(
        "bank",
        r#"{"type":"ExternalName","externalName":"Pay.Example.COM."}"#,
    ));

    let endpoints = r#"[
        {"addresses":["10.1.0.1"],"hostname":"db-0","conditions":{"ready":true}},
        {"addresses":["10.1.0.2"],"conditions":{}},
        {"addresses":["10.1.0.3"],"hostname":"db-2","conditions":{"ready":false}}]"#;

    zone.set_slice(slice(
        "db-a",
        "db",
        &format!(r#""ports":[{{"name":"sql","port":5432}}],"endpoints":{endpoints}"#),
    ));

    let six = r#""ports":[{"name":"sql","port":5432}],"endpoints":[{"addresses":["fd00::a"],"hostname":"db-0"}]"#;
    zone.set_slice(slice("db-b", "db", six));
    let slices_by_service =
        r#""ports":[{"name":"http","port":8080}],"endpoints":[{"addresses":["10.1.0.9"]}]"#;
    zone.set_slice(slice("web-a", "web", slices_by_service));

    zone
}

fn describe(answer: &Answer) -> String {
    let (records, additional) = match answer {
        Answer::Alias(name) => return format!("is {name}"),
        Answer::NoSuchName => return "no such name".to_owned(),
        Answer::NotOurs => return "not ours".to_owned(),
        Answer::Records {
            records,
            additional,
        } => (records, additional),
    };

    let one = |data: &Data| match data {
        Data::Address(address) => address.to_string(),
        Data::Port {
            weight,
            port,
            target,
        } => format!("{weight}/{port}/{target}"),
        Data::Name(name) | Data::NameServer(name) => name.clone(),
        Data::Text(text) => format!("{text:?}"),
        Data::Authority => "SOA".to_owned(),
    };

    let mut text = records.iter().map(one).collect::<Vec<_>>().join(" ");
    for (name, address) in additional {
        write!(text, " +{name}={address}").unwrap();
    }

    text
}

#[track_caller]
fn check(zone: &Zone, name: &str, query_type: QueryType, expected: &str) {
    let own = ["10.0.0.10".parse().unwrap()];
    assert_eq!(
        describe(&answer(zone, "cluster.local", &own, name, query_type)),
        expected,
        "{name} {query_type:?}"
    );
}

#[test]
fn cluster_names_are_answered_as_specified() {
    use QueryType::{A, Aaaa, Any, Ns, Other, Soa, Srv, Txt};

    let zone = shop();
    for (name, query_type, expected) in [
        ("web.shop.svc.cluster.local", A, "10.0.0.1"),
        ("web.shop.svc.cluster.local", Aaaa, "fd00::1"),
        ("web.shop.svc.cluster.local", Any, "10.0.0.1 fd00::1"),
        ("web.shop.svc.cluster.local", Txt, ""),
        ("web.shop.svc.cluster.local", Other, ""),
        ("web.other.svc.cluster.local", A, "no such name"),
        ("none.shop.svc.cluster.local", A, "no such name"),
        ("web.shop.svc.cluster.locally", A, "not ours"),
        ("web.shop.svc.mycluster.local", A, "not ours"),
        ("web.shop.cluster.local", A, "no such name"),
        ("db.shop.svc.cluster.local", A, "10.1.0.1 10.1.0.2"),
        ("db.shop.svc.cluster.local", Aaaa, "fd00::a"),
        ("empty.shop.svc.cluster.local", A, "no such name"),
        ("db-0.db.shop.svc.cluster.local", A, "10.1.0.1"),
        ("db-0.db.shop.svc.cluster.local", Aaaa, "fd00::a"),
        ("10-1-0-2.db.shop.svc.cluster.local", A, "10.1.0.2"),
        ("10-1-0-1.db.shop.svc.cluster.local", A, "no such name"),
        ("db-2.db.shop.svc.cluster.local", A, "no such name"),
        ("10-1-0-9.web.shop.svc.cluster.local", A, "10.1.0.9"),
        ("a.b.c.web.shop.svc.cluster.local", A, "no such name"),
        ("bank.shop.svc.cluster.local", A, "is pay.example.com"),
        ("x.bank.shop.svc.cluster.local", A, "no such name"),
        ("10-9-8-7.shop.pod.cluster.local", A, "10.9.8.7"),
        ("10-9-8-7.shop.pod.cluster.local", Aaaa, ""),
        ("fd00--7.shop.pod.cluster.local", Aaaa, "fd00::7"),
        ("10-9-8-7.other.pod.cluster.local", A, "no such name"),
        ("10-9-8.shop.pod.cluster.local", A, "no such name"),
        ("shop.svc.cluster.local", A, ""),
        ("other.svc.cluster.local", A, "no such name"),
        ("svc.cluster.local", A, ""),
        ("cluster.local", Soa, "SOA"),
        ("cluster.local", Ns, "ns.dns.cluster.local"),
        ("cluster.local", A, ""),
        ("ns.dns.cluster.local", A, "10.0.0.10"),
        ("dns-version.cluster.local", Txt, "\"1.1.0\""),
        ("nothing.cluster.local", A, "no such name"),
        ("example.com", A, "not ours"),
        ("", Ns, "not ours"),
        (
            "_http._tcp.web.shop.svc.cluster.local",
            Srv,
            "100/80/web.shop.svc.cluster.local +web.shop.svc.cluster.local=10.0.0.1 \
             +web.shop.svc.cluster.local=fd00::1",
        ),
        ("_http._udp.web.shop.svc.cluster.local", Srv, "no such name"),
        ("_http._tcp.web.shop.svc.cluster.local", A, "10.0.0.1"),
        (
            "_sql._tcp.db.shop.svc.cluster.local",
            Srv,
            "33/5432/db-0.db.shop.svc.cluster.local 33/5432/10-1-0-2.db.shop.svc.cluster.local \
             33/5432/db-0.db.shop.svc.cluster.local +db-0.db.shop.svc.cluster.local=10.1.0.1 \
             +10-1-0-2.db.shop.svc.cluster.local=10.1.0.2 +db-0.db.shop.svc.cluster.local=fd00::a",
        ),
    ] {
        check(&zone, name, query_type, expected);
    }
}

#[test]
fn addresses_of_services_and_pods_have_names() {
    use QueryType::{A, Ptr};

    let zone = shop();
    let six = |digits: &str| format!("{digits}{}.0.0.d.f.ip6.arpa", ".0".repeat(27));
    for (name, query_type, expected) in [
        ("1.0.0.10.in-addr.arpa", Ptr, "web.shop.svc.cluster.local"),
        (
            "1.0.1.10.in-addr.arpa",
            Ptr,
            "db-0.db.shop.svc.cluster.local",
        ),
        (
            "2.0.1.10.in-addr.arpa",
            Ptr,
            "10-1-0-2.db.shop.svc.cluster.local",
        ),
        (
            "9.0.1.10.in-addr.arpa",
            Ptr,
            "10-1-0-9.web.shop.svc.cluster.local",
        ),
        ("1.0.0.10.in-addr.arpa", A, ""),
        ("3.0.1.10.in-addr.arpa", Ptr, "not ours"),
        ("0.1.10.in-addr.arpa", Ptr, "not ours"),
        (&six("a"), Ptr, "db-0.db.shop.svc.cluster.local"),
        (&six("1"), Ptr, "web.shop.svc.cluster.local"),
        (&six("12"), Ptr, "not ours"),
    ] {
        check(&zone, name, query_type, expected);
    }
}

#[test]
fn names_of_deleted_objects_disappear() {
    use QueryType::{A, Ptr};

    let key = |name: &str| Key {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    };

    let mut zone = shop();
    zone.remove_slice(&key("db-a"));
    check(&zone, "db.shop.svc.cluster.local", A, "");
    check(&zone, "1.0.1.10.in-addr.arpa", Ptr, "not ours");
    zone.remove_slice(&key("db-b"));
    check(&zone, "db.shop.svc.cluster.local", A, "no such name");

    // Another Service got the address before the first one's deletion was observed.
    let taken = r#"{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ports":[{"port":1}]}"#;
    zone.set_service(service("next", taken));
    zone.remove_service(&key("web"));

    check(&zone, "web.shop.svc.cluster.local", A, "no such name");
    check(&zone, "next.shop.svc.cluster.local", A, "10.0.0.1");
    check(
        &zone,
        "1.0.0.10.in-addr.arpa",
        Ptr,
        "next.shop.svc.cluster.local",
    );

    zone.remove_namespace("shop");
    check(&zone, "shop.svc.cluster.local", A, "no such name");
}

#[test]
fn a_zone_survives_saving_and_loading() {
    let before = shop().snapshot();
    let text = serde_json::to_vec(&before).unwrap();
    let after = Zone::from(serde_json::from_slice::<Snapshot>(&text).unwrap()).snapshot();
    assert_eq!(after, before);
    check(
        &Zone::from(after),
        "db-0.db.shop.svc.cluster.local",
        QueryType::A,
        "10.1.0.1",
    );
}
