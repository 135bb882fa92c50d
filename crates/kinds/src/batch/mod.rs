//! Kinds of `batch`: work that ends, and work that comes again.

pub(crate) mod cron_job;
pub(crate) mod job;
#[cfg(test)]
mod print_tests;
