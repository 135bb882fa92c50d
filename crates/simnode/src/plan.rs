//! What a pod on a simulated node does next. Pure: the input is the pod in the API, and the time.
//!
//! Since nothing else is remembered, a restarted fleet continues where it stopped. The API keeps
//! whole seconds, so shorter times pass at once.

use coracle_api::time::{Duration, Timestamp};

use crate::pod::{Phase, Pod, Restart};
use crate::profile::{Outcome, Profile, ProfileError};

/// The longest restart backoff, in seconds.
const LONGEST_BACKOFF: i64 = 300;

/// The exit code of a program that is terminated by SIGTERM.
const TERMINATED: i32 = 128 + 15;

/// What happens next to a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing, until it changes.
    Nothing,
    /// Nothing before this time.
    At(Timestamp),
    /// Write this status.
    Write(Stage),
    /// Delete it.
    Remove,
}

/// The stage of a pod's lifecycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The node has accepted it, and its containers do not run yet.
    Creating,
    /// Its annotation is invalid.
    Refused(ProfileError),
    /// Its containers run.
    Running {
        ready: bool,
        restarts: i64,
        since: Timestamp,
        ended_before: Option<i32>,
    },
    /// Its containers ended, and are restarted later.
    BackOff { code: i32 },
    /// Its containers ended for good.
    Ended { code: i32 },
}

/// Decides what happens next.
pub(crate) fn next(pod: &Pod, profile: &Result<Profile, ProfileError>, now: Timestamp) -> Next {
    let profile = match profile {
        Ok(profile) => *profile,
        Err(error) if pod.deletion.is_none() => {
            return if pod.start_time.is_none() {
                Next::Write(Stage::Refused(error.clone()))
            } else {
                Next::Nothing
            };
        }
        Err(_) => Profile::default(),
    };

    if let Some(deletion) = pod.deletion {
        let at = deletion.asked + profile.stop.min(deletion.grace);
        return match (pod.phase, pod.running_since) {
            // A pod that never ran has nothing to end.
            (Phase::Terminal, _) | (_, None) => Next::Remove,
            _ if now < at => Next::At(at),
            _ => Next::Write(Stage::Ended { code: TERMINATED }),
        };
    }

    if pod.phase == Phase::Terminal {
        return Next::Nothing;
    }

    match pod.running_since {
        Some(since) => running(pod, profile, since, now),
        None => starting(pod, profile, now),
    }
}

fn outcome(pod: &Pod, profile: Profile) -> Outcome {
    profile.outcome.unwrap_or(match pod.restart {
        Restart::Always => Outcome::Run,
        Restart::OnFailure | Restart::Never => Outcome::Succeed,
    })
}

fn starting(pod: &Pod, profile: Profile, now: Timestamp) -> Next {
    let hangs = outcome(pod, profile) == Outcome::Hang;

    if let Some(ended) = pod.last_end {
        let again = ended + backoff(pod.restarts);
        let ended_before = Some(exit_code(pod, profile));
        return if now < again {
            Next::At(again)
        } else {
            begin(profile, now, pod.restarts + 1, ended_before)
        };
    }

    match pod.start_time {
        None if hangs || profile.start.as_nanos() > 0 => Next::Write(Stage::Creating),
        Some(_) if hangs => Next::Nothing,
        Some(since) if now < since + profile.start => Next::At(since + profile.start),
        _ => begin(profile, now, 0, None),
    }
}

fn begin(profile: Profile, now: Timestamp, restarts: i64, ended_before: Option<i32>) -> Next {
    let ready = profile.ready.is_some_and(|after| after.as_nanos() == 0);
    Next::Write(Stage::Running {
        ready,
        restarts,
        since: now,
        ended_before,
    })
}

fn running(pod: &Pod, profile: Profile, since: Timestamp, now: Timestamp) -> Next {
    let ends = match outcome(pod, profile) {
        Outcome::Succeed | Outcome::Fail => Some(since + profile.run),
        Outcome::Run | Outcome::Hang => None,
    };

    if ends.is_some_and(|ends| ends <= now) {
        return end(pod, profile, now);
    }

    let ready_at = profile.ready.map(|after| since + after);
    let ready = ready_at.is_some_and(|at| at <= now);

    let says_ready = ready && pod.gates_are_open();
    if ready != pod.containers_ready || says_ready != pod.has("Ready") {
        let ended_before = pod.last_end.map(|_| exit_code(pod, profile));
        return Next::Write(Stage::Running {
            ready,
            restarts: pod.restarts,
            since,
            ended_before,
        });
    }

    let wakes = [ends, ready_at.filter(|at| now < *at)]
        .into_iter()
        .flatten()
        .min();

    wakes.map_or(Next::Nothing, Next::At)
}

fn exit_code(pod: &Pod, profile: Profile) -> i32 {
    if outcome(pod, profile) == Outcome::Fail {
        profile.code
    } else {
        0
    }
}

fn end(pod: &Pod, profile: Profile, now: Timestamp) -> Next {
    let code = exit_code(pod, profile);
    match pod.restart {
        Restart::Always => {}
        Restart::OnFailure if code != 0 => {}
        _ => return Next::Write(Stage::Ended { code }),
    }
    // The first restart is immediate.
    if backoff(pod.restarts).as_nanos() == 0 {
        return begin(profile, now, pod.restarts + 1, Some(code));
    }
    Next::Write(Stage::BackOff { code })
}

/// The backoff after this many restarts.
fn backoff(restarts: i64) -> Duration {
    let doublings = u32::try_from(restarts - 1);
    Duration::from_secs(doublings.map_or(0, |times| (10_i64 << times.min(10)).min(LONGEST_BACKOFF)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::{Condition, Deletion};

    const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

    fn seconds(count: i64) -> Duration {
        Duration::from_secs(count)
    }

    fn pod() -> Pod {
        Pod::default()
    }

    fn running_for(time: i64) -> Pod {
        let conditions = vec![Condition {
            kind: "Ready".into(),
            is_true: true,
            since: Default::default(),
        }];

        let since = Some(NOON - seconds(time));
        Pod {
            phase: Phase::Running,
            start_time: since,
            running_since: since,
            containers_ready: true,
            conditions,
            ..pod()
        }
    }

    fn check(pod: &Pod, profile: &str, expected: &Next) {
        assert_eq!(
            &next(pod, &profile.parse(), NOON),
            expected,
            "{profile} {pod:?}"
        );
    }

    fn starts(ready: bool, restarts: i64, ended_before: Option<i32>) -> Next {
        Next::Write(Stage::Running {
            ready,
            restarts,
            since: NOON,
            ended_before,
        })
    }

    #[test]
    fn a_pod_starts_when_its_time_has_come() {
        check(&pod(), "", &starts(true, 0, None));
        check(&pod(), "ready=2s", &starts(false, 0, None));
        check(&pod(), "ready=never", &starts(false, 0, None));
        check(&pod(), "start=2s", &Next::Write(Stage::Creating));

        let created = Pod {
            start_time: Some(NOON - seconds(1)),
            ..pod()
        };

        check(&created, "start=2s", &Next::At(NOON + seconds(1)));
        check(&created, "start=1s", &starts(true, 0, None));
        check(&pod(), "hang", &Next::Write(Stage::Creating));
        check(&created, "hang", &Next::Nothing);
        let refused = "nonsense".parse::<Profile>().unwrap_err();
        check(&pod(), "nonsense", &Next::Write(Stage::Refused(refused)));
        check(&created, "nonsense", &Next::Nothing);
    }

    #[test]
    fn a_running_pod_becomes_ready_and_ends() {
        check(&running_for(5), "", &Next::Nothing);
        check(
            &running_for(5),
            "succeed,for=9s",
            &Next::At(NOON + seconds(4)),
        );

        let unready = Pod {
            containers_ready: false,
            conditions: Vec::new(),
            ..running_for(5)
        };
        check(&unready, "ready=6s", &Next::At(NOON + seconds(1)));

        let since = NOON - seconds(5);
        let ready = Stage::Running {
            ready: true,
            restarts: 0,
            since,
            ended_before: None,
        };
        check(&unready, "ready=5s", &Next::Write(ready.clone()));

        // Another client set it to not ready.
        let doubted = Pod {
            conditions: Vec::new(),
            ..running_for(5)
        };
        check(&doubted, "", &Next::Write(ready));

        // A readiness gate is closed: the containers are ready, the pod is not.
        let gated = Pod {
            gates: vec!["example.org/g".into()],
            ..doubted
        };
        check(&gated, "", &Next::Nothing);
    }

    #[test]
    fn what_ends_is_started_again_as_its_policy_says() {
        let policy = |restart, restarts| Pod {
            restart,
            restarts,
            ..running_for(5)
        };

        check(
            &policy(Restart::Never, 0),
            "",
            &Next::Write(Stage::Ended { code: 0 }),
        );

        check(
            &policy(Restart::Never, 0),
            "fail,code=3",
            &Next::Write(Stage::Ended { code: 3 }),
        );

        check(
            &policy(Restart::OnFailure, 0),
            "succeed",
            &Next::Write(Stage::Ended { code: 0 }),
        );

        check(
            &policy(Restart::OnFailure, 0),
            "fail",
            &starts(true, 1, Some(1)),
        );

        check(
            &policy(Restart::OnFailure, 1),
            "fail",
            &Next::Write(Stage::BackOff { code: 1 }),
        );

        check(
            &policy(Restart::Always, 0),
            "succeed",
            &starts(true, 1, Some(0)),
        );

        check(
            &policy(Restart::Always, 7),
            "fail",
            &Next::Write(Stage::BackOff { code: 1 }),
        );

        let waits = |ago, restarts| Pod {
            running_since: None,
            last_end: Some(NOON - seconds(ago)),
            ..policy(Restart::Always, restarts)
        };

        check(&waits(4, 1), "fail", &Next::At(NOON + seconds(6)));
        check(&waits(10, 1), "fail", &starts(true, 2, Some(1)));
        check(&waits(10, 2), "fail", &Next::At(NOON + seconds(10)));
        check(&waits(0, 40), "fail", &Next::At(NOON + seconds(300)));
    }

    #[test]
    fn a_deleted_pod_ends_within_its_grace_period_and_goes() {
        let deleted = |ago, grace, pod: Pod| Pod {
            deletion: Some(Deletion {
                asked: NOON - seconds(ago),
                grace: seconds(grace),
            }),
            ..pod
        };

        let ended = Next::Write(Stage::Ended { code: 143 });
        check(&deleted(0, 30, running_for(5)), "", &ended.clone());
        check(
            &deleted(1, 30, running_for(5)),
            "stop=5s",
            &Next::At(NOON + seconds(4)),
        );

        check(&deleted(5, 30, running_for(5)), "stop=5s", &ended.clone());
        check(
            &deleted(1, 2, running_for(5)),
            "stop=5s",
            &Next::At(NOON + seconds(1)),
        );

        check(&deleted(0, 30, pod()), "hang", &Next::Remove);
        check(
            &deleted(
                0,
                30,
                Pod {
                    phase: Phase::Terminal,
                    ..running_for(5)
                },
            ),
            "",
            &Next::Remove,
        );

        check(&deleted(0, 30, pod()), "nonsense", &Next::Remove);
    }
}
