//! The controllers inside the server process. They use in-process clients with their upstream
//! identities.

use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use coracle_apiserver::InProcess;
use coracle_apiserver::authn::User;
use coracle_apiserver::authn::token::{Bound, KeyError, SigningKey, kept_token};
use coracle_client::{Client, Election, Journal, Tasks};
use coracle_controllers::serviceaccount_token::{TokenRequest, TokenSigner};
use coracle_controllers::{Context, Manager};
use coracle_metrics::Registry;
use tracing::warn;

use crate::host;
use crate::world::WORLD;

/// The user of the informers that all controllers share.
const MANAGER: &str = "system:kube-controller-manager";

/// Runs the controllers with in-process clients; with leader election where other servers share the
/// store. Never returns.
pub(crate) async fn run(
    in_process: &InProcess,
    manager: &Manager,
    elect: Option<&Election>,
    journal: &Journal,
    metrics: &Registry,
) {
    loop {
        let tasks = Tasks::new();
        let mut context = context(in_process, tasks.clone(), metrics);
        context.journal = journal.clone();

        let Some(election) = elect else {
            return manager.run(&context).await;
        };
        let client = client(in_process, metrics);

        let recorder = context
            .recorder
            .clone()
            .component("kube-controller-manager");

        if let Err(error) = election
            .lead(&client, &recorder, || manager.run(&context))
            .await
        {
            warn!(%error, "lost leader election of the controllers; waiting to be elected again");
        }

        tasks.stop().await;
    }
}

/// The election of the leader among servers that share a store.
pub(crate) fn election() -> Election {
    let identity = format!("{}_{}", host::name(), WORLD.uid());
    Election::new("kube-system", "kube-controller-manager", &identity)
}

/// The client of the manager itself.
pub(crate) fn client(in_process: &InProcess, metrics: &Registry) -> Client {
    let manager = User {
        name: MANAGER.to_string(),
        ..User::default()
    };
    in_process
        .client(manager.authenticated(), WORLD)
        .measured(metrics)
}

/// The context of controllers that use in-process clients.
fn context(in_process: &InProcess, tasks: Tasks, metrics: &Registry) -> Context {
    let shared = client(in_process, metrics).named(&user_agent("shared-informers"));
    let (in_process, metrics) = (in_process.clone(), metrics.clone());
    let own = move |account: &str| own(&in_process, account).measured(&metrics);
    Context::new(&shared, own, tasks)
}

/// Why a signing key cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SigningKeyError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Signs service account tokens stored in Secrets, with the key in `file`.
pub(crate) fn token_signer(file: &Path) -> Result<TokenSigner, SigningKeyError> {
    let key = SigningKey::read(&fs::read(file)?)?;
    Ok(TokenSigner(Arc::new(move |request: &TokenRequest<'_>| {
        let account = Bound {
            name: request.account.to_string(),
            uid: request.account_uid.to_string(),
        };
        kept_token(&key, request.namespace, &account, request.secret)
    })))
}

/// The client of one controller, as its service account.
fn own(in_process: &InProcess, account: &str) -> Client {
    let user = User {
        name: format!("system:serviceaccount:kube-system:{account}"),
        groups: vec![
            "system:serviceaccounts".to_string(),
            "system:serviceaccounts:kube-system".to_string(),
        ],
        ..User::default()
    };
    in_process.client(user, WORLD).named(&user_agent(account))
}

/// The User-Agent of a controller. The part before the slash is the field manager of its writes.
pub(crate) fn user_agent(account: &str) -> String {
    let version = coracle_apiserver::VERSION;
    let base = format!(
        "kube-controller-manager/{version} (linux/{})",
        std::env::consts::ARCH
    );
    if account.is_empty() {
        base
    } else {
        format!("{base} kubernetes/system:serviceaccount:kube-system:{account}")
    }
}
