//! Queries over the network by a stub resolver, as programs use it.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

use std::net::{IpAddr, SocketAddr};

use coracle_api::codec::json;
use coracle_dns::Customization;
use coracle_dns::server::{Handler, Sockets, Upstream};
use coracle_dns::zone::facts::{Service, Slice};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_server::net::runtime::TokioRuntimeProvider;
use hickory_server::proto::rr::{Name, RecordType};
use tokio::task::JoinSet;

fn service(namespace: &str, name: &str, spec: &str) -> Service {
    let text =
        format!(r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}"}},"spec":{spec}}}"#);
    Service::read(&json::parse(text.as_bytes()).unwrap()).unwrap()
}

/// Pods of a headless Service, too many for a UDP response.
fn many_pods(count: u8) -> Slice {
    let endpoint =
        |last: u8| format!(r#"{{"addresses":["10.1.0.{last}"],"hostname":"pod-{last}"}}"#);
    let endpoints = (1..=count).map(endpoint).collect::<Vec<_>>().join(",");
    let text = format!(
        r#"{{"metadata":{{"name":"many-a","namespace":"shop","labels":{{"kubernetes.io/service-name":"many"}}}},
            "ports":[{{"name":"http","port":80}}],"endpoints":[{endpoints}]}}"#
    );
    Slice::read(&json::parse(text.as_bytes()).unwrap()).unwrap()
}

struct Running {
    at: SocketAddr,
    handler: Handler,
    _serving: JoinSet<()>,
}

async fn start(domain: &str, upstream: &[SocketAddr]) -> Running {
    let upstream = (!upstream.is_empty()).then(|| Upstream::of(upstream).unwrap());
    let handler = Handler::new(
        domain,
        vec!["10.0.0.10".parse().unwrap()],
        upstream,
        &coracle_metrics::Registry::default(),
    );
    let sockets = Sockets::open(&["127.0.0.1:0".parse().unwrap()])
        .await
        .unwrap();
    let at = sockets.addresses().unwrap()[0];
    let mut serving = JoinSet::new();
    serving.spawn(sockets.serve(handler.clone()));

    Running {
        at,
        handler,
        _serving: serving,
    }
}

fn stub(at: SocketAddr) -> TokioResolver {
    let mut ways = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    ways.iter_mut().for_each(|way| way.port = at.port());
    let config =
        ResolverConfig::from_name_servers(vec![NameServerConfig::new(at.ip(), true, ways)]);
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    builder.options_mut().cache_size = 0;
    builder.build().unwrap()
}

async fn ask(at: SocketAddr, name: &str, kind: RecordType) -> Result<Vec<String>, String> {
    match stub(at).lookup(Name::from_utf8(name).unwrap(), kind).await {
        Ok(found) => Ok(found
            .answers()
            .iter()
            .map(|record| record.data.to_string())
            .collect()),
        Err(error) if error.is_nx_domain() => Err("no such name".to_owned()),
        Err(error) if error.is_no_records_found() => Err("nothing".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

async fn address(at: SocketAddr, name: &str) -> Result<Vec<String>, String> {
    ask(at, name, RecordType::A).await
}

const WEB: &str =
    r#"{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ports":[{"name":"http","port":80}]}"#;

#[tokio::test]
async fn a_stub_resolver_finds_services_pods_and_ports() {
    let cluster = start("cluster.local", &[]).await;
    cluster.handler.change(|zone| {
        zone.add_namespace("shop");
        zone.set_service(service("shop", "web", WEB));
        zone.set_service(service("shop", "many", r#"{"clusterIP":"None"}"#));
        zone.set_slice(many_pods(250));
    });

    cluster.handler.set_complete();
    assert_eq!(
        address(cluster.at, "web.shop.svc.cluster.local.").await,
        Ok(vec!["10.0.0.1".to_owned()])
    );

    assert_eq!(
        address(cluster.at, "WEB.shop.svc.Cluster.Local.").await,
        Ok(vec!["10.0.0.1".to_owned()])
    );

    assert_eq!(
        address(cluster.at, "nope.shop.svc.cluster.local.").await,
        Err("no such name".to_owned())
    );

    assert_eq!(
        address(cluster.at, "shop.svc.cluster.local.").await,
        Err("nothing".to_owned())
    );

    // Too large for UDP: the stub retries over TCP.
    assert_eq!(
        address(cluster.at, "many.shop.svc.cluster.local.")
            .await
            .map(|all| all.len()),
        Ok(250)
    );

    let port = ask(
        cluster.at,
        "_http._tcp.web.shop.svc.cluster.local.",
        RecordType::SRV,
    )
    .await;

    assert_eq!(
        port,
        Ok(vec!["0 100 80 web.shop.svc.cluster.local.".to_owned()])
    );

    let name = ask(cluster.at, "7.0.1.10.in-addr.arpa.", RecordType::PTR).await;
    assert_eq!(
        name,
        Ok(vec!["pod-7.many.shop.svc.cluster.local.".to_owned()])
    );
}

#[tokio::test]
async fn other_names_are_forwarded_and_aliases_followed() {
    let other = start("example.com", &[]).await;
    other
        .handler
        .change(|zone| zone.set_service(service("bank", "pay", WEB)));
    other.handler.set_complete();
    let cluster = start("cluster.local", &[other.at]).await;

    let alias = |to: &str| format!(r#"{{"type":"ExternalName","externalName":"{to}"}}"#);
    cluster.handler.change(|zone| {
        zone.set_service(service("shop", "bank", &alias("pay.bank.svc.example.com")));
        zone.set_service(service(
            "shop",
            "near",
            &alias("bank.shop.svc.cluster.local"),
        ));

        zone.set_service(service(
            "shop",
            "round",
            &alias("round.shop.svc.cluster.local"),
        ));
    });

    cluster.handler.set_complete();
    let there = Ok(vec!["10.0.0.1".to_owned()]);
    assert_eq!(
        address(cluster.at, "pay.bank.svc.example.com.").await,
        there
    );

    assert_eq!(
        address(cluster.at, "none.bank.svc.example.com.").await,
        Err("no such name".to_owned())
    );

    let only_addresses = |found: Result<Vec<String>, String>| {
        found.map(|all| {
            all.into_iter()
                .filter(|text| text.parse::<IpAddr>().is_ok())
                .collect::<Vec<_>>()
        })
    };

    assert_eq!(
        only_addresses(address(cluster.at, "bank.shop.svc.cluster.local.").await),
        there
    );

    assert_eq!(
        only_addresses(address(cluster.at, "near.shop.svc.cluster.local.").await),
        there
    );

    assert!(
        address(cluster.at, "round.shop.svc.cluster.local.")
            .await
            .is_err()
    );

    // A server without upstream servers refuses at once.
    assert!(
        address(other.at, "web.shop.svc.cluster.local.")
            .await
            .is_err()
    );
}

#[tokio::test]
async fn no_nxdomain_before_the_zone_is_complete() {
    let cluster = start("cluster.local", &[]).await;
    let early = address(cluster.at, "web.shop.svc.cluster.local.").await;
    assert_ne!(early, Err("no such name".to_owned()));
    assert!(early.is_err());
    cluster.handler.set_complete();
    assert_eq!(
        address(cluster.at, "web.shop.svc.cluster.local.").await,
        Err("no such name".to_owned())
    );
}

#[tokio::test]
async fn an_administrator_adds_hosts_and_the_servers_of_domains() {
    let [of_domain, of_others, usual] = [
        start("acme.local", &[]).await,
        start("example.com", &[]).await,
        start("example.com", &[]).await,
    ];
    for (server, address) in [
        (&of_domain, "10.0.0.1"),
        (&of_others, "10.0.0.2"),
        (&usual, "10.0.0.3"),
    ] {
        let spec = WEB.replace("10.0.0.1", address);
        let add = |zone: &mut coracle_dns::Zone| {
            zone.set_service(service("shop", "web", &spec));
        };
        server.handler.change(add);
        server.handler.set_complete();
    }

    let cluster = start("cluster.local", &[usual.at]).await;
    cluster
        .handler
        .change(|zone| zone.set_service(service("shop", "web", WEB)));
    cluster.handler.set_complete();
    let check = async |name: &str, expected: Result<&[&str], &str>| {
        let expected = expected
            .map(|all| all.iter().map(|text| (*text).to_owned()).collect())
            .map_err(str::to_owned);
        assert_eq!(address(cluster.at, name).await, expected, "{name}");
    };
    check("web.shop.svc.example.com.", Ok(&["10.0.0.3"])).await;

    let stub_domains = format!(r#"{{"acme.local": ["{}"]}}"#, of_domain.at);
    let upstream = format!(r#"["{}"]"#, of_others.at);
    let hosts = "192.0.2.9 printer.acme.local printer.example.com\n\
                 192.0.2.10 web.shop.svc.cluster.local\nfd00::9 six.example.com\n";
    let data = [
        ("stubDomains", stub_domains.as_str()),
        ("upstreamNameservers", &upstream),
        ("hosts", hosts),
    ];
    let added = Customization::read(data.into_iter()).unwrap();
    cluster.handler.customize(added.clone()).unwrap();
    assert_eq!(cluster.handler.customization(), added);

    check("web.shop.svc.acme.local.", Ok(&["10.0.0.1"])).await;
    check("none.shop.svc.acme.local.", Err("no such name")).await;
    check("web.shop.svc.example.com.", Ok(&["10.0.0.2"])).await;
    check("Printer.acme.local.", Ok(&["192.0.2.9"])).await;
    check("printer.example.com.", Ok(&["192.0.2.9"])).await;
    check("six.example.com.", Err("nothing")).await;
    let name = ask(cluster.at, "9.2.0.192.in-addr.arpa.", RecordType::PTR).await;
    let names = ["printer.acme.local.", "printer.example.com."].map(str::to_owned);
    assert_eq!(name, Ok(names.to_vec()));
    // The cluster's own names are not to be taken over.
    check("web.shop.svc.cluster.local.", Ok(&["10.0.0.1"])).await;

    cluster.handler.customize(Customization::default()).unwrap();
    check("web.shop.svc.example.com.", Ok(&["10.0.0.3"])).await;
    check("printer.example.com.", Err("no such name")).await;
}
