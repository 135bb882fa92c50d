//! What a route can consume and produce: a check of the bare types, before negotiation.

/// No route at this path produces what the client accepts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("406: Not Acceptable\n\nAvailable representations: {}", .0.join(", "))]
pub struct RouteNotAcceptable(pub Vec<&'static str>);

/// No route at this path consumes what the client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("415: Unsupported Media Type")]
pub struct RouteUnsupported;

/// Whether a route produces any of the accepted types. Parameters and qualities are ignored, and
/// `*/*` is the only wildcard: `application/*` is refused.
pub fn produces(accept: &str, produced: &[&'static str]) -> Result<(), RouteNotAcceptable> {
    let fits = |bare: &str| {
        bare == "*/*"
            || produced
                .iter()
                .any(|known| *known == "*/*" || *known == bare)
    };
    if accept.is_empty() || bare_types(accept).any(fits) {
        Ok(())
    } else {
        Err(RouteNotAcceptable(produced.to_vec()))
    }
}

/// Whether a route consumes the type of the body. A body without a type has an unknown one, unless
/// the method needs none.
pub fn consumes(
    content_type: &str,
    method: &str,
    consumed: &[&str],
) -> Result<(), RouteUnsupported> {
    let bodiless = matches!(method, "GET" | "HEAD" | "OPTIONS" | "DELETE" | "TRACE");
    let fits = |bare: &str| {
        consumed
            .iter()
            .any(|known| *known == "*/*" || *known == bare)
    };

    let accepted = match content_type {
        "" => bodiless || fits("application/octet-stream"),
        _ => bare_types(content_type).any(fits),
    };

    if accepted {
        Ok(())
    } else {
        Err(RouteUnsupported)
    }
}

fn bare_types(header: &str) -> impl Iterator<Item = &str> {
    header
        .split(',')
        .map(|clause| clause.split(';').next().unwrap_or(clause).trim_matches(' '))
}
