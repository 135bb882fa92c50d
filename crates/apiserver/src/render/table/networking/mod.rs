//! Rows of the networking.k8s.io group.

mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod service_cidr;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "Ingress" => |tree, now| Ok(ingress::row(&from_tree(tree)?, now)),
        "IngressClass" => |tree, now| Ok(ingress_class::row(&from_tree(tree)?, now)),
        "IPAddress" => |tree, now| Ok(ip_address::row(&from_tree(tree)?, now)),
        "NetworkPolicy" => |tree, now| Ok(network_policy::row(&from_tree(tree)?, now)),
        "ServiceCIDR" => |tree, now| Ok(service_cidr::row(&from_tree(tree)?, now)),
        _ => return None,
    };
    Some(printer)
}
