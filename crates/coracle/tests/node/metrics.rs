//! Metrics of all components: Prometheus scrapes them, promtool accepts each page, names and types
//! are upstream's, and the ports let in only those who may read them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::machine::{Machine, eventually};

const CORACLE: &str = env!("CARGO_BIN_EXE_coracle");

/// A component, and where its metrics are.
struct Target {
    job: &'static str,
    scheme: &'static str,
    address: String,
    path: &'static str,
}

fn target(job: &'static str, scheme: &'static str, address: &str) -> Target {
    Target {
        job,
        scheme,
        address: address.to_owned(),
        path: "/metrics",
    }
}

fn targets(machine: &Machine) -> Vec<Target> {
    let server = machine.kubectl("config view -o jsonpath={.clusters[0].cluster.server}");
    let dns = machine.kubectl(
        "get pods -n kube-system -l k8s-app=kube-dns -o jsonpath={.items[0].status.podIP}",
    );
    vec![
        target("apiserver", "https", server.trim_start_matches("https://")),
        target("kube-controller-manager", "https", "127.0.0.1:10257"),
        target("kube-scheduler", "https", "127.0.0.1:10259"),
        target("kubelet", "https", "127.0.0.1:10250"),
        target("kube-proxy", "http", "127.0.0.1:10249"),
        target("dns", "http", &format!("{dns}:9153")),
    ]
}

impl Target {
    fn page(&self, machine: &Machine) -> String {
        machine.run(
            "curl",
            &[
                &["--silent", "--fail"][..],
                &credentials(machine)
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>(),
                &[&format!("{}://{}{}", self.scheme, self.address, self.path)],
            ]
            .concat(),
        )
    }
}

/// Flags of curl: the certificate of the administrator, and the CA of the cluster.
fn credentials(machine: &Machine) -> [String; 6] {
    let pki = |name: &str| {
        machine
            .data_dir()
            .join("pki")
            .join(name)
            .display()
            .to_string()
    };
    [
        "--cert".to_owned(),
        pki("admin.crt"),
        "--key".to_owned(),
        pki("admin.key"),
        "--cacert".to_owned(),
        pki("ca.crt"),
    ]
}

struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn prometheus_scrapes_every_component() {
    let machine = Machine::new();
    machine.start();
    machine.kubectl("create deployment echo --image=coracle.local/echo --replicas=2");
    machine.kubectl("expose deployment echo --port=80 --target-port=8080");
    machine.kubectl("rollout status deployment/echo --timeout=300s");
    create_custom_resource(&machine);
    let targets = targets(&machine);

    check_pages(&machine, &targets);

    let _prometheus = start_prometheus(&machine, &targets);
    eventually("all targets are up", || {
        let up = query(&machine, "up");
        match up.len() == targets.len() && up.values().all(|value| value == "1") {
            true => Ok(()),
            false => Err(up),
        }
    });

    // Requests of custom resources are those of their group.
    let created = query(
        &machine,
        "apiserver_request_total{group=\"example.com\",resource=\"crons\",verb=\"POST\"}",
    );
    assert_eq!(created["apiserver"], "1");
    let stored = query(
        &machine,
        "apiserver_resource_objects{group=\"example.com\",resource=\"crons\"}",
    );
    assert_eq!(stored["apiserver"], "1");

    // What was scheduled is what is counted.
    let scheduled = query(
        &machine,
        "scheduler_schedule_attempts_total{result=\"scheduled\"}",
    );
    let count: f64 = scheduled["kube-scheduler"].parse().unwrap();
    assert!(count >= 3.0, "two pods and the DNS: {scheduled:?}");
}

/// Each page is accepted by promtool, has upstream's families only, and those that are named here.
fn check_pages(machine: &Machine, targets: &[Target]) {
    let facts = Facts::read();
    let mut seen = BTreeMap::new();
    for target in targets {
        let page = target.page(machine);
        check_with_promtool(machine, target, &page);
        let families = families(&page);
        facts.check(target, &families);
        seen.insert(
            target.job,
            families
                .keys()
                .map(|name| (*name).to_owned())
                .collect::<BTreeSet<_>>(),
        );
    }

    let probes = Target {
        job: "kubelet",
        path: "/metrics/probes",
        ..target("kubelet", "https", "127.0.0.1:10250")
    };
    let page = probes.page(machine);
    check_with_promtool(machine, &probes, &page);
    facts.check(&probes, &families(&page));
    assert!(
        page.contains("probe_type=\"Readiness\",result=\"successful\""),
        "{page}"
    );

    for (job, name) in [
        ("apiserver", "apiserver_request_total"),
        ("apiserver", "etcd_request_duration_seconds"),
        ("kube-controller-manager", "workqueue_depth"),
        (
            "kube-controller-manager",
            "workqueue_queue_duration_seconds",
        ),
        ("kube-controller-manager", "rest_client_requests_total"),
        ("kube-scheduler", "scheduler_schedule_attempts_total"),
        ("kube-scheduler", "scheduler_pending_pods"),
        ("kubelet", "kubelet_runtime_operations_total"),
        ("kubelet", "kubelet_running_pods"),
        ("kubelet", "kubelet_pod_start_sli_duration_seconds"),
        ("kubelet", "kubernetes_feature_enabled"),
        (
            "kube-scheduler",
            "scheduler_framework_extension_point_duration_seconds",
        ),
        ("kube-scheduler", "scheduler_queue_incoming_pods_total"),
        (
            "kube-proxy",
            "kubeproxy_network_programming_duration_seconds",
        ),
        (
            "apiserver",
            "apiserver_admission_controller_admission_duration_seconds",
        ),
        ("apiserver", "apiserver_request_filter_duration_seconds"),
        (
            "apiserver",
            "kube_apiserver_clusterip_allocator_allocated_ips",
        ),
        ("apiserver", "pod_security_evaluations_total"),
        ("apiserver", "serviceaccount_valid_tokens_total"),
        ("kube-proxy", "kubeproxy_sync_proxy_rules_duration_seconds"),
    ] {
        assert!(seen[job].contains(name), "{job}: {name}: {:?}", seen[job]);
    }
    for (job, names) in &seen {
        assert!(names.contains("process_cpu_seconds_total"), "{job}");
    }
}

/// A custom resource, and an object of it.
fn create_custom_resource(machine: &Machine) {
    let definition = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "crons.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster",
            "names": {"plural": "crons", "singular": "cron", "kind": "Cron"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}}"#;
    let object =
        r#"{"apiVersion": "example.com/v1", "kind": "Cron", "metadata": {"name": "nightly"}}"#;

    let create = |name: &str, text: &str| {
        let file = machine.folder().join(name);
        fs::write(&file, text).unwrap();
        machine.kubectl(&format!("create -f {}", file.display()));
    };
    create("definition.json", definition);
    machine.kubectl("wait --for=condition=Established crd/crons.example.com --timeout=60s");
    create("object.json", object);
}

fn start_prometheus(machine: &Machine, targets: &[Target]) -> Prometheus {
    let pki = |name: &str| machine.data_dir().join("pki").join(name);
    let jobs: Vec<Value> = targets
        .iter()
        .map(|target| {
            json!({
                "job_name": target.job,
                "scheme": target.scheme,
                "static_configs": [{"targets": [target.address]}],
                "tls_config": {
                    "ca_file": pki("ca.crt"),
                    "cert_file": pki("admin.crt"),
                    "key_file": pki("admin.key"),
                },
            })
        })
        .collect();

    let config = json!({
        "global": {"scrape_interval": "1s"},
        "scrape_configs": jobs,
    });
    let (file, data) = (
        machine.folder().join("prometheus.yml"),
        machine.folder().join("prometheus"),
    );
    fs::write(&file, config.to_string()).unwrap();

    let mut command = machine.command("prometheus", &["--web.listen-address=127.0.0.1:9090"]);
    let child = command
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.tsdb.path={}", data.display()))
        .stdout(Stdio::null())
        .stderr(File::create(machine.folder().join("prometheus.log")).unwrap())
        .spawn()
        .unwrap();
    Prometheus(child)
}

/// The values of a query by job; nothing while Prometheus starts.
fn query(machine: &Machine, query: &str) -> BTreeMap<String, String> {
    let mut command = machine.command(
        "curl",
        &[
            "--silent",
            "--get",
            "--data-urlencode",
            &format!("query={query}"),
        ],
    );

    let output = command
        .arg("http://127.0.0.1:9090/api/v1/query")
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let results = answer["data"]["result"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    results
        .iter()
        .map(|result| {
            let job = result["metric"]["job"].as_str().unwrap().to_owned();
            (job, result["value"][1].as_str().unwrap().to_owned())
        })
        .collect()
}

/// Complaints of promtool that upstream's own names cause.
const KNOWN_LINTS: &[&str] = &[
    // Counters without the suffix.
    "authentication_attempts counter metrics should have \"_total\" suffix",
    "authenticated_user_requests counter metrics should have \"_total\" suffix",
    // Gauges and histograms with it.
    "non-counter metrics should not have \"_total\" suffix",
    // Histograms of numbers.
    "etcd_debugging_mvcc_keys_total",
];

fn check_with_promtool(machine: &Machine, target: &Target, page: &str) {
    let file = machine.folder().join(format!("{}.metrics", target.job));
    fs::write(&file, page).unwrap();
    let output = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(File::open(&file).unwrap())
        .output()
        .unwrap();

    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let new: Vec<&str> = stderr
        .lines()
        .filter(|line| !KNOWN_LINTS.iter().any(|known| line.contains(known)))
        .collect();
    assert!(new.is_empty(), "{}: {new:#?}", target.job);
    // 3: only lints.
    assert!(
        matches!(output.status.code(), Some(0 | 3)),
        "{}: {stderr}",
        target.job
    );
}

/// Each family with its type, the names of its labels, and the bounds of a histogram.
fn families(page: &str) -> BTreeMap<&str, Family<'_>> {
    let mut families: BTreeMap<&str, Family<'_>> = BTreeMap::new();
    let mut present = "";
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            present = name;
            families.entry(name).or_default().kind = kind;
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            let stability = help.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            families.entry(name).or_default().stability = stability.map(|(name, _)| name);
        } else {
            families.get_mut(present).unwrap().add(line);
        }
    }
    families
}

#[derive(Debug, Default)]
struct Family<'a> {
    kind: &'a str,
    stability: Option<&'a str>,
    labels: BTreeSet<&'a str>,
    bounds: Vec<&'a str>,
}

impl<'a> Family<'a> {
    /// A line of the family. Values of labels here contain neither commas nor quotes.
    fn add(&mut self, line: &'a str) {
        let labels = line
            .split_once('{')
            .and_then(|(_, rest)| rest.rsplit_once('}'))
            .map_or("", |(labels, _)| labels);
        for (name, value) in labels
            .split("\",")
            .filter_map(|pair| pair.split_once("=\""))
        {
            let value = value.trim_end_matches('"');
            match name {
                "le" if !self.bounds.contains(&value) => self.bounds.push(value),
                "le" => {}
                name => drop(self.labels.insert(name)),
            }
        }
    }
}

/// What upstream declares.
struct Facts(BTreeMap<String, Value>);

impl Facts {
    fn read() -> Facts {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/facts/metrics.json");
        let all: Vec<Value> = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let named = all
            .into_iter()
            .map(|fact| (fact["name"].as_str().unwrap().to_owned(), fact));
        Facts(named.collect())
    }

    /// Every family is one of upstream's, or belongs to a program that upstream's is not.
    fn check(&self, target: &Target, families: &BTreeMap<&str, Family<'_>>) {
        for (name, family) in families {
            let Some(fact) = self.0.get(*name) else {
                let foreign = ["process_", "coredns_", "etcd_"];
                let known = foreign.iter().any(|prefix| name.starts_with(prefix));
                assert!(known, "{}: {name} is no metric of upstream", target.job);
                continue;
            };

            let kind = fact["type"].as_str().unwrap();
            assert!(
                kind == family.kind || kind == "custom",
                "{name}: {family:?}"
            );
            assert_eq!(family.stability, fact["stability"].as_str(), "{name}");

            let labels: BTreeSet<&str> = fact["labels"]
                .as_array()
                .unwrap()
                .iter()
                .map(|label| label.as_str().unwrap())
                .collect();
            assert_eq!(family.labels, labels, "{name}");

            if let Some(bounds) = fact["buckets"].as_array() {
                let found = family.bounds.iter().copied();
                let found: Vec<&str> = found.filter(|bound| *bound != "+Inf").collect();
                let bounds: Vec<&str> =
                    bounds.iter().map(|bound| bound.as_str().unwrap()).collect();
                assert_eq!(found, bounds, "{name}");
            }
        }
    }
}

/// Status code and body of a path on a component's port.
fn ask(machine: &Machine, url: &str, flags: &[&str]) -> (String, String) {
    let ca = machine.data_dir().join("pki/ca.crt").display().to_string();
    let mut command = machine.command(
        "curl",
        &["--silent", "--write-out", "\n%{http_code}", "--cacert", &ca],
    );
    let output = command.args(flags).arg(url).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, code) = text.rsplit_once('\n').unwrap();
    (code.to_owned(), body.to_owned())
}

#[test]
fn ports_of_components_ask_the_api_server_who_may_read_them() {
    let machine = Machine::new();
    machine.start();
    let credentials = credentials(&machine);
    let admin: Vec<&str> = credentials.iter().map(String::as_str).collect();

    machine.kubectl("create serviceaccount scraper");
    machine.kubectl("create serviceaccount nosy");
    machine.kubectl("create clusterrole scrape --verb=get --non-resource-url=/metrics");
    machine.kubectl(
        "create clusterrolebinding scrape --clusterrole=scrape --serviceaccount=default:scraper",
    );
    let bearer = |account: &str| {
        let token = machine.kubectl(&format!("create token {account}"));
        format!("Authorization: Bearer {}", token.trim())
    };
    let (scraper, nosy) = (bearer("scraper"), bearer("nosy"));

    for port in [10257, 10259] {
        let url = |path: &str| format!("https://127.0.0.1:{port}{path}");
        let check = |path: &str, flags: &[&str], code: &str, expected: &str| {
            let (found, body) = ask(&machine, &url(path), flags);
            assert!(
                found == code && body.contains(expected),
                "{path} {flags:?}: {found} {body}"
            );
        };

        check("/healthz", &[], "200", "ok");
        let refused = r#"forbidden: User \"system:anonymous\" cannot get path \"/metrics\""#;
        check("/metrics", &[], "403", refused);
        check(
            "/metrics",
            &["--header", "Authorization: Bearer nonsense"],
            "401",
            "Unauthorized",
        );
        check(
            "/metrics",
            &["--header", &nosy],
            "403",
            "system:serviceaccount:default:nosy",
        );
        check(
            "/metrics",
            &["--header", &scraper],
            "200",
            "process_cpu_seconds_total",
        );
        check(
            "/metrics/slis",
            &["--header", &scraper],
            "403",
            "/metrics/slis",
        );
        check("/metrics/slis", &admin, "200", "kubernetes_healthcheck{");
        check("/statusz", &admin, "200", "statusz\nWarning:");
        check("/nothing", &admin, "404", "404 page not found");
    }

    let scheduler = |path: &str| ask(&machine, &format!("https://127.0.0.1:10259{path}"), &[]).0;
    assert_eq!(scheduler("/livez"), "200");
    assert_eq!(scheduler("/readyz"), "200");
}

/// A scheduler of its own trusts the CA that the API server publishes.
#[test]
fn a_separate_scheduler_serves_its_port() {
    let machine = Machine::new();
    machine.begin_with(&["--disable=scheduler,dns"]);
    assert!(machine.is_ready_within(crate::machine::PATIENCE));

    let kubeconfig = machine.data_dir().join("scheduler.kubeconfig");
    let scheduler = machine
        .command(
            CORACLE,
            &["kube-scheduler", "--bind-address=127.0.0.1", "--kubeconfig"],
        )
        .arg(&kubeconfig)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let _scheduler = Prometheus(scheduler);

    let credentials = credentials(&machine);
    let admin: Vec<&str> = credentials[..4].iter().map(String::as_str).collect();
    let with = |path: &str, flags: &[&str]| {
        // Its certificate is its own.
        let flags = [flags, &["--insecure"]].concat();
        ask(&machine, &format!("https://127.0.0.1:10259{path}"), &flags)
    };

    eventually("the scheduler is ready", || {
        match with("/readyz?verbose", &[]) {
            (code, body) if code == "200" && body.contains("[+]leaderElection ok") => Ok(()),
            other => Err(other),
        }
    });
    eventually(
        "the administrator's certificate is accepted",
        || match with("/metrics", &admin) {
            (code, page) if code == "200" => {
                assert!(
                    page.contains("leader_election_master_status{name=\"kube-scheduler\"} 1\n")
                );
                Ok(())
            }
            other => Err(other),
        },
    );
}
