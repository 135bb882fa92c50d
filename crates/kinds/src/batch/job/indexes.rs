//! Lists of indexes: `0,2-3`.

use coracle_api::go_text::{Quoted, parse_int};

/// How many indexes a list has, below `completions`, in order.
pub(super) fn count(list: &str, completions: i32) -> Result<i64, String> {
    let (mut last, mut total) = (None, 0);
    for part in list.split(',').filter(|_| !list.is_empty()) {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!(
                "non-increasing order, previous: {last}, current: {first}"
            ));
        }
        total += end - first + 1;
        last = Some(end);
    }

    Ok(total)
}

fn interval(part: &str, completions: i32) -> Result<(i64, i64), String> {
    let limits: Vec<&str> = part.split('-').collect();
    if limits.len() > 2 {
        return Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
            Quoted(part)
        ));
    }

    let read = |text: &str| {
        let number = parse_int(text).map_err(|_| {
            format!(
                "cannot convert string to integer for index: {}",
                Quoted(text)
            )
        })?;

        match number >= i64::from(completions) {
            true => Err(format!("too large index: {}", Quoted(text))),
            false => Ok(number),
        }
    };
    let first = read(limits[0])?;
    let Some(end) = limits.get(1) else {
        return Ok((first, first));
    };

    let end = read(end)?;
    match first >= end {
        true => Err(format!(
            "non-increasing order, previous: {first}, current: {end}"
        )),
        false => Ok((first, end)),
    }
}

/// The first index that is in both lists. Lists that cannot be parsed are reported elsewhere.
pub(super) fn overlap(completed: &str, failed: &str, completions: i32) -> Option<i64> {
    let read = |list: &str| -> Vec<(i64, i64)> {
        list.split(',')
            .filter_map(|part| interval(part, completions).ok())
            .collect()
    };

    // Lists are in order, or reported as well.
    let mut failed = read(failed);
    failed.sort_unstable();

    read(completed).into_iter().find_map(|(first, end)| {
        let (other, _) = failed.get(failed.partition_point(|(_, last)| *last < first))?;
        (*other <= end).then(|| first.max(*other))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_counted_in_order_and_below_the_end() {
        let check = |list: &str, expected: Result<i64, &str>| {
            assert_eq!(count(list, 5), expected.map_err(str::to_owned), "{list}");
        };
        check("", Ok(0));
        check("0,2-3", Ok(3));
        check("3-1", Err("non-increasing order, previous: 3, current: 1"));

        check("2,1", Err("non-increasing order, previous: 2, current: 1"));
        check("0-9", Err("too large index: \"9\""));
        check(
            "x",
            Err("cannot convert string to integer for index: \"x\""),
        );

        check(
            "1-2-3",
            Err(
                "the fragment \"1-2-3\" violates the requirement that an index interval can have at most two parts separated by '-'",
            ),
        );

        assert_eq!(overlap("0-2", "2,4", 5), Some(2));
        assert_eq!(overlap("0-1", "2,4", 5), None);
    }
}
