//! Properties that hold for any message of a client: the target of `fuzz/` panics on a violation.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use coracle_base::sync::Mutex;
use hickory_server::net::NetError;
use hickory_server::net::runtime::TokioTime;
use hickory_server::net::xfer::Protocol;
use hickory_server::proto::op::{Message, MessageType};
use hickory_server::proto::rr::Record;
use hickory_server::proto::serialize::binary::BinEncoder;
use hickory_server::server::{Request, RequestHandler as _, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::MessageResponse;

use crate::server::Handler;
use crate::zone::facts::{Endpoint, Form, Key, Port, Service, Slice};

/// A message that can be read gets one answer, which can be read, has the same id and question, and fits.
pub fn dns(data: &[u8]) {
    let client = SocketAddr::from((Ipv4Addr::LOCALHOST, 5353));
    let Ok(request) = Request::from_bytes(data.to_vec(), client, Protocol::Udp) else {
        return;
    };

    let sent = Sent::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime without I/O can be built");
    runtime.block_on(handler().handle_request::<_, TokioTime>(&request, sent.clone()));

    let responses = sent.0.lock();
    let [response] = &responses[..] else {
        panic!("{} responses", responses.len());
    };

    let response = Message::from_vec(response).expect("a response can be read");
    assert_eq!(response.metadata.id, request.metadata.id);
    assert_eq!(response.metadata.message_type, MessageType::Response);
}

/// A handler of a small cluster, without upstream servers.
fn handler() -> &'static Handler {
    static HANDLER: OnceLock<Handler> = OnceLock::new();
    HANDLER.get_or_init(|| {
        let handler = Handler::new(
            "cluster.local",
            vec![IpAddr::V4(Ipv4Addr::new(10, 96, 0, 10))],
            None,
            &coracle_metrics::Registry::default(),
        );
        handler.change(|zone| {
            zone.add_namespace("a");
            zone.set_service(service(
                "web",
                Form::Addresses(vec![IpAddr::V4(Ipv4Addr::new(10, 96, 0, 1))]),
            ));
            zone.set_service(service("pods", Form::Headless));
            zone.set_service(service(
                "alias",
                Form::Alias("web.a.svc.cluster.local".to_owned()),
            ));
            zone.set_service(service(
                "loop",
                Form::Alias("loop.a.svc.cluster.local".to_owned()),
            ));
            zone.set_slice(slice());
        });
        handler.set_complete();
        handler
    })
}

fn service(name: &str, form: Form) -> Service {
    Service {
        key: key(name),
        form,
        ports: vec![port()],
    }
}

fn slice() -> Slice {
    let endpoint = |last: u8| Endpoint {
        address: IpAddr::V4(Ipv4Addr::new(10, 42, 0, last)),
        hostname: Some(format!("pod-{last}")),
    };
    Slice {
        key: key("pods-1"),
        service: "pods".to_owned(),
        ports: vec![port()],
        endpoints: (1..=200).map(endpoint).collect(),
    }
}

fn key(name: &str) -> Key {
    Key {
        namespace: "a".to_owned(),
        name: name.to_owned(),
    }
}

fn port() -> Port {
    Port {
        name: "http".to_owned(),
        protocol: "tcp".to_owned(),
        number: 80,
    }
}

/// The responses that were sent.
#[derive(Clone, Default)]
struct Sent(Arc<Mutex<Vec<Vec<u8>>>>);

#[async_trait::async_trait]
impl ResponseHandler for Sent {
    async fn send_response<'a>(
        &mut self,
        response: MessageResponse<
            '_,
            'a,
            impl Iterator<Item = &'a Record> + Send + 'a,
            impl Iterator<Item = &'a Record> + Send + 'a,
            impl Iterator<Item = &'a Record> + Send + 'a,
            impl Iterator<Item = &'a Record> + Send + 'a,
        >,
    ) -> Result<ResponseInfo, NetError> {
        let mut bytes = Vec::new();
        let info = response.destructive_emit(&mut BinEncoder::new(&mut bytes))?;
        self.0.lock().push(bytes);
        Ok(info)
    }
}

#[cfg(test)]
mod tests {
    use crate::fuzz_corpus;

    #[test]
    fn any_message_of_a_client_keeps_every_property() {
        fuzz_corpus::run("dns", super::dns, 4000);
    }
}
