//! The zone's answers as records on the wire.

use std::net::IpAddr;

use hickory_server::proto::rr::rdata::{A, AAAA, CNAME, NS, PTR, SOA, SRV, TXT};
use hickory_server::proto::rr::{Name, RData, Record, RecordType};

use crate::zone::answer::{Data, Wanted, name_server};

/// How long others may remember what we say, in seconds.
pub(super) const TTL: u32 = 30;

/// Seconds after which a secondary server would look again, try again, and give up: nobody
/// transfers this zone.
const REFRESH: (i32, i32, i32) = (7200, 1800, 86400);

pub(super) fn wanted(kind: RecordType) -> Wanted {
    match kind {
        RecordType::A => Wanted::A,
        RecordType::AAAA => Wanted::Aaaa,
        RecordType::SRV => Wanted::Srv,
        RecordType::PTR => Wanted::Ptr,
        RecordType::TXT => Wanted::Txt,
        RecordType::SOA => Wanted::Soa,
        RecordType::NS => Wanted::Ns,
        RecordType::ANY => Wanted::Any,
        _ => Wanted::Other,
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

/// The zone's start of authority, which also says how long "no such name" may be remembered.
pub(super) fn authority(domain: &str, serial: u32) -> Record {
    let (refresh, retry, expire) = REFRESH;
    let server = name(&name_server(domain));
    let person = name(&format!("hostmaster.{domain}"));
    let data = SOA::new(server, person, serial, refresh, retry, expire, TTL);
    Record::from_rdata(name(domain), TTL, RData::SOA(data))
}

/// A name as it goes on the wire. What is too long for DNS, which a Service's names cannot be,
/// becomes the root.
pub(super) fn name(text: &str) -> Name {
    let mut name = Name::from_utf8(text).unwrap_or_else(|_| Name::root());
    name.set_fqdn(true);
    name
}
