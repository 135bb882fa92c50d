//! A kubelet whose serving certificate the cluster did not sign, as a stock one has that was started
//! without certificates: `coracle server --kubelet-certificate-authority`.

use std::fs;
use std::path::Path;
use std::process::Command;

use rcgen::{CertificateParams, KeyPair, SanType};

use crate::cluster::Server;
use crate::programs::{Program, free_port};
use crate::simulated_nodes::apply;

/// Answers every request with its path, over TLS.
const KUBELET: &str = r#"
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ("logs at " + self.path.split("?")[0] + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"#;

fn start_kubelet(folder: &Path, port: u16) -> Program {
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::IpAddress([127, 0, 0, 1].into())];
    let key = KeyPair::generate().unwrap();
    let file = |name: &str| folder.join(name);
    fs::write(file("kubelet.crt"), params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(file("kubelet.key"), key.serialize_pem()).unwrap();
    fs::write(file("kubelet.py"), KUBELET).unwrap();

    let mut command = Command::new("python3");
    command.arg(file("kubelet.py")).arg(port.to_string());
    command.arg(file("kubelet.crt")).arg(file("kubelet.key"));
    Program::start(command, folder, "kubelet")
}

fn register(server: &Server, folder: &Path, port: u16) {
    let node = "{apiVersion: v1, kind: Node, metadata: {name: foreign}}";
    apply(server, folder, "node.yaml", node);
    let status = format!(
        r#"{{"status":{{"addresses":[{{"type":"InternalIP","address":"127.0.0.1"}}],"daemonEndpoints":{{"kubeletEndpoint":{{"Port":{port}}}}}}}}}"#
    );
    let patch = [
        "patch",
        "node",
        "foreign",
        "--subresource=status",
        "-p",
        &status,
    ];
    server.kubectl(&patch);

    // No controller runs that would make it.
    server.kubectl(&["create", "serviceaccount", "default"]);
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: foreign, containers: [{name: c, image: i}]}}";
    apply(server, folder, "pod.yaml", pod);
}

#[test]
fn it_is_trusted_where_a_flag_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let mut kubelet = start_kubelet(folder.path(), port);
    let authority = folder.path().join("kubelet.crt").display().to_string();
    let data = folder.path().join("data");
    let logs = |more: &[&str]| {
        let server = Server::start_with(&data, more);
        if !server.run(&["get", "node", "foreign"]).status.success() {
            register(&server, folder.path(), port);
        }
        let output = server.run(&["logs", "p"]);
        server.stop();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.success(),
            text(output.stdout) + &text(output.stderr),
        )
    };

    let (done, text) = logs(&[]);
    assert!(!done && text.contains("certificate"), "{text}");
    let expected = "logs at /containerLogs/default/p/c\n".to_owned();
    assert_eq!(
        logs(&["--kubelet-certificate-authority="]),
        (true, expected.clone())
    );
    assert_eq!(
        logs(&["--kubelet-certificate-authority", &authority]),
        (true, expected)
    );
    kubelet.assert_running();
}
