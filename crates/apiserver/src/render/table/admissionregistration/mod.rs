//! Rows of the admissionregistration.k8s.io group.

mod mutating_admission_policy;
mod mutating_admission_policy_binding;
mod mutating_webhook_configuration;
mod params;
#[cfg(test)]
mod tests;
mod validating_admission_policy;
mod validating_admission_policy_binding;
mod validating_webhook_configuration;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "MutatingAdmissionPolicy" => {
            |tree, now| Ok(mutating_admission_policy::row(&from_tree(tree)?, now))
        }
        "MutatingAdmissionPolicyBinding" => |tree, now| {
            Ok(mutating_admission_policy_binding::row(
                &from_tree(tree)?,
                now,
            ))
        },
        "MutatingWebhookConfiguration" => {
            |tree, now| Ok(mutating_webhook_configuration::row(&from_tree(tree)?, now))
        }
        "ValidatingAdmissionPolicy" => {
            |tree, now| Ok(validating_admission_policy::row(&from_tree(tree)?, now))
        }
        "ValidatingAdmissionPolicyBinding" => |tree, now| {
            Ok(validating_admission_policy_binding::row(
                &from_tree(tree)?,
                now,
            ))
        },
        "ValidatingWebhookConfiguration" => |tree, now| {
            Ok(validating_webhook_configuration::row(
                &from_tree(tree)?,
                now,
            ))
        },
        _ => return None,
    };

    Some(printer)
}
