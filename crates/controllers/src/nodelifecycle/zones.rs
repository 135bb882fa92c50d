//! How fast nodes may be tainted `NoExecute`: by zone, slower in partially disrupted zones, not at
//! all if everything is down.
//!
//! If everything seems to be down, it is more likely that this controller receives no heartbeats.
//! No I/O, and time is an argument.

use std::collections::BTreeMap;
use std::time::Duration;

use coracle_api::Text;
use coracle_api::time::Timestamp;

use super::Config;

/// The state of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Most nodes are ready.
    #[default]
    Normal,
    /// Many nodes are not ready.
    Partial,
    /// No node is ready.
    Full,
}

/// The number of ready nodes of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Those that say that they are ready.
    pub ready: usize,
    /// All others.
    pub not_ready: usize,
}

impl Census {
    /// The resulting state of the zone.
    pub fn state(self, config: &Config) -> State {
        let (ready, not_ready) = (as_float(self.ready), as_float(self.not_ready));
        match self {
            Census {
                ready: 0,
                not_ready: 1..,
            } => State::Full,
            Census { not_ready: 3.., .. }
                if not_ready / (ready + not_ready) >= config.unhealthy_zone_threshold =>
            {
                State::Partial
            }
            _ => State::Normal,
        }
    }

    /// How many nodes may be tainted per second.
    fn rate(self, state: State, config: &Config) -> f64 {
        match state {
            State::Normal | State::Full => config.eviction_rate,
            State::Partial if self.ready + self.not_ready > config.large_cluster_size => {
                config.secondary_eviction_rate
            }
            State::Partial => 0.0,
        }
    }
}

fn as_float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// All zones.
#[derive(Debug, Default)]
pub struct Zones {
    zones: BTreeMap<Text, Zone>,
    all_down: bool,
}

#[derive(Debug)]
struct Zone {
    state: State,
    rate: f64,
    /// One node may be tainted at once; the next waits until this time.
    next: Option<Timestamp>,
}

/// The consequence of a new count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneChange {
    /// None for the nodes.
    None,
    /// A rate changed: waiting nodes are reconciled.
    Rates,
    /// Everything is down: no pods are evicted.
    AllDown,
    /// Some nodes are ready again: the grace period of all nodes starts over.
    Recovered,
}

impl Zones {
    /// Whether everything is down.
    pub fn all_down(&self) -> bool {
        self.all_down
    }

    /// Updates the count of all nodes.
    pub fn count(&mut self, census: &BTreeMap<Text, Census>, config: &Config) -> ZoneChange {
        let states: BTreeMap<&Text, State> = census
            .iter()
            .map(|(zone, count)| (zone, count.state(config)))
            .collect();

        let was_down = std::mem::replace(
            &mut self.all_down,
            !states.is_empty() && states.values().all(|state| *state == State::Full),
        );

        self.zones.retain(|zone, _| census.contains_key(zone));
        let mut changed = false;
        for (zone, count) in census {
            let state = states[zone];
            let rate = count.rate(state, config);
            let known = self.zones.entry(zone.clone()).or_insert(Zone {
                state,
                rate,
                next: None,
            });
            changed |= known.rate != rate;

            (known.state, known.rate) = (state, rate);
        }

        match (was_down, self.all_down) {
            (false, true) => ZoneChange::AllDown,
            (true, false) => ZoneChange::Recovered,
            _ if changed => ZoneChange::Rates,
            _ => ZoneChange::None,
        }
    }

    /// Whether one more node of a zone may be tainted now.
    ///
    /// # Errors
    /// It may not; if it may later, after this time.
    pub fn take(&mut self, zone: &str, now: Timestamp) -> Result<(), Option<Duration>> {
        if self.all_down {
            return Err(None);
        }

        let Some(zone) = self.zones.get_mut(zone) else {
            return Err(None);
        };
        if zone.rate <= 0.0 {
            return Err(None);
        }
        if let Some(next) = zone.next.filter(|next| now < *next) {
            return Err(next.since(now).to_std());
        }

        zone.next = Some(now + Duration::from_secs_f64(1.0 / zone.rate).into());

        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

    fn zones(counts: &[(&str, usize, usize)]) -> BTreeMap<Text, Census> {
        counts
            .iter()
            .map(|(zone, ready, not_ready)| {
                (
                    Text::new(*zone),
                    Census {
                        ready: *ready,
                        not_ready: *not_ready,
                    },
                )
            })
            .collect()
    }

    #[test]
    fn zone_health_follows_from_the_share_of_ready_nodes() {
        let check = |ready, not_ready, expected| {
            let census = Census { ready, not_ready };
            assert_eq!(
                census.state(&Config::default()),
                expected,
                "{ready} {not_ready}"
            );
        };

        check(0, 0, State::Normal);
        check(0, 1, State::Full);
        check(1, 2, State::Normal);
        check(2, 3, State::Partial);
        check(9, 11, State::Partial);
        check(10, 11, State::Normal);
    }

    #[test]
    fn nodes_of_a_zone_are_tainted_one_after_another() {
        let mut known = Zones::default();
        known.count(&zones(&[("a", 9, 1), ("b", 9, 1)]), &Config::default());
        assert_eq!(known.take("a", NOON), Ok(()));
        assert_eq!(known.take("b", NOON), Ok(()));
        assert_eq!(
            known.take("a", NOON.plus_seconds(4)),
            Err(Some(Duration::from_secs(6)))
        );
        assert_eq!(known.take("a", NOON.plus_seconds(10)), Ok(()));
    }

    #[test]
    fn evictions_slow_down_or_stop_when_many_nodes_are_down() {
        let mut known = Zones::default();
        known.count(
            &zones(&[("small", 4, 6), ("large", 40, 60)]),
            &Config::default(),
        );
        assert_eq!(known.take("small", NOON), Err(None));
        assert_eq!(known.take("large", NOON), Ok(()));
        assert_eq!(
            known.take("large", NOON.plus_seconds(10)),
            Err(Some(Duration::from_secs(90)))
        );
    }

    #[test]
    fn if_all_zones_are_down_no_node_is_tainted_until_one_recovers() {
        let (mut known, config) = (Zones::default(), Config::default());
        assert_eq!(
            known.count(&zones(&[("a", 1, 0), ("b", 0, 2)]), &config),
            ZoneChange::None
        );

        assert_eq!(
            known.take("b", NOON),
            Ok(()),
            "a single zone that is down is still tainted"
        );

        assert_eq!(
            known.count(&zones(&[("a", 0, 1), ("b", 0, 2)]), &config),
            ZoneChange::AllDown
        );

        assert_eq!(known.take("b", NOON.plus_seconds(60)), Err(None));
        assert_eq!(
            known.count(&zones(&[("a", 1, 0), ("b", 0, 2)]), &config),
            ZoneChange::Recovered
        );

        assert_eq!(
            known.count(&zones(&[("a", 4, 6)]), &config),
            ZoneChange::Rates
        );
    }
}
