//! Health checks, and what `/healthz`, `/livez` and `/readyz` answer.

use std::sync::Arc;

use coracle_metrics::{Counters, Gauges, Stable, metrics};
use http::StatusCode;

use crate::answer::{self, Answer};

/// One check: its name, and what is wrong if it fails.
#[derive(Clone)]
pub struct Check {
    pub name: String,
    check: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl Check {
    pub fn new(
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Check {
        Check {
            name: name.into(),
            check: Arc::new(check),
        }
    }

    /// The process answers.
    pub fn ping() -> Check {
        Check::new("ping", || Ok(()))
    }
}

metrics! {
    /// What `/metrics/slis` shows.
    pub struct HealthMetrics {
        results: Gauges<(String, &'static str)> = gauges(
            Stable,
            "kubernetes_healthcheck",
            "The result of the last health check: 1 is healthy.",
            ["name", "type"],
        ),
        counts: Counters<(String, &'static str, &'static str)> = counters(
            Stable,
            "kubernetes_healthchecks_total",
            "Number of health checks by result.",
            ["name", "type", "status"],
        ),
    }
}

/// The checks of one path.
#[derive(Clone)]
pub struct Checks {
    /// `healthz`, `livez` or `readyz`.
    pub kind: &'static str,
    checks: Vec<Check>,
}

impl Checks {
    /// Without any check there is one that always succeeds, as upstream has it.
    pub fn new(kind: &'static str, checks: Vec<Check>) -> Checks {
        let checks = match checks.is_empty() {
            true => vec![Check::ping()],
            false => checks,
        };
        Checks { kind, checks }
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        let own = format!("/{}", self.kind);
        let of_checks = self
            .checks
            .iter()
            .map(|check| format!("{own}/{}", check.name));
        std::iter::once(own.clone()).chain(of_checks).collect()
    }

    /// The answer at a path below `/KIND`; `None`: there is no such path.
    pub(crate) fn answer(
        &self,
        path: &str,
        query: &str,
        counted: &HealthMetrics,
    ) -> Option<Answer> {
        let below = path.strip_prefix('/')?.strip_prefix(self.kind)?;
        if below.is_empty() {
            return Some(self.all(query, counted));
        }

        let name = below.strip_prefix('/')?;
        let check = self.checks.iter().find(|check| check.name == name)?;
        Some(match (check.check)() {
            Ok(()) => answer::text(StatusCode::OK, "ok"),
            Err(why) => {
                let text = format!("internal server error: {why}\n");
                answer::text(StatusCode::INTERNAL_SERVER_ERROR, text)
            }
        })
    }

    fn all(&self, query: &str, counted: &HealthMetrics) -> Answer {
        let values = |name: &'static str| {
            query
                .split('&')
                .map(|part| part.split_once('=').unwrap_or((part, "")))
                .filter(move |(key, _)| *key == name)
                .map(|(_, value)| value)
        };

        let excluded: Vec<&str> = values("exclude").collect();
        let (mut lines, mut failed) = (String::new(), false);
        for check in &self.checks {
            let name = &check.name;
            if excluded.contains(&name.as_str()) {
                lines.push_str(&format!("[+]{name} excluded: ok\n"));
                continue;
            }

            let result = (check.check)();
            counted.count(name, self.kind, result.is_ok());
            match result {
                Ok(()) => lines.push_str(&format!("[+]{name} ok\n")),
                Err(why) => {
                    tracing::info!(check = name, why, kind = self.kind, "health check failed");
                    failed = true;
                    // The path is open to all, so it does not say why.
                    lines.push_str(&format!("[-]{name} failed: reason withheld\n"));
                }
            }
        }

        let unknown: Vec<String> = excluded
            .iter()
            .filter(|name| !self.checks.iter().any(|check| check.name == **name))
            .map(|name| format!("{name:?}"))
            .collect();
        if !unknown.is_empty() {
            let unknown = unknown.join(",");
            lines.push_str(&format!(
                "warn: some health checks cannot be excluded: no matches for {unknown}\n"
            ));
        }

        let kind = self.kind;
        if failed {
            lines.push_str(&format!("{kind} check failed\n"));
            return answer::text(StatusCode::INTERNAL_SERVER_ERROR, lines);
        }
        if values("verbose").next().is_none() {
            return answer::text(StatusCode::OK, "ok");
        }
        lines.push_str(&format!("{kind} check passed\n"));
        answer::text(StatusCode::OK, lines)
    }
}

impl HealthMetrics {
    /// Counts a check of `/KIND`.
    pub fn count(&self, name: &str, kind: &'static str, succeeded: bool) {
        let status = if succeeded { "success" } else { "error" };
        let name = name.to_owned();
        self.results
            .of(&(name.clone(), kind))
            .set(i64::from(succeeded));
        self.counts.of(&(name, kind, status)).inc();
    }
}

#[cfg(test)]
mod tests {
    use coracle_metrics::Registry;
    use http_body_util::BodyExt as _;

    use super::*;

    async fn check(checks: &Checks, path: &str, query: &str, expected: Option<(u16, &str)>) {
        let counted = HealthMetrics::new(&Registry::default());
        let Some(answer) = checks.answer(path, query, &counted) else {
            return assert_eq!(None, expected, "{path}");
        };
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body = std::str::from_utf8(&body).unwrap();
        assert_eq!(Some((status, body)), expected, "{path}?{query}");
    }

    #[tokio::test]
    async fn health_is_answered_as_upstream_answers() {
        let good = Checks::new("livez", Vec::new());
        check(&good, "/livez", "", Some((200, "ok"))).await;
        check(
            &good,
            "/livez",
            "verbose",
            Some((200, "[+]ping ok\nlivez check passed\n")),
        )
        .await;
        check(&good, "/livez/ping", "", Some((200, "ok"))).await;
        check(&good, "/livez/pong", "", None).await;
        check(&good, "/livezz", "", None).await;

        let leads = Check::new("leaderElection", || Err("lost".to_owned()));
        let bad = Checks::new("healthz", vec![Check::ping(), leads]);
        let failed =
            "[+]ping ok\n[-]leaderElection failed: reason withheld\nhealthz check failed\n";
        check(&bad, "/healthz", "", Some((500, failed))).await;
        check(
            &bad,
            "/healthz",
            "exclude=leaderElection",
            Some((200, "ok")),
        )
        .await;
        let why = "internal server error: lost\n";
        check(&bad, "/healthz/leaderElection", "", Some((500, why))).await;
    }

    #[test]
    fn results_are_counted() {
        let registry = Registry::default();
        let counted = HealthMetrics::new(&registry);
        let checks = Checks::new(
            "readyz",
            vec![Check::new("shutdown", || Err(String::new()))],
        );
        drop(checks.answer("/readyz", "", &counted));
        let page = registry.text();
        let line =
            "kubernetes_healthchecks_total{name=\"shutdown\",status=\"error\",type=\"readyz\"} 1\n";
        assert!(page.contains(line), "{page}");
        let line = "kubernetes_healthcheck{name=\"shutdown\",type=\"readyz\"} 0\n";
        assert!(page.contains(line), "{page}");
    }
}
