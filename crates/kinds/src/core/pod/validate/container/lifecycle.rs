//! Lifecycle hooks, and the handlers of hooks and probes.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::http_header_name;
use k8s_openapi::api::core::v1::{
    ExecAction, GRPCAction, HTTPGetAction, Lifecycle, LifecycleHandler, Probe, SleepAction,
    TCPSocketAction,
};

use super::super::{validate_enum, validate_required};
use super::ports;
use crate::strategy::Errors;
use crate::validate::{items, text};

pub(super) fn validate_lifecycle(
    lifecycle: &Lifecycle,
    grace: Option<i64>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    for (hook, name) in [
        (&lifecycle.post_start, "postStart"),
        (&lifecycle.pre_stop, "preStop"),
    ] {
        if let Some(hook) = hook {
            validate_lifecycle_handler(&Handler::of_hook(hook), grace, &at.field(name), errors);
        }
    }
}

/// One of the actions of a hook or a probe.
#[derive(Default)]
pub(super) struct Handler<'a> {
    exec: Option<&'a ExecAction>,
    http: Option<&'a HTTPGetAction>,
    tcp: Option<&'a TCPSocketAction>,
    grpc: Option<&'a GRPCAction>,
    sleep: Option<&'a SleepAction>,
}

impl<'a> Handler<'a> {
    pub(super) fn of_probe(probe: &'a Probe) -> Handler<'a> {
        Handler {
            exec: probe.exec.as_ref(),
            http: probe.http_get.as_ref(),
            tcp: probe.tcp_socket.as_ref(),
            grpc: probe.grpc.as_ref(),
            sleep: None,
        }
    }

    fn of_hook(hook: &'a LifecycleHandler) -> Handler<'a> {
        Handler {
            exec: hook.exec.as_ref(),
            http: hook.http_get.as_ref(),
            tcp: hook.tcp_socket.as_ref(),
            grpc: None,
            sleep: hook.sleep.as_ref(),
        }
    }
}

/// Validates that there is exactly one action, and that one; further ones are only counted.
pub(super) fn validate_lifecycle_handler(
    handler: &Handler<'_>,
    grace: Option<i64>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let given = [
        (handler.exec.is_some(), "exec"),
        (handler.http.is_some(), "httpGet"),
        (handler.tcp.is_some(), "tcpSocket"),
        (handler.grpc.is_some(), "grpc"),
        (handler.sleep.is_some(), "sleep"),
    ];

    let mut names = given
        .into_iter()
        .filter(|(given, _)| *given)
        .map(|(_, name)| name);

    let Some(first) = names.next() else {
        errors.push(FieldError::required(at, "must specify a handler type"));
        return;
    };

    let place = at.field(first);
    match handler {
        Handler {
            exec: Some(exec), ..
        } => {
            if items(&exec.command).is_empty() {
                errors.push(FieldError::required(&place.field("command"), ""));
            }
        }
        Handler {
            http: Some(http), ..
        } => validate_http_get(http, &place, errors),
        Handler { tcp: Some(tcp), .. } => {
            ports::validate_port_reference(&tcp.port, &place.field("port"), errors)
        }
        Handler {
            grpc: Some(grpc), ..
        } => ports::validate_port_number(grpc.port, &place.field("port"), errors),
        Handler {
            sleep: Some(sleep), ..
        } => validate_sleep(sleep.seconds, grace, &place, errors),
        _ => unreachable!("the first was found above"),
    }

    for name in names {
        errors.push(FieldError::forbidden(
            &at.field(name),
            "may not specify more than 1 handler type",
        ));
    }
}

fn validate_http_get(http: &HTTPGetAction, at: &Path<'_>, errors: &mut Errors) {
    validate_required(text(&http.path), &at.field("path"), errors);
    ports::validate_port_reference(&http.port, &at.field("port"), errors);
    validate_enum(
        text(&http.scheme),
        &["HTTP", "HTTPS"],
        &at.field("scheme"),
        errors,
    );

    for header in items(&http.http_headers) {
        refuse(
            &at.field("httpHeaders"),
            &header.name,
            http_header_name(&header.name),
            errors,
        );
    }
}

/// A hook that sleeps must end within the grace period. A missing grace period is reported
/// elsewhere.
fn validate_sleep(seconds: i64, grace: Option<i64>, at: &Path<'_>, errors: &mut Errors) {
    if let Some(grace) = grace.filter(|grace| !(0..=*grace).contains(&seconds)) {
        let detail =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.push(FieldError::invalid(at, seconds.to_string(), detail));
    }
}
