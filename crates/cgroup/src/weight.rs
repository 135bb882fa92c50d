//! CPU shares of version 1 as weights of version 2. Pods and containers use two different curves.

/// The weight of a pod or QoS class: the straight line that the kubelet has always drawn.
pub fn pod_weight(shares: u64) -> u64 {
    1 + (shares.clamp(2, 262_144) - 2) * 9999 / 262_142
}

/// The weight of a container: the curve of the OCI runtimes, on which 1024 shares are the default
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
            // Between 1 and 10,000, by the arms above.
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
    fn containers_weigh_what_other_runtimes_give_them() {
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
    fn pods_weigh_on_a_straight_line() {
        for (shares, weight) in [(0, 1), (2, 1), (1024, 39), (262_144, 10_000)] {
            assert_eq!(pod_weight(shares), weight, "{shares} shares");
        }
    }
}
