//! The outcome of a command on the error stream: a Status since v4, text before.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::pipe::Sender;
use crate::upgrade::Version;

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Success,
    /// It ended with a non-zero exit code.
    ExitCode {
        code: i32,
        message: String,
    },
    /// It did not run, or its outcome is unknown.
    Failed(String),
}

/// The error stream of a client.
pub struct Ending {
    sender: Sender,
    version: Version,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Status {
    metadata: serde_json::Map<String, serde_json::Value>,
    status: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Details {
    causes: Vec<Cause>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Cause {
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    message: String,
}

impl Ending {
    pub(super) fn new(sender: Sender, version: Version) -> Ending {
        Ending { sender, version }
    }

    /// Sends the outcome and closes the stream.
    pub async fn send(self, outcome: &Outcome) {
        let text = if self.version >= Version::V4 {
            outcome.to_status()
        } else {
            outcome.to_text()
        };
        if !text.is_empty() && self.sender.send(Bytes::from(text)).await.is_err() {
            return;
        }
        // An error means that the client disconnected.
        self.sender.finish().await.unwrap_or_default();
    }
}

impl Outcome {
    fn to_status(&self) -> Vec<u8> {
        let status = match self {
            Outcome::Success => Status {
                status: "Success".to_owned(),
                ..Status::default()
            },
            Outcome::ExitCode { code, message } => Status {
                status: "Failure".to_owned(),
                message: format!("command terminated with non-zero exit code: {message}"),
                reason: "NonZeroExitCode".to_owned(),
                details: Some(Details {
                    causes: vec![Cause {
                        reason: "ExitCode".to_owned(),
                        message: code.to_string(),
                    }],
                }),
                ..Status::default()
            },
            Outcome::Failed(message) => Status {
                status: "Failure".to_owned(),
                message: format!("Internal error occurred: {message}"),
                reason: "InternalError".to_owned(),
                details: Some(Details {
                    causes: vec![Cause {
                        reason: String::new(),
                        message: message.clone(),
                    }],
                }),
                code: Some(500),
                ..Status::default()
            },
        };

        serde_json::to_vec(&status).expect("strings and numbers can always be serialized")
    }

    fn to_text(&self) -> Vec<u8> {
        match self {
            Outcome::Success => Vec::new(),
            Outcome::ExitCode { message, .. } => {
                format!("command terminated with non-zero exit code: {message}").into_bytes()
            }
            Outcome::Failed(message) => message.clone().into_bytes(),
        }
    }

    /// Parses the outcome that a server sent, in the newest versions.
    pub fn from_status(text: &[u8]) -> Outcome {
        let Ok(status) = serde_json::from_slice::<Status>(text) else {
            let text = String::from_utf8_lossy(text);
            return Outcome::Failed(format!(
                "error stream protocol error: unknown error: {text}"
            ));
        };
        let causes = status.details.unwrap_or_default().causes;

        let code = causes.iter().find(|cause| cause.reason == "ExitCode");
        match (
            status.status.as_str(),
            status.reason.as_str(),
            code.and_then(|cause| cause.message.parse().ok()),
        ) {
            ("Success", ..) => Outcome::Success,
            ("Failure", "NonZeroExitCode", Some(code)) => {
                let message = status
                    .message
                    .trim_start_matches("command terminated with non-zero exit code: ");
                Outcome::ExitCode {
                    code,
                    message: message.to_owned(),
                }
            }
            _ => Outcome::Failed(
                status
                    .message
                    .trim_start_matches("Internal error occurred: ")
                    .to_owned(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_has_upstreams_format() {
        let check = |outcome: Outcome, status: &str, text: &str| {
            assert_eq!(String::from_utf8(outcome.to_status()).unwrap(), status);
            assert_eq!(String::from_utf8(outcome.to_text()).unwrap(), text);
            assert_eq!(Outcome::from_status(status.as_bytes()), outcome);
        };

        check(
            Outcome::Success,
            r#"{"metadata":{},"status":"Success"}"#,
            "",
        );

        check(
            Outcome::ExitCode {
                code: 7,
                message: "exit code 7".to_owned(),
            },
            concat!(
                r#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: exit code 7","#,
                r#""reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}"#
            ),
            "command terminated with non-zero exit code: exit code 7",
        );

        check(
            Outcome::Failed("no such thing".to_owned()),
            concat!(
                r#"{"metadata":{},"status":"Failure","message":"Internal error occurred: no such thing","#,
                r#""reason":"InternalError","details":{"causes":[{"message":"no such thing"}]},"code":500}"#
            ),
            "no such thing",
        );
    }
}
