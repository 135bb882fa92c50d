//! Conversion of CPU shares (version 1) to weights (version 2). Pods and containers use different
//! formulas.

/// The weight of a pod or QoS class: the kubelet's linear formula.
pub fn pod_weight(shares: u64) -> u64 {
    1 + (shares.clamp(2, 262_144) - 2) * 9999 / 262_142
}

/// The weight of a container: the formula of OCI runtimes, in which 1024 shares are the default
/// weight of 100.
pub fn container_weight(shares: u64) -> u64 {
    match shares {
        0 => 0,
        1..=2 => 1,
        262_144.. => 10_000,
        shares => {
            let shares = u32::try_from(shares).expect("less than 262144");
            let log = f64::from(shares).log2();
            let exponent = (log * log + 125.0 * log) / 612.0 - 7.0 / 34.0;
            // Between 1 and 10,000, because of the arms above.
            let weight = 10_f64.powf(exponent).ceil();
            (1..=10_000_u32)
                .find(|whole| f64::from(*whole) >= weight)
                .map_or(10_000, u64::from)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_weights_equal_those_of_other_runtimes() {
        for (shares, weight) in [
            (0, 0),
            (2, 1),
            (102, 17),
            (256, 35),
            (512, 59),
            (1024, 100),
            (2048, 174),
        ] {
            assert_eq!(container_weight(shares), weight, "{shares} shares");
        }

        assert_eq!(container_weight(262_144), 10_000);
    }

    #[test]
    fn pod_weights_are_linear() {
        for (shares, weight) in [(0, 1), (2, 1), (1024, 39), (262_144, 10_000)] {
            assert_eq!(pod_weight(shares), weight, "{shares} shares");
        }
    }
}
