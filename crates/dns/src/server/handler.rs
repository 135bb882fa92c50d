//! Handles one query: from the zone, from upstream servers, or both for an alias.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use coracle_base::sync::RwLock;
use coracle_metrics::Registry;
use hickory_server::net::runtime::Time;
use hickory_server::proto::op::{
    Header, HeaderCounts, MessageType, Metadata, OpCode, ResponseCode,
};
use hickory_server::proto::rr::{DNSClass, Name, Record, RecordType};
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::MessageResponseBuilder;
use tokio::time::Instant;

use super::forwarding::Forwarding;
use super::metrics::{Counted, DnsMetrics};
use super::records;
use super::upstream::{Upstream, UpstreamError};
use crate::Zone;
use crate::customization::Customization;
use crate::zone::answer::{Answer, answer};

/// Answers queries about one cluster, and forwards others.
#[derive(Clone)]
pub struct Handler {
    shared: Arc<Shared>,
}

struct Shared {
    zone: RwLock<Zone>,
    /// Whether the zone is complete: before that, NXDOMAIN would be a guess.
    complete: AtomicBool,
    /// Incremented with every change of the zone.
    serial: AtomicU32,
    domain: String,
    own: Vec<IpAddr>,
    forwarding: Forwarding,
    metrics: DnsMetrics,
}

/// Limit of followed aliases.
const MAX_ALIASES: usize = 8;

#[derive(Default)]
struct Reply {
    code: ResponseCode,
    authoritative: bool,
    answers: Vec<Record>,
    authorities: Vec<Record>,
    additional: Vec<Record>,
    /// Other servers were asked.
    forwarded: bool,
}

impl Handler {
    /// `domain` is the cluster domain (`cluster.local`), `own` the addresses of the DNS Service.
    /// Without `upstream`, other names are refused.
    pub fn new(
        domain: &str,
        own: Vec<IpAddr>,
        upstream: Option<Upstream>,
        metrics: &Registry,
    ) -> Handler {
        let domain = domain.trim_matches('.').to_ascii_lowercase();
        let shared = Shared {
            zone: RwLock::default(),
            complete: AtomicBool::new(false),
            serial: AtomicU32::new(1),
            domain,
            own,
            forwarding: Forwarding::new(upstream),
            metrics: DnsMetrics::new(metrics),
        };

        Handler {
            shared: Arc::new(shared),
        }
    }

    /// Changes the zone.
    pub fn change<T>(&self, how: impl FnOnce(&mut Zone) -> T) -> T {
        let result = how(&mut self.shared.zone.write());
        self.shared.serial.fetch_add(1, Ordering::Relaxed);
        result
    }

    /// Reads the zone.
    pub fn read<T>(&self, how: impl FnOnce(&Zone) -> T) -> T {
        how(&self.shared.zone.read())
    }

    /// Replaces what the administrator added.
    pub fn customize(&self, customization: Customization) -> Result<(), UpstreamError> {
        self.shared.forwarding.customize(customization)
    }

    /// What the administrator added.
    pub fn customization(&self) -> Customization {
        self.shared.forwarding.customization()
    }

    /// Marks the zone as complete: from now on a missing name does not exist.
    pub fn set_complete(&self) {
        self.shared.complete.store(true, Ordering::Release);
    }

    async fn reply(&self, name: &Name, kind: RecordType) -> Reply {
        let mut reply = Reply {
            authoritative: true,
            ..Reply::default()
        };

        let mut owner = name.clone();
        for _ in 0..MAX_ALIASES {
            let mut asked = owner.to_lowercase().to_utf8();
            asked.truncate(asked.trim_end_matches('.').len());

            let shared = &self.shared;
            let found = self.read(|zone| {
                answer(
                    zone,
                    &shared.domain,
                    &shared.own,
                    &asked,
                    records::query_type(kind),
                )
            });

            match found {
                Answer::NotOurs => return self.forward(reply, &owner, kind).await,
                _ if !shared.complete.load(Ordering::Acquire) => {
                    return Reply::failed(ResponseCode::ServFail);
                }
                Answer::NoSuchName => return self.negative(reply, ResponseCode::NXDomain),
                Answer::Records { records, .. } if records.is_empty() => {
                    return self.negative(reply, ResponseCode::NoError);
                }
                Answer::Records {
                    records,
                    additional,
                } => {
                    self.add_records(&mut reply, &owner, records, additional);
                    return reply;
                }
                Answer::Alias(target) => {
                    reply.answers.push(records::alias(&owner, &target));
                    owner = records::name(&target);
                    if kind == RecordType::CNAME {
                        return reply;
                    }
                }
            }
        }

        Reply::failed(ResponseCode::ServFail)
    }

    fn serial(&self) -> u32 {
        self.shared.serial.load(Ordering::Relaxed)
    }

    fn add_records(
        &self,
        reply: &mut Reply,
        owner: &Name,
        found: Vec<crate::zone::answer::Data>,
        additional: Vec<(String, IpAddr)>,
    ) {
        let record = |data| records::record(owner, data, &self.shared.domain, self.serial());
        reply.answers.extend(found.into_iter().map(record));
        let beside =
            |(name, address): (String, IpAddr)| records::address_of(&records::name(&name), address);
        reply.additional.extend(additional.into_iter().map(beside));
    }

    fn negative(&self, mut reply: Reply, code: ResponseCode) -> Reply {
        reply.code = code;
        reply
            .authorities
            .push(records::authority(&self.shared.domain, self.serial()));
        reply
    }

    async fn forward(&self, mut reply: Reply, name: &Name, kind: RecordType) -> Reply {
        let Some(response) = self.shared.forwarding.lookup(name, kind).await else {
            return if reply.answers.is_empty() {
                Reply::failed(ResponseCode::Refused)
            } else {
                reply
            };
        };

        reply.forwarded = true;
        reply.authoritative = !reply.answers.is_empty();
        reply.code = response.code;
        reply.answers.extend(response.answers);
        reply.authorities = response.authorities;

        reply
    }

    async fn respond(&self, request: &Request) -> Reply {
        if request.metadata.message_type != MessageType::Query
            || request.metadata.op_code != OpCode::Query
        {
            return Reply::failed(ResponseCode::NotImp);
        }

        let Ok(info) = request.request_info() else {
            return Reply::failed(ResponseCode::FormErr);
        };

        let question = info.query.original();
        match question.query_class() {
            DNSClass::IN | DNSClass::ANY => {
                self.reply(question.name(), question.query_type()).await
            }
            _ => Reply::failed(ResponseCode::Refused),
        }
    }
}

impl Reply {
    fn failed(code: ResponseCode) -> Reply {
        Reply {
            code,
            ..Reply::default()
        }
    }
}

#[async_trait::async_trait]
impl RequestHandler for Handler {
    async fn handle_request<R: ResponseHandler, T: Time>(
        &self,
        request: &Request,
        mut to: R,
    ) -> ResponseInfo {
        let began = Instant::now();
        let reply = self.respond(request).await;
        let question = request.request_info().ok();
        self.shared.metrics.count(&Counted {
            protocol: request.protocol(),
            is_ipv6: request.src().is_ipv6(),
            kind: question.map(|info| info.query.original().query_type()),
            is_ours: !reply.forwarded,
            code: reply.code,
            took: began.elapsed(),
        });

        let mut about = Metadata::response_from_request(&request.metadata);
        about.response_code = reply.code;
        about.authoritative = reply.authoritative;

        about.recursion_available = self.shared.forwarding.is_available();
        let mut builder = MessageResponseBuilder::from_message_request(request);
        let edns = request.edns.as_ref().map(|asked| {
            let mut authoritative = hickory_server::proto::op::Edns::new();
            authoritative.set_max_payload(asked.max_payload().clamp(512, 4096));
            authoritative
        });

        if let Some(edns) = &edns {
            builder.edns(edns);
        }

        let response = builder.build(
            about,
            &reply.answers,
            &reply.authorities,
            std::iter::empty(),
            &reply.additional,
        );

        match to.send_response(response).await {
            Ok(info) => info,
            Err(error) => {
                tracing::debug!(%error, "cannot send DNS response");
                ResponseInfo::from(Header {
                    metadata: about,
                    counts: HeaderCounts::default(),
                })
            }
        }
    }
}
