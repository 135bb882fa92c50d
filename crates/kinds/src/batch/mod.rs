//! Kinds of `batch`: pods that run to completion, once or on a schedule.

pub(crate) mod cron_job;
pub(crate) mod job;
#[cfg(test)]
mod print_tests;
