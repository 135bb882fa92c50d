//! The options of connections to kubelets, for logs, exec, attach, port-forward and proxy.

use coracle_apiserver::connect::KubeletConfig;

use super::options::Options;

/// Types of node addresses.
const ADDRESS_TYPES: [&str; 5] = [
    "Hostname",
    "InternalIP",
    "ExternalIP",
    "InternalDNS",
    "ExternalDNS",
];

/// Validates the flags.
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
        certificate_authorities: options
            .kubelet_certificate_authority
            .iter()
            .cloned()
            .collect(),
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
