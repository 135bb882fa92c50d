//! Metrics: what a component counts, and the page that `/metrics` answers with.
//!
//! A component declares its metrics with [`metrics!`]: one entry has the name, the type, the labels,
//! the help and the stability of a metric, and makes a field to count with. A [`Registry`] holds the
//! metrics of one component of one cluster and renders them in the Prometheus text format; nothing
//! is global to the process. Names, types, labels and buckets are upstream's where upstream has the
//! metric.
//!
//! Counting is an atomic addition. A [`Family`] finds the series of some label values in a map that
//! is never locked for reading and compares keys of the caller's types, so counting allocates
//! nothing once the series exists. What can be read when it is asked for, is: [`Registry::read`].

mod buckets;
pub mod build_info;
mod family;
mod hasher;
mod labels;
pub mod process;
mod registry;
mod text;
mod value;

pub use buckets::Buckets;
pub use family::{Counters, Family, FloatGauges, Gauges, Histograms, Sources};
pub use labels::{LabelValue, Labels};
pub use registry::{Kind, Reading, Registry};
pub use text::CONTENT_TYPE;
pub use value::{Counter, FloatGauge, Gauge, Histogram, Source};

pub use Stability::{Alpha, Beta, Foreign, Stable};

/// How stable a metric is; the help begins with it, as upstream's does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stability {
    Alpha,
    Beta,
    Stable,
    /// Not one of Kubernetes' own: of the process, of CoreDNS, of etcd.
    Foreign,
}

impl Stability {
    /// The name in the help; empty: none.
    pub fn name(self) -> &'static str {
        match self {
            Alpha => "ALPHA",
            Beta => "BETA",
            Stable => "STABLE",
            Foreign => "",
        }
    }
}

/// Declares the metrics of a component, one entry each: the field to count with, then how it is
/// registered, which is a method of [`Registry`] with its arguments.
///
/// ```
/// use std::sync::Arc;
/// use coracle_metrics::{Alpha, Buckets, Counters, Histogram, Registry, Stable, metrics};
///
/// metrics! {
///     /// What the oven counts.
///     pub struct Oven {
///         /// By flour and result.
///         pub loaves: Counters<(&'static str, &'static str)> =
///             counters(Stable, "oven_loaves_total", "Number of loaves.", ["flour", "result"]),
///         pub baking: Arc<Histogram> =
///             histogram(Alpha, "oven_baking_seconds", "Time in the oven.", Buckets::seconds(&[60.0])),
///     }
/// }
///
/// let registry = Registry::default();
/// let oven = Oven::new(&registry);
/// oven.loaves.of(&("rye", "burnt")).inc();
/// assert!(registry.text().contains("oven_loaves_total{flour=\"rye\",result=\"burnt\"} 1\n"));
/// ```
#[macro_export]
macro_rules! metrics {
    (
        $(#[$about:meta])*
        $visible:vis struct $name:ident {
            $(
                $(#[$note:meta])*
                $public:vis $field:ident: $kind:ty = $register:ident($($argument:expr),* $(,)?)
            ),* $(,)?
        }
    ) => {
        $(#[$about])*
        $visible struct $name {
            $($(#[$note])* $public $field: $kind,)*
        }

        impl $name {
            /// Registers them. A second call with the same registry counts in the same metrics.
            $visible fn new(registry: &$crate::Registry) -> $name {
                $name {
                    $($field: registry.$register($($argument),*),)*
                }
            }
        }
    };
}
