//! `coracle image`: bring images to a node, look at them, remove them.
//!
//! The images of a data directory are worked on directly, which only one process does at a time:
//! where a node runs, it does what it is asked for. Those of another runtime are reached through
//! its socket (`--endpoint`).

mod progress;
mod show;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use clap::{Args, Subcommand};
use coracle_cri::v1::{ImageFilter, ImageSpec};
use coracle_cri::{Client, Images};
use coracle_runtime::images::{
    Deed, Image as Known, ImageError, ImageStore, ImagesConfig, Keyring, Reference, ReferenceError,
};

use crate::process;

/// Imports, pulls, lists, removes and shows the images of a node.
#[derive(Args)]
pub(crate) struct Image {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Import images from archives of `docker save`, or from OCI layouts
    Import {
        /// Name for an image that brings none
        #[arg(long)]
        name: Option<String>,
        /// Keep it, whatever needs room
        #[arg(long)]
        pin: bool,
        /// Archives or folders
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Pull an image from a registry
    Pull {
        #[command(flatten)]
        registry: Registry,
        /// What to pull: `nginx`, `registry.example.com/app:v1`
        image: String,
    },
    /// List images
    Ls {
        /// Show ids only
        #[arg(short, long)]
        quiet: bool,
    },
    /// Remove images with all their names
    Rm {
        #[arg(required = true)]
        images: Vec<String>,
    },
    /// Show what is known of an image, as JSON
    Inspect { image: String },
}

/// Where the images are.
#[derive(Args)]
struct Place {
    /// Data directory of the node
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "/var/lib/coracle"
    )]
    data_dir: PathBuf,
    /// Socket of a runtime that has them instead, for example /run/containerd/containerd.sock
    #[arg(long, global = true, value_name = "SOCKET")]
    endpoint: Option<PathBuf>,
}

/// How a registry is spoken to.
#[derive(Args)]
struct Registry {
    /// Credentials, as `docker login` keeps them
    #[arg(long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
    /// Further certificate authorities to trust
    #[arg(long, value_name = "FILE")]
    certificate_authority: Vec<PathBuf>,
    /// Registries that are spoken to without TLS
    #[arg(long, value_name = "HOST:PORT")]
    plain_http: Vec<String>,
}

/// Why the command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("the runtime cannot be started")]
    Runtime(#[source] io::Error),
    #[error("{0:?}")]
    Name(String, #[source] ReferenceError),
    #[error("cannot read credentials from {0:?}")]
    Credentials(PathBuf, #[source] io::Error),
    #[error("cannot find {0:?}")]
    Path(PathBuf, #[source] io::Error),
    #[error("cannot read {}", .0.display())]
    Folder(PathBuf, #[source] io::Error),
    #[error("images are imported into a data directory, not through a runtime's socket")]
    ImportThroughSocket,
    #[error(transparent)]
    Images(#[from] ImageError),
    #[error(transparent)]
    Cri(#[from] coracle_cri::Error),
}

pub(crate) fn run(image: &Image) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime
        .map_err(CommandError::Runtime)?
        .block_on(act(&image.place, &image.command))
}

async fn act(place: &Place, command: &Command) -> Result<(), CommandError> {
    match command {
        Command::Import { name, pin, files } => import(place, name.as_deref(), *pin, files).await?,
        Command::Pull { registry, image } => {
            process::print_line(pull(place, registry, image).await?)
        }
        Command::Ls { quiet } => {
            let images = place.to_look()?.list_images(ImageFilter::default()).await?;
            process::print(if *quiet {
                show::ids(&images)
            } else {
                show::table(&images)
            });
        }
        Command::Rm { images } => {
            for image in images {
                process::print_line(remove(place, image).await?);
            }
        }
        Command::Inspect { image } => {
            let status = place.to_look()?.image_status(spec(image), true).await?;
            let found = status
                .image
                .ok_or_else(|| ImageError::Absent(image.clone()))?;
            process::print_line(show::json(&found, &status.info));
        }
    }

    Ok(())
}

async fn import(
    place: &Place,
    name: Option<&str>,
    pinned: bool,
    files: &[PathBuf],
) -> Result<(), CommandError> {
    if place.endpoint.is_some() {
        return Err(CommandError::ImportThroughSocket);
    }
    if let Some(name) = name {
        parse(name)?;
    }

    for file in files {
        let path = absolute(file)?;
        let deed = Deed::Import {
            path,
            name: name.map(str::to_owned),
            pinned,
        };

        for image in place.change(&deed).await? {
            process::print_line(title(&image));
        }
    }

    Ok(())
}

/// Removes an image, and answers with its id.
async fn remove(place: &Place, image: &str) -> Result<String, CommandError> {
    let Some(socket) = &place.endpoint else {
        let removed = place
            .change(&Deed::Remove {
                image: image.to_owned(),
            })
            .await?;

        return Ok(removed
            .first()
            .map(|image| image.id.to_string())
            .unwrap_or_default());
    };
    let there = Client::new(socket)?;
    let found = there.image_status(spec(image), false).await?.image;

    let found = found.ok_or_else(|| ImageError::Absent(image.to_owned()))?;
    there.remove_image(spec(&found.id)).await?;

    Ok(found.id)
}

async fn pull(place: &Place, registry: &Registry, image: &str) -> Result<String, CommandError> {
    let reference = parse(image)?;
    let keyring = match &registry.auth_file {
        Some(file) => {
            let failed = |error| CommandError::Credentials(file.clone(), error);
            let bytes = fs::read(file).map_err(failed)?;
            Keyring::read(&bytes)
                .map_err(|error| CommandError::Credentials(file.clone(), error.into()))?
        }
        None => Keyring::default(),
    };

    if let Some(socket) = &place.endpoint {
        return Ok(Client::new(socket)?
            .pull_image(spec(image), None, None)
            .await?);
    }

    let authorities = registry
        .certificate_authority
        .iter()
        .map(|file| absolute(file));

    let deed = Deed::Pull {
        image: image.to_owned(),
        credentials: keyring.for_image(&reference),
        authorities: authorities.collect::<Result<_, _>>()?,
        plain: registry.plain_http.clone(),
    };
    let pulled = place.change(&deed).await?;

    // It may have other names too; this is the one that was asked for.
    let id = pulled
        .first()
        .map(|image| image.id.to_string())
        .unwrap_or_default();

    Ok(format!("{reference} {id}"))
}

impl Place {
    /// Changes the images, or has the node change them that runs there.
    async fn change(&self, deed: &Deed) -> Result<Vec<Known>, CommandError> {
        Ok(deed.carry_out(self.config(), &progress::report()).await?)
    }

    /// The images, to be looked at, also while a node works with them.
    fn to_look(&self) -> Result<Arc<dyn Images>, CommandError> {
        match &self.endpoint {
            Some(socket) => Ok(Arc::new(Client::new(socket)?)),
            None => {
                self.is_there()?;
                Ok(ImageStore::open_to_look(self.config())?)
            }
        }
    }

    /// What is not there, or not to be read, has not just no images.
    fn is_there(&self) -> Result<(), CommandError> {
        let images = self.data_dir.join("images");
        for folder in [&self.data_dir, &images] {
            match fs::read_dir(folder) {
                // A cluster without a node has none yet.
                Err(error) if *folder == images && error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(CommandError::Folder(folder.clone(), error)),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    fn config(&self) -> ImagesConfig {
        ImagesConfig::new(self.data_dir.join("images"), now)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is where the wall clock is handed in from"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

fn parse(name: &str) -> Result<Reference, CommandError> {
    name.parse()
        .map_err(|error| CommandError::Name(name.to_owned(), error))
}

/// A path as a process finds it that is elsewhere.
fn absolute(path: &Path) -> Result<PathBuf, CommandError> {
    std::path::absolute(path).map_err(|error| CommandError::Path(path.to_owned(), error))
}

fn spec(image: &str) -> ImageSpec {
    ImageSpec {
        image: image.to_owned(),
        ..ImageSpec::default()
    }
}

/// By what a user calls it, and by what it is.
fn title(image: &Known) -> String {
    match image.tags.first().or(image.digests.first()) {
        Some(name) => format!("{name} {}", image.id),
        None => image.id.to_string(),
    }
}
