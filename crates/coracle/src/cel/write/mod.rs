//! What a server that has some manifests answers to a write: whole policies and definitions.
//!
//! It is asked: a [`server`] of this process, whose store is removed afterwards, gets the
//! [`manifests`], each after what it refers to. The policies come last, so that the same request,
//! as a dry run before them, shows what they have changed. Then the object is created, updated or
//! deleted; the [`answer`] has the verdict and what came with it.

mod answer;
mod changes;
mod manifests;
mod roles;
mod server;

use std::path::Path;

use coracle_api::Value;
use coracle_client::{Access, DeleteOptions, Error, Mapping};

use super::input::read;
use super::{Cel, CelError, Output};
use crate::process;
use answer::Answer;
use manifests::{Manifests, described};
use server::Server;

/// Why there is no answer to a write.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error(transparent)]
    Process(#[from] process::ProcessError),
    #[error("cannot make a folder for the store of the server: {0}")]
    Folder(std::io::Error),
    #[error("the server did not start")]
    Server(#[source] coracle_apiserver::RunError),
    #[error("the server ended before it was ready")]
    Ended,
    #[error("pass an object with --object, or with --old-object one that is deleted")]
    NoObject,
    #[error("{0} is not of one kind, namespace and name with the old object")]
    Another(String),
    #[error("{what} has no apiVersion, kind and name")]
    Nameless { what: &'static str },
    #[error("the server refuses {what} of --with: {error}")]
    Manifest { what: String, error: Error },
    #[error("the server refuses the old object: {0}")]
    Old(Error),
    #[error("{policy} has parameters: pass a binding with --with, or an object with --params")]
    NoParameters { policy: String },
    #[error("cannot read from the server: {0}")]
    Read(Error),
    #[error("the server refuses the request: {0}")]
    Refused(Error),
}

pub(super) fn run(command: &Cel) -> Result<(), CelError> {
    let optional = |file: &Option<std::path::PathBuf>| file.as_deref().map(read).transpose();
    let new = optional(&command.object)?;
    let old = optional(&command.old_object)?;
    let manifests = Manifests::read(
        &command.with,
        command.namespace.as_deref(),
        command.params.as_deref(),
    )?;

    let folder = tempfile::tempdir().map_err(WriteError::Folder)?;
    let written = Written::new(new, old)?;
    let answer = process::block_on(answer(command, folder.path(), &manifests, &written))
        .map_err(WriteError::from)??;

    match command.output {
        Output::Text => process::print(answer.text()),
        Output::Json => process::print(answer.json()),
    }
    Ok(answer.into_result()?)
}

async fn answer(
    command: &Cel,
    folder: &Path,
    manifests: &Manifests,
    written: &Written,
) -> Result<Answer, WriteError> {
    let server = Server::start(folder).await?;
    let asked = ask(command, &server, manifests, written).await;
    server.stop().await;
    asked
}

async fn ask(
    command: &Cel,
    server: &Server,
    manifests: &Manifests,
    written: &Written,
) -> Result<Answer, WriteError> {
    manifests.create_scene(server, written.any()).await?;
    if command.user.is_some() {
        server.aggregate_roles().await?;
    }

    let object = written.any();
    let mapping = server.mapping(object).await.map_err(WriteError::Refused)?;
    if let Some(old) = &written.old {
        create_old(server, old, &mapping).await?;
    }

    let access = server.access(&mapping, object, command.user.as_deref(), &command.groups);
    let operation = written.operation();
    let without = match manifests.has_policies() {
        true if operation != "DELETE" => Some(written.send(&access.clone().dry_run()).await),
        _ => None,
    };
    let mut warnings = manifests.create_policies(server).await?;

    server.forget_notes();
    let result = written.send(&access).await;
    let notes = server.notes();
    warnings.extend(notes.warnings);
    Ok(Answer {
        operation,
        object: described(object),
        without,
        result,
        warnings,
        audit: notes.audit,
    })
}

/// Creates the object that is replaced or deleted, with its status.
async fn create_old(server: &Server, old: &Value, mapping: &Mapping) -> Result<(), WriteError> {
    let access = server.access(mapping, old, None, &[]);
    let created = access.create(old).await.map_err(WriteError::Old)?;

    let status = old.get("status").filter(|status| !status.is_null());
    let has_status = mapping.subresources.iter().any(|name| name == "status");
    if let Some(status) = status.filter(|_| has_status) {
        let mut reported = created;
        if let Some(members) = reported.as_object_mut() {
            members.insert("status", status.clone());
        }
        let reports = access.subresource("status");
        reports.update(&reported).await.map_err(WriteError::Old)?;
    }
    Ok(())
}

/// The object that is written, as a server takes it: without what only servers set.
struct Written {
    new: Option<Value>,
    old: Option<Value>,
}

impl Written {
    fn new(new: Option<Value>, old: Option<Value>) -> Result<Written, WriteError> {
        let written = Written {
            new: new
                .map(|object| manifests::prepared(object, "the object"))
                .transpose()?,
            old: old
                .map(|object| manifests::prepared(object, "the old object"))
                .transpose()?,
        };
        match (&written.new, &written.old) {
            (None, None) => Err(WriteError::NoObject),
            (Some(new), Some(old)) if described(new) != described(old) => {
                Err(WriteError::Another(described(new)))
            }
            _ => Ok(written),
        }
    }

    /// The new object, or else the old one.
    fn any(&self) -> &Value {
        let either = self.new.as_ref().or(self.old.as_ref());
        either.expect("one of them was given")
    }

    fn operation(&self) -> &'static str {
        match (&self.new, &self.old) {
            (Some(_), None) => "CREATE",
            (Some(_), Some(_)) => "UPDATE",
            (None, _) => "DELETE",
        }
    }

    /// Sends the request; the object as it was written, or as it was before it was deleted.
    async fn send(&self, access: &Access) -> Result<Value, Error> {
        match (&self.new, &self.old) {
            (Some(new), None) => access.create(new).await,
            (Some(new), Some(_)) => {
                let current = access.get(new.meta().name()).await?;
                let mut new = new.clone();
                let version = current.meta().resource_version().to_owned();
                new.meta_mut().members().insert("resourceVersion", version);
                access.update(&new).await
            }
            (None, old) => {
                let old = old.as_ref().expect("one of them was given");
                let name = old.meta().name();
                let deleted = access.delete(name, &DeleteOptions::default()).await;
                deleted.map(|_| old.clone())
            }
        }
    }
}
