//! `DefaultBinder`: binds pods through the API.

use std::sync::Arc;

use super::{Args, Handle, args};
use crate::framework::Extensions;

pub(super) fn create(handle: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    args::none(args)?;

    Ok(Extensions {
        bind: Some(Arc::clone(&handle.binder)),
        ..Extensions::default()
    })
}
