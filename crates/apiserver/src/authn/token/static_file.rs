//! Tokens in a file: `token,user,uid[,"group,group"]`, read once.

use std::collections::HashMap;
use std::sync::Arc;

use coracle_api::time::Timestamp;
use tracing::warn;

use super::{Finding, Recognised, TokenAuthenticator, for_the_api};
use crate::authn::User;

pub struct StaticTokens {
    users: HashMap<String, Arc<User>>,
    /// The API's own.
    audiences: Vec<String>,
}

/// Why a file of tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadTokenFile {
    #[error("line {line} needs a token, a user name and a uid")]
    TooFew { line: usize },
    #[error("line {line} has a quote that is not closed")]
    Unclosed { line: usize },
}

impl StaticTokens {
    pub fn read(text: &str, audiences: Vec<String>) -> Result<StaticTokens, BadTokenFile> {
        let mut users = HashMap::new();
        for (line, text) in (1..).zip(text.lines()) {
            if text.trim().is_empty() {
                continue;
            }

            let columns = columns(text).ok_or(BadTokenFile::Unclosed { line })?;
            let [token, name, uid, rest @ ..] = columns.as_slice() else {
                return Err(BadTokenFile::TooFew { line });
            };
            if token.is_empty() {
                warn!(line, "token file line has no token; ignoring it");
                continue;
            }

            let groups = rest.first().map(String::as_str).unwrap_or_default();
            let groups = groups
                .split(',')
                .filter(|group| !group.is_empty())
                .map(|group| group.trim().to_string());

            let user = User {
                name: name.clone(),
                uid: uid.clone(),
                groups: groups.collect(),
                ..User::default()
            };

            if users.insert(token.clone(), Arc::new(user)).is_some() {
                warn!(
                    line,
                    "token file has a duplicate token; the later line is used"
                );
            }
        }

        Ok(StaticTokens { users, audiences })
    }
}

impl TokenAuthenticator for StaticTokens {
    fn find(&self, token: &str, audiences: &[String], _: Timestamp) -> Finding {
        match (
            self.users.get(token),
            for_the_api(&self.audiences, audiences),
        ) {
            (Some(user), Some(audiences)) => Finding::Known(Recognised {
                user: user.clone(),
                audiences,
            }),
            _ => Finding::Unknown,
        }
    }
}

/// The columns of a line; `None`: a quote is not closed.
fn columns(line: &str) -> Option<Vec<String>> {
    let (mut columns, mut rest) = (Vec::new(), line);
    loop {
        rest = rest.trim_start();
        let column = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (mut text, mut after) = (String::new(), quoted);
                loop {
                    let (part, behind) = after.split_once('"')?;
                    text.push_str(part);

                    // A quote within is written twice.
                    match behind.strip_prefix('"') {
                        Some(more) => {
                            text.push('"');
                            after = more;
                        }
                        None => break after = behind,
                    }
                }

                rest = after;

                text
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let text = rest[..end].to_string();
                rest = &rest[end..];
                text
            }
        };
        columns.push(column);

        match rest.trim_start().strip_prefix(',') {
            Some(more) => rest = more,
            None => return Some(columns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_upstream_reads_them() {
        let tokens =
            StaticTokens::read("a,jane,1,\"dev,ops\"\n\nb,joe,2\n,nobody,3\n", Vec::new()).unwrap();
        assert_eq!(tokens.users.len(), 2);
        assert_eq!(tokens.users["a"].groups, ["dev", "ops"]);
        assert_eq!(tokens.users["b"].name, "joe");
        assert!(StaticTokens::read("a,b", Vec::new()).is_err());
        assert!(StaticTokens::read("a,b,\"c", Vec::new()).is_err());
    }
}
