//! Converts the zone's answers to DNS records.

use std::net::IpAddr;

use hickory_server::proto::rr::rdata::{A, AAAA, CNAME, NS, PTR, SOA, SRV, TXT};
use hickory_server::proto::rr::{Name, RData, Record, RecordType};

use crate::zone::answer::{Data, QueryType, name_server};

/// TTL of our records in seconds.
pub(super) const TTL: u32 = 30;

/// SOA refresh, retry and expire in seconds; there are no zone transfers.
const REFRESH: (i32, i32, i32) = (7200, 1800, 86400);

pub(super) fn query_type(kind: RecordType) -> QueryType {
    match kind {
        RecordType::A => QueryType::A,
        RecordType::AAAA => QueryType::Aaaa,
        RecordType::SRV => QueryType::Srv,
        RecordType::PTR => QueryType::Ptr,
        RecordType::TXT => QueryType::Txt,
        RecordType::SOA => QueryType::Soa,
        RecordType::NS => QueryType::Ns,
        RecordType::ANY => QueryType::Any,
        _ => QueryType::Other,
    }
}

pub(super) fn record(owner: &Name, data: Data, domain: &str, serial: u32) -> Record {
    let data = match data {
        Data::Address(address) => return address_of(owner, address),
        Data::Port {
            weight,
            port,
            target,
        } => RData::SRV(SRV::new(0, weight, port, name(&target))),
        Data::Name(target) => RData::PTR(PTR(name(&target))),
        Data::Text(text) => RData::TXT(TXT::new(vec![text])),
        Data::Authority => return authority(domain, serial),
        Data::NameServer(target) => RData::NS(NS(name(&target))),
    };

    Record::from_rdata(owner.clone(), TTL, data)
}

pub(super) fn address_of(owner: &Name, address: IpAddr) -> Record {
    let data = match address {
        IpAddr::V4(address) => RData::A(A(address)),
        IpAddr::V6(address) => RData::AAAA(AAAA(address)),
    };
    Record::from_rdata(owner.clone(), TTL, data)
}

pub(super) fn alias(owner: &Name, target: &str) -> Record {
    Record::from_rdata(owner.clone(), TTL, RData::CNAME(CNAME(name(target))))
}

/// The SOA record, which also sets the TTL of negative answers.
pub(super) fn authority(domain: &str, serial: u32) -> Record {
    let (refresh, retry, expire) = REFRESH;
    let server = name(&name_server(domain));
    let person = name(&format!("hostmaster.{domain}"));
    let data = SOA::new(server, person, serial, refresh, retry, expire, TTL);
    Record::from_rdata(name(domain), TTL, RData::SOA(data))
}

/// A name for the wire. A name too long for DNS becomes the root; names of Services are never too
/// long.
pub(super) fn name(text: &str) -> Name {
    let mut name = Name::from_utf8(text).unwrap_or_else(|_| Name::root());
    name.set_fqdn(true);
    name
}
