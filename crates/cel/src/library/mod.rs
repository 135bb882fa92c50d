//! The libraries of v1.36, one folder or file each. A library is data: what it declares, in the
//! order in which upstream does.

use crate::declare::Library;

/// All libraries of the base environment, in the order in which upstream adds them.
pub static LIBRARIES: &[Library] = &[];
