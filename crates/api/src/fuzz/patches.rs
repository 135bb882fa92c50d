//! Properties of patches for any input.

use crate::catalog::BUILTIN;
use crate::codec::json;
use crate::patch::strategic::{self, Overwrite};
use crate::patch::{self, merge};
use crate::{Map, Value};

/// A document and a patch, a line each: the patch is refused or its result can be decoded.
pub fn json_patch(data: &[u8]) {
    let (document, text) = halves(data);
    let Ok(document) = json::parse_literal(document) else {
        return;
    };
    if let Ok(patch) = patch::json::decode_lenient(text)
        && let Ok(patched) = patch.apply(document.clone())
    {
        let written = json::to_vec(&patched);
        assert!(
            json::raw(&written).is_ok(),
            "what was patched is no JSON any more"
        );
    }

    if let Ok(checked) = patch::json::decode(text) {
        assert_eq!(
            patch::json::decode_lenient(text),
            Ok(checked.patch),
            "checking reads something else"
        );
    }

    if let Ok(checked) = merge::decode(text) {
        assert_eq!(
            merge::decode_lenient(text),
            Ok(checked.patch),
            "checking reads something else"
        );
    }

    if let Ok(patch) = merge::decode_lenient(text) {
        let written = json::to_vec(&merge::apply(document, patch));
        assert!(
            json::raw(&written).is_ok(),
            "what was merged is no JSON any more"
        );
    }
}

/// Two objects and a third, a line each: every way to combine them ends, with an object or an
/// error.
pub fn strategic_merge(data: &[u8]) {
    let (first, rest) = halves(data);
    let (second, third) = halves(rest);
    let (Some(first), Some(second)) = (object(first), object(second)) else {
        return;
    };
    let third = object(third).unwrap_or_default();
    let pod = BUILTIN.root(BUILTIN.kind_of("v1", "Pod").expect("Pods are built in"));

    // Errors are fine: only termination matters.
    let ends = |result: Result<Map, strategic::Error>| {
        result.map_err(|refusal| refusal.to_string()).is_ok()
    };
    ends(strategic::apply(first.clone(), second.clone(), pod));

    if let Ok(decoded) = strategic::decode(halves(rest).0) {
        assert_eq!(decoded.patch, second, "a patch is read as any object is");
    }

    if let Ok(patch) = strategic::between(&first, &second, pod, &[]) {
        ends(strategic::apply(first.clone(), patch.clone(), pod));
        ends(strategic::apply(third.clone(), patch, pod));
    }

    for overwrite in [Overwrite::Yes, Overwrite::No] {
        ends(strategic::three_way(
            &first,
            &second,
            &third,
            pod,
            overwrite,
            &[],
        ));
    }

    let patch = merge::between(&first, &second);
    merge::apply(Value::Object(first.clone()), Value::Object(patch));
    let patch = merge::three_way(&first, &second, &third, &[]).expect("there are no preconditions");
    merge::apply(Value::Object(third), Value::Object(patch));
}

fn object(text: &[u8]) -> Option<Map> {
    match json::parse(text) {
        Ok(Value::Object(map)) => Some(map),
        _ => None,
    }
}

/// The text before the first line break, and the text after it.
pub(super) fn halves(data: &[u8]) -> (&[u8], &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == b'\n');
    (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    )
}
