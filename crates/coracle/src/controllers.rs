//! The controllers in the process of the server: under their upstream identities, through its door.

use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use coracle_apiserver::InProcess;
use coracle_apiserver::authn::User;
use coracle_apiserver::authn::token::{Bound, KeyError, SigningKey, kept_token};
use coracle_client::{Client, Election, Journal, Tasks};
use coracle_controllers::serviceaccount_token::{TokenRequest, TokenSigner};
use coracle_controllers::{Context, Manager};
use tracing::warn;

use crate::host;
use crate::world::WORLD;

/// Whose informers all controllers share.
const MANAGER: &str = "system:kube-controller-manager";

/// Runs the controllers through the server's door; where other servers have the same store, as the
/// one that is elected. Never returns.
pub(crate) async fn run(door: &InProcess, manager: &Manager, elect: bool, journal: &Journal) {
    loop {
        let tasks = Tasks::new();
        let mut context = context(door, tasks.clone());
        context.journal = journal.clone();

        if !elect {
            return manager.run(&context).await;
        }

        let identity = format!("{}_{}", host::name(), WORLD.uid());
        let election = Election::new("kube-system", "kube-controller-manager", &identity);
        let client = door.client(
            User {
                name: MANAGER.to_string(),
                ..User::default()
            },
            WORLD,
        );

        let recorder = context
            .recorder
            .clone()
            .component("kube-controller-manager");

        if let Err(lost) = election
            .lead(&client, &recorder, || manager.run(&context))
            .await
        {
            warn!(%lost, "another server's controllers work now");
        }

        tasks.stop().await;
    }
}

/// What controllers are made with that go through the server's door.
fn context(door: &InProcess, tasks: Tasks) -> Context {
    let manager = User {
        name: MANAGER.to_string(),
        ..User::default()
    };
    let shared = door
        .client(manager, WORLD)
        .named(&user_agent("shared-informers"));
    let door = door.clone();
    Context::new(&shared, move |account| own(&door, account), tasks)
}

/// Why a key does not sign.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SigningKeyError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// What signs the tokens of accounts that are kept in secrets, with the key in a file.
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

/// The client of one controller, which is its service account.
fn own(door: &InProcess, account: &str) -> Client {
    let user = User {
        name: format!("system:serviceaccount:kube-system:{account}"),
        groups: vec![
            "system:serviceaccounts".to_string(),
            "system:serviceaccounts:kube-system".to_string(),
        ],
        ..User::default()
    };
    door.client(user, WORLD).named(&user_agent(account))
}

/// How requests of a controller call themselves. What stands before the slash owns the fields that
/// it writes.
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
