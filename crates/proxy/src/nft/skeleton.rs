//! The static part of a table.
//!
//! The path of a packet for a Service: `guards` (load balancer source ranges), `services` (DNAT to
//! an endpoint), otherwise `refuse-*` (without endpoints: rejected or dropped; unused cluster IPs
//! never leave the machine), and `postrouting` (masquerading).

use super::{Dialect, address, word};
use crate::rules::Family;

/// The table without Services.
pub(super) fn skeleton(dialect: &Dialect, family: Family) -> String {
    let (sets, hooks) = (sets(family), hooks(dialect, family));
    format!(
        "table {} {} {{\n{sets}{hooks}}}\n",
        word(family),
        dialect.table
    )
}

fn sets(family: Family) -> String {
    let address = address(family);
    let frontend = format!("{address} . inet_proto . inet_service");
    format!(
        "\tset cluster-ips {{ type {address}; }}
\tset node-port-ranges {{ type {address}; flags interval; }}
\tset service-ranges {{ type {address}; flags interval; }}
\tset pod-ranges {{ type {address}; flags interval; }}
\tset guarded {{ type {frontend}; }}
\tset allowed {{ type {frontend} . {address}; flags interval; }}
\tset hairpins {{ type {address} . {frontend}; }}
\tmap services {{ type {frontend} : verdict; }}
\tmap node-ports {{ type inet_proto . inet_service : verdict; }}
\tmap unserved {{ type {frontend} : verdict; }}
\tmap unserved-node-ports {{ type inet_proto . inet_service : verdict; }}
"
    )
}

/// TCP is rejected by a reset: ICMP errors are rate-limited by the kernel.
fn hooks(dialect: &Dialect, family: Family) -> String {
    let ip = word(family);
    let frontend = format!("{ip} daddr . meta l4proto . th dport");
    let loopback = match family {
        Family::V4 => "127.0.0.0/8",
        Family::V6 => "::1",
    };

    let (mark, masquerade_external) = (dialect.mark(), masquerade_external(dialect, family));
    let node_port =
        format!("{ip} daddr != {loopback} {ip} daddr @node-port-ranges meta l4proto . th dport");

    format!(
        "\tchain refused {{
\t\tmeta l4proto tcp reject with tcp reset
\t\treject
\t}}
\tchain guards {{
\t\tct state new {frontend} @guarded {frontend} . {ip} saddr != @allowed drop
\t}}
\tchain guard-prerouting {{
\t\ttype filter hook prerouting priority -110; policy accept;
\t\tjump guards
\t}}
\tchain guard-output {{
\t\ttype filter hook output priority -110; policy accept;
\t\tjump guards
\t}}
\tchain services {{
{masquerade_external}\t\t{frontend} vmap @services
\t\tfib daddr type local {node_port} vmap @node-ports
\t}}
\tchain prerouting {{
\t\ttype nat hook prerouting priority -100; policy accept;
\t\tjump services
\t}}
\tchain output {{
\t\ttype nat hook output priority -100; policy accept;
\t\tjump services
\t}}
\tchain refuse-input {{
\t\ttype filter hook input priority 0; policy accept;
\t\tct state new {node_port} vmap @unserved-node-ports
\t\tct state new {frontend} vmap @unserved
\t}}
\tchain unclaimed {{
\t\t{frontend} vmap @unserved
\t\t{ip} daddr @cluster-ips goto refused
\t\t{ip} daddr @service-ranges drop
\t}}
\tchain refuse-forward {{
\t\ttype filter hook forward priority 0; policy accept;
\t\tct state new jump unclaimed
\t}}
\tchain refuse-output {{
\t\ttype filter hook output priority 0; policy accept;
\t\tct state new jump unclaimed
\t}}
\tchain postrouting {{
\t\ttype nat hook postrouting priority 100; policy accept;
\t\tmeta mark and {mark} != 0 meta mark set meta mark xor {mark} masquerade fully-random
\t\tct status dnat {ip} saddr . {ip} daddr . meta l4proto . th dport @hairpins masquerade fully-random
\t}}
"
    )
}

/// Masquerades traffic to cluster IPs that does not come from local pods: replies must pass this
/// node.
fn masquerade_external(dialect: &Dialect, family: Family) -> String {
    let (ip, masquerade) = (word(family), dialect.masquerade());
    let who = if dialect.masquerade_all {
        Some(String::new())
    } else {
        dialect.of_pod(family, true)
    };
    who.map(|who| format!("\t\t{ip} daddr @cluster-ips {who} {masquerade}\n"))
        .unwrap_or_default()
}
