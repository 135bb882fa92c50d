//! The flags about kubelets: how this server reaches them for logs, exec, attach, port-forward and
//! proxies.

use coracle_apiserver::connect::KubeletConfig;

use super::flags::value;
use super::options::Options;
use crate::flags::Flag;
use crate::flags::values::{duration, file, list, number};

/// Kinds of addresses that nodes have.
const ADDRESS_TYPES: [&str; 5] = [
    "Hostname",
    "InternalIP",
    "ExternalIP",
    "InternalDNS",
    "ExternalDNS",
];

pub(super) const FLAGS: &[Flag<Options>] = &[
    value(
        "misc",
        "kubelet-certificate-authority",
        "FILE",
        "",
        "Who signed the certificates of kubelets. Without it they are not verified",
        |options, given| file(&mut options.kubelet_certificate_authority, given),
    ),
    value(
        "misc",
        "kubelet-client-certificate",
        "FILE",
        "",
        "The certificate that kubelets know this server by. Read again when it changes",
        |options, given| file(&mut options.kubelet_client_certificate, given),
    ),
    value(
        "misc",
        "kubelet-client-key",
        "FILE",
        "",
        "The key of --kubelet-client-certificate",
        |options, given| file(&mut options.kubelet_client_key, given),
    ),
    value(
        "misc",
        "kubelet-timeout",
        "DURATION",
        "5s",
        "How long a connection to a kubelet may take to come about",
        |options, given| duration(&mut options.kubelet_timeout, given),
    ),
    value(
        "misc",
        "kubelet-preferred-address-types",
        "TYPES",
        "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP",
        "Which address of a node its kubelet is reached at: the first of these that the node has",
        |options, given| list(&mut options.kubelet_preferred_address_types, given),
    ),
    value(
        "misc",
        "kubelet-port",
        "PORT",
        "10250",
        "Port of kubelets whose nodes do not say theirs (deprecated)",
        |options, given| number(&mut options.kubelet_port, given),
    ),
];

/// What the flags come to.
pub(super) fn complete(options: &Options, mistakes: &mut Vec<String>) -> KubeletConfig {
    let client_certificate = match (
        &options.kubelet_client_certificate,
        &options.kubelet_client_key,
    ) {
        (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
        (None, None) => None,
        _ => {
            let text =
                "--kubelet-client-certificate and --kubelet-client-key must be specified together";
            mistakes.push(text.to_string());
            None
        }
    };

    for given in &options.kubelet_preferred_address_types {
        if !ADDRESS_TYPES.contains(&given.as_str()) {
            mistakes.push(format!(
                "--kubelet-preferred-address-types: unknown type {given:?}"
            ));
        }
    }

    let defaults = KubeletConfig::default();
    let port = u16::try_from(options.kubelet_port).unwrap_or_else(|_| {
        mistakes.push(format!(
            "--kubelet-port {} must be between 0 and 65535",
            options.kubelet_port
        ));
        0
    });

    let given = options.kubelet_preferred_address_types.clone();
    KubeletConfig {
        certificate_authority: options.kubelet_certificate_authority.clone(),
        client_certificate,
        timeout: options.kubelet_timeout,
        preferred_address_types: if given.is_empty() {
            defaults.preferred_address_types
        } else {
            given
        },
        port,
    }
}
