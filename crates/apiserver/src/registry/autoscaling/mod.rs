//! Kinds of `autoscaling`.

pub(super) mod horizontal_pod_autoscaler;
