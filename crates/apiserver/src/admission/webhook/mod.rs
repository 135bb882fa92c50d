//! MutatingAdmissionWebhook and ValidatingAdmissionWebhook: programs outside that change or refuse
//! objects.
//!
//! [`source`] reads the webhooks from their configurations, [`call`] finds out whether one is
//! concerned and asks it, with the AdmissionReview of [`review`]. [`mutating`] calls one after the
//! other and applies their patches; [`validating`] calls all at the same time. Configurations of
//! admission are never seen by webhooks.

mod call;
mod metrics;
mod mutating;
mod review;
mod source;
mod validating;

pub(super) use mutating::MutatingAdmissionWebhook;
pub(super) use validating::ValidatingAdmissionWebhook;
