//! The metrics of the DNS server, with CoreDNS' names, so that its dashboards work.

use std::time::Duration;

use coracle_metrics::{Buckets, Counters, Foreign, Histograms, metrics};
use hickory_server::net::xfer::Protocol;
use hickory_server::proto::op::ResponseCode;
use hickory_server::proto::rr::RecordType;

/// Server, zone and view: the first two labels of all; there are no views.
type Zone = (&'static str, &'static str, &'static str);

metrics! {
    pub struct DnsMetrics {
        requests: Counters<(&'static str, &'static str, &'static str, &'static str, &'static str, &'static str)> = counters(
            Foreign,
            "coredns_dns_requests_total",
            "Number of DNS requests by zone, protocol, address family and type.",
            ["server", "zone", "view", "proto", "family", "type"],
        ),
        durations: Histograms<Zone> = histograms(
            Foreign,
            "coredns_dns_request_duration_seconds",
            "Time until DNS requests were answered in seconds, by zone.",
            ["server", "zone", "view"],
            Buckets::exponential_seconds(0.000_25, 2.0, 16),
        ),
        responses: Counters<(&'static str, &'static str, &'static str, &'static str, &'static str)> = counters(
            Foreign,
            "coredns_dns_responses_total",
            "Number of DNS responses by zone, response code and the part that answered.",
            ["server", "zone", "view", "rcode", "plugin"],
        ),
    }
}

/// What is counted of a request.
pub(super) struct Counted {
    pub(super) protocol: Protocol,
    pub(super) is_ipv6: bool,
    pub(super) kind: Option<RecordType>,
    /// It was answered from the zone of the cluster.
    pub(super) is_ours: bool,
    pub(super) code: ResponseCode,
    pub(super) took: Duration,
}

/// There is one server; its port is not part of the name, as a pod's is always 53.
const SERVER: &str = "dns://:53";

impl DnsMetrics {
    pub(super) fn count(&self, request: &Counted) {
        let (zone, plugin) = match request.is_ours {
            true => ("cluster", "kubernetes"),
            false => (".", "forward"),
        };
        let protocol = match request.protocol {
            Protocol::Udp => "udp",
            _ => "tcp",
        };
        // As upstream numbers them.
        let family = if request.is_ipv6 { "2" } else { "1" };
        let kind = request.kind.map_or("other", type_name);

        self.requests
            .of(&(SERVER, zone, "", protocol, family, kind))
            .inc();
        self.durations.of(&(SERVER, zone, "")).took(request.took);
        self.responses
            .of(&(SERVER, zone, "", code_name(request.code), plugin))
            .inc();
    }
}

/// The types that CoreDNS tells apart.
fn type_name(kind: RecordType) -> &'static str {
    match kind {
        RecordType::A => "A",
        RecordType::AAAA => "AAAA",
        RecordType::CNAME => "CNAME",
        RecordType::DNSKEY => "DNSKEY",
        RecordType::DS => "DS",
        RecordType::HTTPS => "HTTPS",
        RecordType::MX => "MX",
        RecordType::NS => "NS",
        RecordType::NSEC => "NSEC",
        RecordType::NSEC3 => "NSEC3",
        RecordType::PTR => "PTR",
        RecordType::RRSIG => "RRSIG",
        RecordType::SOA => "SOA",
        RecordType::SRV => "SRV",
        RecordType::TXT => "TXT",
        _ => "other",
    }
}

fn code_name(code: ResponseCode) -> &'static str {
    match code {
        ResponseCode::NoError => "NOERROR",
        ResponseCode::FormErr => "FORMERR",
        ResponseCode::ServFail => "SERVFAIL",
        ResponseCode::NXDomain => "NXDOMAIN",
        ResponseCode::NotImp => "NOTIMP",
        ResponseCode::Refused => "REFUSED",
        _ => "other",
    }
}
