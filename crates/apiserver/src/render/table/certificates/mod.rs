//! Rows of the certificates.k8s.io group.

mod certificate_signing_request;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "CertificateSigningRequest" => {
            |tree, now| Ok(certificate_signing_request::row(&from_tree(tree)?, now))
        }
        _ => return None,
    };
    Some(printer)
}
