//! The lifecycle of pods on simulated nodes: from an annotation of the pod, or else a label of its
//! node.
//!
//! `coracle.local/simulate: "fail,start=2s,for=30s,code=3"` on a pod; on a node one word alone,
//! because labels hold no more.

use std::str::FromStr;

use coracle_api::time::{Duration, DurationError, parse_duration};

/// The annotation of pods and the label of nodes.
pub const SIMULATE: &str = "coracle.local/simulate";

/// The outcome of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It runs until it is deleted.
    Run,
    /// Its containers succeed after a while.
    Succeed,
    /// Its containers fail after a while.
    Fail,
    /// Its containers are never started.
    Hang,
}

/// The lifecycle of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its outcome; `None`: a pod whose containers are always restarted runs, any other succeeds.
    pub outcome: Option<Outcome>,
    /// How long its containers take to start.
    pub start: Duration,
    /// How long they take to be ready after that; `None`: they never are.
    pub ready: Option<Duration>,
    /// How long they run, if they end by themselves.
    pub run: Duration,
    /// How long they take to end when the pod is deleted; the grace period is the limit.
    pub stop: Duration,
    /// Their exit code when they fail.
    pub code: i32,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            outcome: None,
            start: Duration::from_secs(0),
            ready: Some(Duration::from_secs(0)),
            run: Duration::from_secs(1),
            stop: Duration::from_secs(0),
            code: 1,
        }
    }
}

/// What is wrong with a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    #[error("{0:?} is not run, succeed, fail, hang, start=, ready=, for=, stop= or code=")]
    Unknown(String),
    #[error("{key}: {source}")]
    Duration {
        key: &'static str,
        source: DurationError,
    },
    #[error("{0}: must not be negative")]
    Negative(&'static str),
    #[error("code: {0:?} is not a number from 1 to 255")]
    Code(String),
}

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Profile, ProfileError> {
        let mut profile = Profile::default();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            match part.split_once('=') {
                None => profile.outcome = Some(part.parse()?),
                Some(("start", text)) => profile.start = time("start", text)?,
                Some(("ready", "never")) => profile.ready = None,
                Some(("ready", text)) => profile.ready = Some(time("ready", text)?),
                Some(("for", text)) => profile.run = time("for", text)?,
                Some(("stop", text)) => profile.stop = time("stop", text)?,
                Some(("code", text)) => {
                    let code = text.parse().ok().filter(|code| (1..=255).contains(code));
                    profile.code = code.ok_or_else(|| ProfileError::Code(text.to_string()))?;
                }
                Some(_) => return Err(ProfileError::Unknown(part.to_string())),
            }
        }

        Ok(profile)
    }
}

fn time(key: &'static str, text: &str) -> Result<Duration, ProfileError> {
    let time = parse_duration(text).map_err(|source| ProfileError::Duration { key, source })?;
    if time.as_nanos() < 0 {
        Err(ProfileError::Negative(key))
    } else {
        Ok(time)
    }
}

impl FromStr for Outcome {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Outcome, ProfileError> {
        match text {
            "run" => Ok(Outcome::Run),
            "succeed" => Ok(Outcome::Succeed),
            "fail" => Ok(Outcome::Fail),
            "hang" => Ok(Outcome::Hang),
            _ => Err(ProfileError::Unknown(text.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_a_word_and_times() {
        let check =
            |text: &str, expected: Profile| assert_eq!(text.parse(), Ok(expected), "{text}");
        let seconds = Duration::from_secs;

        check("", Profile::default());
        check(
            "hang",
            Profile {
                outcome: Some(Outcome::Hang),
                ..Profile::default()
            },
        );

        check(
            "fail, start=2s,ready=never,for=1m,stop=3s,code=3",
            Profile {
                outcome: Some(Outcome::Fail),
                start: seconds(2),
                ready: None,
                run: seconds(60),
                stop: seconds(3),
                code: 3,
            },
        );
    }

    #[test]
    fn invalid_profiles_are_named() {
        let check = |text: &str, expected: &str| {
            assert_eq!(
                text.parse::<Profile>().unwrap_err().to_string(),
                expected,
                "{text}"
            );
        };

        let known = "is not run, succeed, fail, hang, start=, ready=, for=, stop= or code=";
        check("explode", &format!("\"explode\" {known}"));
        check("after=1s", &format!("\"after=1s\" {known}"));

        check("code=0", "code: \"0\" is not a number from 1 to 255");
        check("stop=-1s", "stop: must not be negative");
        assert!(
            "start=soon"
                .parse::<Profile>()
                .unwrap_err()
                .to_string()
                .starts_with("start: ")
        );
    }
}
