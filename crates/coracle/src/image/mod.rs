//! `coracle image`: bring images to a node, look at them, remove them.
//!
//! The images of a data directory are worked on directly, which only one process does at a time: while a node runs there,
//! they can be looked at, and changed through its runtime (`--endpoint`), as those of any other runtime can.

mod progress;
mod show;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use clap::{Args, Subcommand};
use coracle_cri::v1::{ImageFilter, ImageSpec};
use coracle_cri::{Client, Images};
use coracle_runtime::images::{
    Image as Known, ImageError, ImageStore, ImagesConfig, Keep, Keyring, Reference, ReferenceError,
};

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
    #[arg(long, global = true, value_name = "DIR", default_value = "/var/lib/coracle")]
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
    #[error("no such image: {0}")]
    Absent(String),
    #[error("images are imported into a data directory, not through a runtime's socket")]
    ImportThroughSocket,
    #[error(transparent)]
    Images(#[from] ImageError),
    #[error(transparent)]
    Cri(#[from] coracle_cri::Error),
}

pub(crate) fn run(image: &Image) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(CommandError::Runtime)?.block_on(act(&image.place, &image.command))
}

#[expect(clippy::print_stdout, reason = "the result is what the command is for")]
async fn act(place: &Place, command: &Command) -> Result<(), CommandError> {
    match command {
        Command::Import { name, pin, files } => import(place, name.as_deref(), *pin, files).await?,
        Command::Pull { registry, image } => println!("{}", pull(place, registry, image).await?),
        Command::Ls { quiet } => {
            let images = place.to_look()?.list_images(ImageFilter::default()).await?;
            print!("{}", if *quiet { show::ids(&images) } else { show::table(&images) });
        }
        Command::Rm { images } => {
            let here = place.to_change()?;
            for image in images {
                let found = here.image_status(spec(image), false).await?.image;
                let found = found.ok_or_else(|| CommandError::Absent(image.clone()))?;
                here.remove_image(spec(&found.id)).await?;
                println!("{}", found.id);
            }
        }
        Command::Inspect { image } => {
            let status = place.to_look()?.image_status(spec(image), true).await?;
            let found = status.image.ok_or_else(|| CommandError::Absent(image.clone()))?;
            println!("{}", show::json(&found, &status.info));
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the result is what the command is for")]
async fn import(
    place: &Place,
    name: Option<&str>,
    pinned: bool,
    files: &[PathBuf],
) -> Result<(), CommandError> {
    if place.endpoint.is_some() {
        return Err(CommandError::ImportThroughSocket);
    }
    let keep = Keep { name: name.map(parse).transpose()?, pinned };
    let images = ImageStore::open(place.config())?;
    for file in files {
        for image in images.import(file, &keep).await? {
            println!("{}", title(&image));
        }
    }
    Ok(())
}

async fn pull(place: &Place, registry: &Registry, image: &str) -> Result<String, CommandError> {
    let reference = parse(image)?;
    let keyring = match &registry.auth_file {
        Some(file) => {
            let failed = |error| CommandError::Credentials(file.clone(), error);
            let bytes = std::fs::read(file).map_err(failed)?;
            Keyring::read(&bytes).map_err(|error| CommandError::Credentials(file.clone(), error.into()))?
        }
        None => Keyring::default(),
    };
    if let Some(socket) = &place.endpoint {
        return Ok(Client::new(socket)?.pull_image(spec(image), None, None).await?);
    }
    let mut config = place.config();
    config.registries.authorities.clone_from(&registry.certificate_authority);
    config.registries.plain.clone_from(&registry.plain_http);
    let images = ImageStore::open(config)?;
    let report = progress::report();
    let pulled = images.pull(&reference, &keyring.for_image(&reference), &report).await?;
    // It may have other names too; this is the one that was asked for.
    Ok(format!("{reference} {}", pulled.id))
}

impl Place {
    /// The images, to be changed.
    fn to_change(&self) -> Result<Arc<dyn Images>, CommandError> {
        match &self.endpoint {
            Some(socket) => Ok(Arc::new(Client::new(socket)?)),
            None => Ok(ImageStore::open(self.config())?),
        }
    }

    /// The images, to be looked at, also while a node works with them.
    fn to_look(&self) -> Result<Arc<dyn Images>, CommandError> {
        match &self.endpoint {
            Some(socket) => Ok(Arc::new(Client::new(socket)?)),
            None => Ok(ImageStore::open_to_look(self.config())?),
        }
    }

    fn config(&self) -> ImagesConfig {
        ImagesConfig::new(self.data_dir.join("images"), now)
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where the wall clock is handed in from")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn parse(name: &str) -> Result<Reference, CommandError> {
    name.parse().map_err(|error| CommandError::Name(name.to_owned(), error))
}

fn spec(image: &str) -> ImageSpec {
    ImageSpec { image: image.to_owned(), ..ImageSpec::default() }
}

/// By what a user calls it, and by what it is.
fn title(image: &Known) -> String {
    match image.tags.first().or(image.digests.first()) {
        Some(name) => format!("{name} {}", image.id),
        None => image.id.to_string(),
    }
}
