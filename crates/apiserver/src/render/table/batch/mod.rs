//! Rows of the batch group.

mod cron_job;
mod job;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "CronJob" => |tree, now| Ok(cron_job::row(&from_tree(tree)?, now)),
        "Job" => |tree, now| Ok(job::row(&from_tree(tree)?, now)),
        _ => return None,
    };
    Some(printer)
}
