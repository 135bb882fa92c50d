//! Writing a status.

use coracle_api::{Map, Value};
use coracle_client::{Access, Error};

/// Writes a status that was computed for `object`, whose resource and namespace are `objects`; on a
/// conflict once more, onto the server's current object. The observed generation in the status
/// stays that of `object`. `None` if the object was deleted or replaced.
pub(crate) async fn write_status(
    objects: &Access,
    object: &Value,
    status: &Map,
) -> Result<Option<Value>, Error> {
    let statuses = objects.clone().subresource("status");
    let written = match statuses.update(&with_status(object, status)).await {
        Err(error) if error.is_not_found() => return Ok(None),
        Err(_) => match objects.get(object.meta().name()).await {
            Ok(live) if live.meta().uid() != object.meta().uid() => return Ok(None),
            Ok(live) => statuses.update(&with_status(&live, status)).await,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => Err(error),
        },
        written => written,
    };

    written.map(Some)
}

/// Returns the object with another status.
pub(crate) fn with_status(object: &Value, status: &Map) -> Value {
    let mut object = object.clone();
    if let Some(members) = object.as_object_mut() {
        members.insert("status", status.clone());
    }
    object
}

/// Puts a number into a status from which upstream omits zeros.
pub(crate) fn put_count(status: &mut Map, name: &'static str, count: usize) {
    match count {
        0 => drop(status.remove(name)),
        count => drop(status.insert(name, number(count))),
    }
}

/// A count as stored in objects.
pub(crate) fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
