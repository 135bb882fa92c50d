//! Flannel's VXLAN on two machines, with an API server that both reach on loopback.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use coracle_api::codec::yaml;
use coracle_client::Resource;
use coracle_testkit::Cluster;

use crate::Pair;

/// Where scripts/build-flannel.sh puts it.
pub(crate) fn program() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"),
        PathBuf::from,
    );
    let program = target.join("test-tools/flanneld");
    program.exists().then_some(program)
}

const CONFIG: &str = r#"{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}"#;

/// What `--ip-masq` does, in short: ours masquerades too, for which the kernel tracks connections.
const MASQUERADE: [&str; 4] = [
    "add table ip masq",
    "add chain ip masq post { type nat hook postrouting priority 100 ; }",
    "add rule ip masq post ip saddr 10.244.0.0/16 ip daddr 10.244.0.0/16 return",
    "add rule ip masq post ip saddr 10.244.0.0/16 ip daddr != 224.0.0.0/4 masquerade",
];

/// Two daemons; ended when dropped.
pub(crate) struct Running {
    daemons: Vec<Child>,
    _cluster: Cluster,
    _runtime: tokio::runtime::Runtime,
}

impl Running {
    pub(crate) fn start(program: &Path, pair: &Pair) -> Running {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let cluster = runtime.block_on(Cluster::start_with_https());
        let kubeconfig = pair.folder.path().join("kubeconfig");
        let port = write_kubeconfig(&cluster, &kubeconfig);
        let config = pair.folder.path().join("net-conf.json");
        std::fs::write(&config, CONFIG).unwrap();

        let daemons = pair.machines.iter().map(|machine| {
            let (name, range) = (&machine.node.name, machine.node.ranges[0]);
            let node = format!(
                // Flannel writes annotations, and needs one to be there, as kubelets see to.
                "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, annotations: {{a: b}}}}\n\
                 spec: {{podCIDR: {range}, podCIDRs: ['{range}']}}\n"
            );
            let node = yaml::decode(node.as_bytes()).unwrap();
            let nodes = cluster
                .client()
                .resource(&Resource::builtin("", "v1", "nodes"));
            runtime.block_on(nodes.create(&node)).unwrap();

            for command in MASQUERADE {
                machine.namespace.run("nft", command);
            }

            // A socket stays in the namespace in which it was made.
            let listener = machine
                .namespace
                .inside(|| TcpListener::bind(("127.0.0.1", port)).unwrap());
            std::thread::spawn(move || forward(&listener, port));

            machine.namespace.inside(|| {
                Command::new(program)
                    .args([&kubeconfig, &config])
                    .arg("eth0")
                    .env("NODE_NAME", name)
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap()
            })
        });

        Running {
            daemons: daemons.collect(),
            _cluster: cluster,
            _runtime: runtime,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            drop(daemon.kill());
            drop(daemon.wait());
        }
    }
}

/// Returns the port of the API server.
fn write_kubeconfig(cluster: &Cluster, file: &Path) -> u16 {
    let server = cluster.https().server;
    let path = |name: &str| cluster.file(name).display().to_string();
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\n\
         contexts: [{{name: x, context: {{cluster: x, user: x}}}}]\n\
         clusters: [{{name: x, cluster: {{server: '{server}', certificate-authority: {}}}}}]\n\
         users: [{{name: x, user: {{client-certificate: {}, client-key: {}}}}}]\n",
        path("ca.crt"),
        path("admin.crt"),
        path("admin.key"),
    );
    std::fs::write(file, text).unwrap();
    let port = server.trim_end_matches('/').rsplit(':').next().unwrap();
    port.parse().unwrap()
}

/// Forwards connections to the same port on the loopback address of this process.
fn forward(listener: &TcpListener, port: u16) {
    while let Ok((client, _)) = listener.accept() {
        let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
            continue;
        };
        let ends = [
            (client.try_clone().unwrap(), server.try_clone().unwrap()),
            (server, client),
        ];
        for (mut from, mut to) in ends {
            std::thread::spawn(move || {
                drop(io::copy(&mut from, &mut to));
                drop(to.shutdown(std::net::Shutdown::Write));
            });
        }
    }
}
