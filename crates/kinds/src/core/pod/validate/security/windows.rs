//! `windowsOptions`.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::dns1123_subdomain;
use k8s_openapi::api::core::v1::WindowsSecurityContextOptions;

use crate::strategy::Errors;

const CREDENTIAL_KIB: usize = 64;
const DOMAIN: usize = 256;
const USER: usize = 104;

pub(super) fn validate_windows_options(
    options: Option<&WindowsSecurityContextOptions>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(options) = options else { return };
    if let Some(name) = &options.gmsa_credential_spec_name {
        refuse(
            &at.field("gmsaCredentialSpecName"),
            name,
            dns1123_subdomain(name),
            errors,
        );
    }

    if let Some(credential) = &options.gmsa_credential_spec {
        let place = at.field("gmsaCredentialSpec");
        if credential.is_empty() {
            let detail = "gmsaCredentialSpec cannot be an empty string";
            errors.push(FieldError::invalid_str(&place, credential, detail));
        } else if credential.len() > CREDENTIAL_KIB << 10 {
            let detail = format!("gmsaCredentialSpec size must be under {CREDENTIAL_KIB} KiB");
            errors.push(FieldError::invalid_str(&place, credential, detail));
        }
    }

    if let Some(name) = &options.run_as_user_name {
        refuse(&at.field("runAsUserName"), name, user_name(name), errors);
    }
}

/// What is wrong with `DOMAIN\USER`, or with a user alone.
fn user_name(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string".to_owned()];
    }

    if name.contains(|letter: char| letter.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters".to_owned()];
    }

    let (domain, user) = match name.split_once('\\') {
        None => (None, name),
        Some((_, user)) if user.contains('\\') => {
            return vec!["runAsUserName cannot contain more than one backslash".to_owned()];
        }
        Some((domain, user)) => (Some(domain), user),
    };

    let mut messages = Vec::new();
    if let Some(domain) = domain {
        if domain.len() >= DOMAIN {
            messages.push(format!(
                "runAsUserName's Domain length must be under {DOMAIN} characters"
            ));
        }

        if !is_netbios(domain) && !is_dns(domain) {
            messages.push(
                "runAsUserName's Domain doesn't match the NetBios nor the DNS format".to_owned(),
            );
        }
    }

    if user.is_empty() {
        messages.push("runAsUserName's User cannot be empty".to_owned());
    } else if user.len() > USER {
        messages.push(format!(
            "runAsUserName's User length must not be longer than {USER} characters"
        ));
    }

    if !user.is_empty() && user.chars().all(|letter| matches!(letter, '.' | ' ')) {
        messages.push("runAsUserName's User cannot contain only periods or spaces".to_owned());
    }

    if user.contains([
        '"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']',
    ]) {
        messages.push(
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
                .to_owned(),
        );
    }

    messages
}

/// A name of at most 15 characters that does not begin with a dot.
fn is_netbios(domain: &str) -> bool {
    let forbidden =
        |letter: char| matches!(letter, '\\' | '/' | ':' | '*' | '?' | '"' | '<' | '>' | '|');
    !domain.is_empty()
        && !domain.starts_with('.')
        && domain.chars().count() <= 15
        && !domain.contains(forbidden)
}

fn is_dns(domain: &str) -> bool {
    domain.split('.').all(|label| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    })
}
