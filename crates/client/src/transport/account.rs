//! Requests as a service account, with tokens that are requested from the server as needed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coracle_api::{Map, Value};
use http::{HeaderValue, Request, Response, StatusCode, header};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{Body, Transport, TransportError};
use crate::access::Access;
use crate::client::Client;
use crate::error::Error;
use crate::resource::Resource;

/// The requested lifetime of a token.
const LASTS: Duration = Duration::from_secs(3600);
/// A new token is requested after this part of its lifetime.
const RENEWED_AFTER: Duration = Duration::from_secs(3600 * 8 / 10);

/// A transport that authenticates as a service account.
pub struct ServiceAccountTransport {
    below: Arc<dyn Transport>,
    accounts: Access,
    name: String,
    token: Mutex<Option<(HeaderValue, Instant)>>,
}

impl ServiceAccountTransport {
    /// `below` is the transport to the server, without credentials; `client` may create the account
    /// and request its tokens.
    pub fn new(
        below: Arc<dyn Transport>,
        client: &Client,
        namespace: &str,
        name: &str,
    ) -> ServiceAccountTransport {
        let accounts = client
            .resource(&Resource::builtin("", "v1", "serviceaccounts"))
            .namespace(namespace);
        ServiceAccountTransport {
            below,
            accounts,
            name: name.to_string(),
            token: Mutex::new(None),
        }
    }

    /// The current token, renewed if needed.
    async fn token(&self) -> Result<HeaderValue, Error> {
        let mut held = self.token.lock().await;
        if let Some((token, _)) = held.as_ref().filter(|(_, at)| at.elapsed() < RENEWED_AFTER) {
            return Ok(token.clone());
        }

        let asked = Instant::now();
        let answer = match self.request_token().await {
            Err(error) if error.is_not_found() => {
                self.create_account().await?;
                self.request_token().await?
            }
            answer => answer?,
        };

        let token = answer
            .at(&["status", "token"])
            .and_then(Value::as_str)
            .unwrap_or_default();

        let mut token = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| Error::Answer("the token is not a valid header value".to_string()))?;
        token.set_sensitive(true);
        *held = Some((token.clone(), asked));

        Ok(token)
    }

    async fn request_token(&self) -> Result<Value, Error> {
        let mut request = Map::new();
        request.insert("apiVersion", "authentication.k8s.io/v1");
        request.insert("kind", "TokenRequest");
        let seconds = i64::try_from(LASTS.as_secs()).unwrap_or(i64::MAX);
        request
            .object_mut("spec")
            .insert("expirationSeconds", seconds);

        self.accounts
            .clone()
            .subresource("token")
            .create_below(&self.name, &Value::Object(request))
            .await
    }

    async fn create_account(&self) -> Result<(), Error> {
        let mut account = Map::new();
        account.insert("apiVersion", "v1");
        account.insert("kind", "ServiceAccount");
        let mut account = Value::Object(account);
        account.meta_mut().set_name(&self.name);
        match self.accounts.create(&account).await {
            Err(error) if !error.is_already_exists() => Err(error),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Transport for ServiceAccountTransport {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let token = self
            .token()
            .await
            .map_err(|error| TransportError::Credentials(error.into()))?;
        request.headers_mut().insert(header::AUTHORIZATION, token);

        let answer = self.below.send(request).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            // The account was recreated, or the server's key has changed: the next request gets a
            // new token.
            self.token.lock().await.take();
        }

        Ok(answer)
    }
}
