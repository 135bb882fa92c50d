//! What a new cluster has from its first moment.

use coracle_api::catalog::BUILTIN;
use coracle_api::codec::media_type::MediaType;
use http::StatusCode;

use crate::ApiError;
use crate::authn::Caller;
use crate::registry::{Body, Registry, Scope};
use crate::request::WriteOptions;

/// Namespaces that the system itself lives in.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Makes what is missing; what is there is left as it is.
pub async fn ensure(registry: &Registry) -> Result<(), ApiError> {
    let resource = BUILTIN.resource("", "v1", "namespaces").expect("namespaces are built in");
    let caller = Caller::system();
    let scope = Scope::new(resource, "", &caller);
    for name in NAMESPACES {
        let text = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        let body = Body { bytes: text.into(), media_type: MediaType::Json };
        match registry.create(&scope, &body, &WriteOptions::default()).await {
            Err(error) if error.code != StatusCode::CONFLICT => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
