//! Bootstrap tokens: secrets with which new nodes find and join the cluster. The `signer` signs the
//! public address and CA of the cluster with each token, so that who has a token can trust them;
//! the `cleaner` deletes tokens that have expired.

pub mod cleaner;
pub mod secret;
pub mod signer;

use coracle_client::{Informer, Resource, Selection, Whole};

use crate::framework::Context;

/// The namespace of the tokens.
const NAMESPACE: &str = "kube-system";
/// Their type, as a field selector.
const TYPE: &str = "type=bootstrap.kubernetes.io/token";

fn resource() -> Resource {
    Resource::builtin("", "v1", "secrets")
}

/// All tokens.
fn tokens(context: &Context) -> Informer<Whole> {
    let tokens = Selection::all(&resource()).namespace(NAMESPACE);
    context.informers.of(tokens.fields(TYPE))
}
