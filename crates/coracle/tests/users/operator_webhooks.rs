//! The webhooks of an operator written with controller-runtime (`tests/clients/operator/ship.go`):
//! it converts between two versions of a resource, sets defaults and validates, and reconciles the
//! version that is not stored.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::cluster::{Server, tool};
use crate::simulated_nodes::{apply, until};

const DEFINITION: &str = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.fleet.example.com}
spec:
  group: fleet.example.com
  scope: Namespaced
  names: {kind: Ship, listKind: ShipList, plural: ships, singular: ship}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'URL/convert', caBundle: CA}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {oars: {type: integer}, crew: {type: string}}}
          status: {type: object, properties: {size: {type: string}}}
  - name: v2
    served: true
    storage: false
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              drive: {type: object, properties: {oars: {type: integer}}}
              crew: {type: array, items: {type: string}}
          status: {type: object, properties: {size: {type: string}}}
"#;

/// As `kubebuilder` has them: for the second version only, which includes equivalent requests.
const WEBHOOKS: &str = r#"apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: ships}
webhooks:
- name: mship.example.com
  admissionReviewVersions: [v1]
  clientConfig: {url: 'URL/mutate-fleet-example-com-v2-ship', caBundle: CA}
  failurePolicy: Fail
  rules: [{apiGroups: [fleet.example.com], apiVersions: [v2], operations: [CREATE, UPDATE], resources: [ships]}]
  sideEffects: None
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: ships}
webhooks:
- name: vship.example.com
  admissionReviewVersions: [v1]
  clientConfig: {url: 'URL/validate-fleet-example-com-v2-ship', caBundle: CA}
  failurePolicy: Fail
  rules: [{apiGroups: [fleet.example.com], apiVersions: [v2], operations: [CREATE, UPDATE, DELETE], resources: [ships]}]
  sideEffects: None
"#;

/// The operator; killed when dropped.
struct Operator {
    child: Child,
    port: u16,
    ca: String,
}

impl Operator {
    fn start(folder: &Path, server: &Server) -> Operator {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
        std::fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);

        let log = std::fs::File::create(folder.join("ships.log")).unwrap();
        let child = Command::new(tool("operator"))
            .arg(&server.kubeconfig)
            .args(["ships", &port.to_string()])
            .arg(folder)
            .stderr(log)
            .spawn()
            .unwrap();
        until("its webhooks listen", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });

        let ca = STANDARD.encode(made.cert.pem());
        Operator { child, port, ca }
    }

    /// A manifest with its address.
    fn addressed(&self, manifest: &str) -> String {
        let url = format!("https://127.0.0.1:{}", self.port);
        manifest.replace("URL", &url).replace("CA", &self.ca)
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn ship(version: &str, name: &str, spec: &str) -> String {
    format!(
        "apiVersion: fleet.example.com/{version}\nkind: Ship\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

#[test]
fn the_webhooks_of_an_operator_convert_default_and_validate() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    // The definition comes first: the operator looks its kind up when it starts.
    let without = DEFINITION.replace("  conversion:\n    strategy: Webhook\n", "").replace(
        "    webhook: {conversionReviewVersions: [v1], clientConfig: {url: 'URL/convert', caBundle: CA}}\n",
        "",
    );
    apply(&server, folder.path(), "crd.yaml", &without);
    let established = "--for=condition=Established";
    server.kubectl(&["wait", established, "crd/ships.fleet.example.com"]);

    let operator = Operator::start(folder.path(), &server);
    let converted = operator.addressed(DEFINITION);
    apply(&server, folder.path(), "crd.yaml", &converted);
    apply(
        &server,
        folder.path(),
        "webhooks.yaml",
        &operator.addressed(WEBHOOKS),
    );

    let try_apply = |text: &str| {
        let file = folder.path().join("ship.yaml");
        std::fs::write(&file, text).unwrap();
        let done = server.run(&["apply", "-f", file.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.success(), said)
    };
    let get = |version: &str, path: &str| {
        let of = format!("ships.{version}.fleet.example.com");
        server.kubectl(&["get", &of, "trireme", "-o", &format!("jsonpath={path}")])
    };

    // A definition takes a moment until it holds.
    until(
        "ships of the first version are converted and get a crew",
        || {
            try_apply(&ship("v1", "trireme", "{oars: 4}")).0
                && get("v1", "{.spec.crew}") == "captain"
        },
    );
    assert_eq!(
        get("v2", "{.spec.crew} {.spec.drive.oars}"),
        r#"["captain"] 4"#
    );
    until("the operator has written the status", || {
        get("v1", "{.status.size}") == "4 oars for 1"
    });

    let refused = |text: &str, why: &str| {
        let (done, said) = try_apply(text);
        let denied = "admission webhook \"vship.example.com\" denied the request: ";
        assert!(!done && said.contains(&format!("{denied}{why}")), "{said}");
    };
    refused(
        &ship("v1", "raft", "{oars: 3}"),
        "a ship with an odd number of oars goes in circles",
    );
    refused(
        &ship("v1", "trireme", "{oars: 2}"),
        "oars are not thrown away: 2 of 4 are left",
    );
    let crowded = ship("v2", "trireme", "{drive: {oars: 4}, crew: [a, b, c, d, e]}");
    let (done, said) = try_apply(&crowded);
    assert!(
        done && said.contains("Warning: some of the crew are idle"),
        "{said}"
    );
    assert_eq!(get("v1", "{.spec.crew}"), "a,b,c,d,e");

    let of_trireme = ["delete", "ship", "trireme"];
    assert!(server.refused(&of_trireme).contains("unsinkable"));
    server.kubectl(&["label", "ship", "trireme", "sinkable=yes"]);
    server.kubectl(&of_trireme);

    drop(operator);
    server.stop();
}
