//! Raw requests with a client certificate, and their responses.

use std::path::Path;

use bytes::Bytes;
use coracle_api::Value;
use coracle_api::codec::json;
use coracle_api::time::Timestamp;
use coracle_client::config::Kubeconfig;
use coracle_client::{Client, Config, World};
use http::Request;
use http_body_util::BodyExt;
use tokio::runtime::Runtime;

/// A client that sends arbitrary requests.
pub(crate) struct Raw {
    runtime: Runtime,
    client: Client,
}

/// What a server answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) warnings: Vec<String>,
}

/// The same, unparsed.
pub(crate) struct Plain {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The status and the message of a refusal.
    pub(crate) fn refusal(&self) -> (u16, &str) {
        (
            self.status,
            self.body
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or_default(),
        )
    }
}

impl Raw {
    pub(crate) fn new(kubeconfig: &str) -> Raw {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();

        let kubeconfig = Kubeconfig::read(Path::new(kubeconfig)).unwrap().unwrap();
        let config = Config::of_context(&kubeconfig, None).unwrap();

        let world = World {
            now: || Timestamp::from_unix(0, 0),
            random: || 0,
        };
        let client = runtime.block_on(Client::connect(config, world)).unwrap();

        Raw { runtime, client }
    }

    pub(crate) fn send(&self, method: &str, path: &str, content_type: &str, body: &str) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", content_type);

        let request = request
            .body(Bytes::copy_from_slice(body.as_bytes()))
            .unwrap();
        self.runtime.block_on(async {
            let (head, body) = self.client.send(request).await.unwrap().into_parts();
            let warnings = head.headers.get_all("Warning").iter();
            let warnings = warnings
                .map(|value| value.to_str().unwrap().to_owned())
                .collect();
            let body = json::parse(&body.collect().await.unwrap().to_bytes()).unwrap();

            Answer {
                status: head.status.as_u16(),
                body,
                warnings,
            }
        })
    }

    /// A request that says what it accepts, with a body of JSON; nothing of the answer is read in
    /// any way.
    pub(crate) fn ask(&self, method: &str, path: &str, accept: &str, body: &str) -> Plain {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", "application/json");

        let request = request
            .header("Accept", accept)
            .body(Bytes::copy_from_slice(body.as_bytes()))
            .unwrap();

        self.runtime.block_on(async {
            let (head, body) = self.client.send(request).await.unwrap().into_parts();
            let content_type = head
                .headers
                .get("Content-Type")
                .map(|value| value.to_str().unwrap().to_owned());

            let body = body.collect().await.unwrap().to_bytes();
            Plain {
                status: head.status.as_u16(),
                content_type: content_type.unwrap_or_default(),
                body,
            }
        })
    }

    pub(crate) fn put(&self, path: &str, body: &str) -> Answer {
        self.send("PUT", path, "application/json", body)
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, "application/json", body)
    }

    /// `kind`: `json`, `merge` or `strategic-merge`.
    pub(crate) fn patch(&self, path: &str, kind: &str, body: &str) -> Answer {
        self.send(
            "PATCH",
            path,
            &format!("application/{kind}-patch+json"),
            body,
        )
    }

    pub(crate) fn apply(&self, path: &str, body: &str) -> Answer {
        self.send("PATCH", path, "application/apply-patch+yaml", body)
    }
}
