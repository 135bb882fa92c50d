//! The deadline of a request that is not long-running: its `timeout` parameter, at most the
//! server's own timeout.

use std::time::Duration;

use coracle_api::time::parse_duration;
use http::StatusCode;

use crate::ApiError;
use crate::answer::{self, Answer};
use crate::request::Query;

pub(super) fn of(query: &Query, longest: Duration) -> Result<Duration, ApiError> {
    let Some(text) = query.get("timeout").filter(|text| !text.is_empty()) else {
        return Ok(longest);
    };
    let asked = parse_duration(text).map_err(|error| {
        ApiError::bad_request(format!(
            "invalid timeout specified in the request URL - {error}"
        ))
    })?;

    // Zero or a negative value means no timeout is requested.
    Ok(asked
        .to_std()
        .filter(|asked| !asked.is_zero() && *asked < longest)
        .unwrap_or(longest))
}

const PASSED: &str = concat!(
    r#"{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","#,
    r#""reason":"Timeout","details":{},"code":504}"#,
    "\n"
);

/// The response to a request that timed out. Upstream sends this one without kind and media type.
pub(super) fn passed() -> Answer {
    answer::bytes(
        StatusCode::GATEWAY_TIMEOUT,
        "text/plain; charset=utf-8",
        PASSED,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: Result<u64, &str>) {
        let given = of(&Query::parse(query), Duration::from_secs(60));
        let given = given
            .map(|within| within.as_secs())
            .map_err(|error| error.message);
        assert_eq!(given, expected.map_err(ToString::to_string), "{query}");
    }

    #[test]
    fn a_request_may_shorten_its_deadline_never_extend_it() {
        check("", Ok(60));
        check("timeout=", Ok(60));
        check("timeout=10s", Ok(10));
        check("timeout=2m", Ok(60));

        check("timeout=0s", Ok(60));
        check("timeout=-5s", Ok(60));
        check(
            "timeout=x",
            Err("invalid timeout specified in the request URL - time: invalid duration \"x\""),
        );

        check(
            "timeout=10",
            Err(
                "invalid timeout specified in the request URL - time: missing unit in duration \"10\"",
            ),
        );
    }
}
