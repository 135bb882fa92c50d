//! Kinds of `batch`: work that ends, and work that comes again.

pub(super) mod cron_job;
pub(super) mod job;
