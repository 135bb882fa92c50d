//! The host name of a pod.

use coracle_api::names;
use k8s_openapi::api::core::v1::Pod;

use super::SpecError;
use crate::pod::PodView;

/// The kernel's limit of host names.
const KERNEL_LIMIT: usize = 64;
const LABEL_LIMIT: usize = 63;

/// The host name of a pod and its domain, which may be empty.
pub fn host_name(pod: &Pod, cluster_domain: &str) -> Result<(String, String), SpecError> {
    let spec = pod.pod_spec();
    if let Some(name) = &spec.hostname_override {
        let wrong = names::dns1123_subdomain(name);
        if !wrong.is_empty() {
            let why = wrong.join(";");
            return Err(SpecError(format!(
                "pod HostnameOverride {name:?} is not a valid DNS subdomain: {why}"
            )));
        }
        return Ok((cut(pod, name)?, String::new()));
    }

    let given = spec.hostname.as_deref().filter(|name| !name.is_empty());
    if let Some(name) = given {
        must_be_label("Hostname", name)?;
    }

    let name = cut(pod, given.unwrap_or(PodView::name(pod)))?;
    let domain = match spec.subdomain.as_deref().filter(|name| !name.is_empty()) {
        None => String::new(),
        Some(subdomain) => {
            must_be_label("Subdomain", subdomain)?;
            format!("{subdomain}.{}.svc.{cluster_domain}", pod.namespace())
        }
    };

    Ok((name, domain))
}

/// The kernel's host name: the FQDN if the pod requests it.
pub fn kernel_name(pod: &Pod, name: &str, domain: &str) -> Result<String, SpecError> {
    if domain.is_empty() || !pod.pod_spec().set_hostname_as_fqdn.unwrap_or_default() {
        return Ok(name.to_owned());
    }
    let whole = format!("{name}.{domain}");
    if whole.len() > KERNEL_LIMIT {
        let length = whole.len();
        return Err(SpecError(format!(
            "failed to construct FQDN from pod hostname and cluster domain, FQDN {whole} is too long ({KERNEL_LIMIT} characters is the max, {length} characters requested)"
        )));
    }
    Ok(whole)
}

fn must_be_label(what: &str, name: &str) -> Result<(), SpecError> {
    let wrong = names::dns1123_label(name);
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(SpecError(format!(
            "pod {what} {name:?} is not a valid DNS label: {}",
            wrong.join(";")
        ))),
    }
}

fn cut(pod: &Pod, name: &str) -> Result<String, SpecError> {
    if name.len() <= LABEL_LIMIT {
        return Ok(name.to_owned());
    }

    // Names are ASCII, as the API validates.
    let cut = name
        .get(..LABEL_LIMIT)
        .unwrap_or_default()
        .trim_end_matches(['-', '.']);

    match cut.is_empty() {
        true => Err(SpecError(format!(
            "hostname for pod {:?} was invalid: {name:?}",
            PodView::name(pod)
        ))),
        false => Ok(cut.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn check(name: &str, spec: PodSpec, expected: Result<&str, &str>) {
        let metadata = ObjectMeta {
            name: Some(name.into()),
            namespace: Some("ns".into()),
            ..ObjectMeta::default()
        };

        let pod = Pod {
            metadata,
            spec: Some(spec),
            ..Pod::default()
        };

        let name = host_name(&pod, "cluster.local")
            .and_then(|(name, domain)| kernel_name(&pod, &name, &domain));
        assert_eq!(name.as_deref().map_err(|error| error.0.as_str()), expected);
    }

    #[test]
    fn the_host_name_defaults_to_the_pods_name() {
        let text = |text: &str| Some(text.to_owned());
        check("web-0", PodSpec::default(), Ok("web-0"));
        check(
            "web-0",
            PodSpec {
                hostname: text("h"),
                ..PodSpec::default()
            },
            Ok("h"),
        );

        let fqdn = |subdomain: &str| PodSpec {
            subdomain: text(subdomain),
            set_hostname_as_fqdn: Some(true),
            ..PodSpec::default()
        };
        check("web-0", fqdn("sub"), Ok("web-0.sub.ns.svc.cluster.local"));

        let long = "a".repeat(62) + "-" + "b";
        check(&long, PodSpec::default(), Ok(&"a".repeat(62)));

        let whole = format!("{}.sub.ns.svc.cluster.local", "w".repeat(40));
        check(
            &"w".repeat(40),
            fqdn("sub"),
            Err(&format!(
                "failed to construct FQDN from pod hostname and cluster domain, FQDN {whole} is too long (64 characters is the max, 65 characters requested)"
            )),
        );

        check(
            "web-0",
            PodSpec {
                hostname_override: text("other.name"),
                ..fqdn("sub")
            },
            Ok("other.name"),
        );
    }
}
