//! `coracle image`: import, pull, list, inspect and remove images of a node. The image store of a
//! data directory has one writer at a time: if a node is running, it performs the operation. Images
//! of another runtime are reached through its CRI socket (`--endpoint`).

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
    Image as Known, ImageCommand, ImageError, ImageStore, ImagesConfig, Keyring, ProxyError,
    Reference, ReferenceError, Registries,
};

use crate::process;

/// Imports, pulls, lists, removes and inspects images of a node.
#[derive(Args)]
pub(crate) struct Image {
    #[command(flatten)]
    location: ImageLocation,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Import images from archives of `docker save`, or from OCI layouts
    Import {
        /// Name of an image that has none in the archive
        #[arg(long)]
        name: Option<String>,
        /// Pin the image: image garbage collection does not remove it
        #[arg(long)]
        pin: bool,
        /// Archives or OCI layout directories
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Pull an image from a registry
    Pull {
        #[command(flatten)]
        registry: Registry,
        /// Image reference: `nginx`, `registry.example.com/app:v1`
        image: String,
    },
    /// List images
    Ls {
        /// Print IDs only
        #[arg(short, long)]
        quiet: bool,
    },
    /// Remove images with all their names
    Rm {
        #[arg(required = true)]
        images: Vec<String>,
    },
    /// Print an image as JSON
    Inspect { image: String },
}

/// The image store to work on.
#[derive(Args)]
struct ImageLocation {
    /// Data directory of the node
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        default_value = "/var/lib/coracle"
    )]
    data_dir: PathBuf,
    /// CRI socket of another runtime to use instead, for example /run/containerd/containerd.sock
    #[arg(long, global = true, value_name = "SOCKET")]
    endpoint: Option<PathBuf>,
}

/// How to connect to a registry.
#[derive(Args)]
struct Registry {
    /// File with registry credentials, in the format of ~/.docker/config.json
    #[arg(long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
    /// File with additional CA certificates to trust
    #[arg(long, value_name = "FILE")]
    certificate_authority: Vec<PathBuf>,
    /// Registries to contact without TLS
    #[arg(long, value_name = "HOST:PORT")]
    plain_http: Vec<String>,
}

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("cannot start the async runtime")]
    Runtime(#[source] io::Error),
    #[error("{0:?}")]
    Name(String, #[source] ReferenceError),
    #[error("cannot read credentials from {0:?}")]
    Credentials(PathBuf, #[source] io::Error),
    #[error("cannot find {0:?}")]
    Path(PathBuf, #[source] io::Error),
    #[error("cannot read {}", .0.display())]
    Folder(PathBuf, #[source] io::Error),
    #[error("cannot import through --endpoint: CRI has no import; use --data-dir")]
    ImportThroughSocket,
    #[error(transparent)]
    Proxy(#[from] ProxyError),
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
        .block_on(act(&image.location, &image.command))
}

async fn act(location: &ImageLocation, command: &Command) -> Result<(), CommandError> {
    match command {
        Command::Import { name, pin, files } => {
            import(location, name.as_deref(), *pin, files).await?
        }
        Command::Pull { registry, image } => {
            process::print_line(pull(location, registry, image).await?)
        }
        Command::Ls { quiet } => {
            let images = location
                .read_only()?
                .list_images(ImageFilter::default())
                .await?;
            process::print(if *quiet {
                show::ids(&images)
            } else {
                show::table(&images)
            });
        }
        Command::Rm { images } => {
            for image in images {
                process::print_line(remove(location, image).await?);
            }
        }
        Command::Inspect { image } => {
            let status = location
                .read_only()?
                .image_status(spec(image), true)
                .await?;
            let found = status
                .image
                .ok_or_else(|| ImageError::Absent(image.clone()))?;
            process::print_line(show::json(&found, &status.info));
        }
    }

    Ok(())
}

async fn import(
    location: &ImageLocation,
    name: Option<&str>,
    pinned: bool,
    files: &[PathBuf],
) -> Result<(), CommandError> {
    if location.endpoint.is_some() {
        return Err(CommandError::ImportThroughSocket);
    }
    if let Some(name) = name {
        parse(name)?;
    }

    for file in files {
        let path = absolute(file)?;
        let command = ImageCommand::Import {
            path,
            name: name.map(str::to_owned),
            pinned,
        };

        for image in location.change(&command).await? {
            process::print_line(title(&image));
        }
    }

    Ok(())
}

/// Removes an image and returns its id.
async fn remove(location: &ImageLocation, image: &str) -> Result<String, CommandError> {
    let Some(socket) = &location.endpoint else {
        let removed = location
            .change(&ImageCommand::Remove {
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

async fn pull(
    location: &ImageLocation,
    registry: &Registry,
    image: &str,
) -> Result<String, CommandError> {
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

    if let Some(socket) = &location.endpoint {
        return Ok(Client::new(socket)?
            .pull_image(spec(image), None, None)
            .await?);
    }

    let authorities = registry
        .certificate_authority
        .iter()
        .map(|file| absolute(file));

    let command = ImageCommand::Pull {
        image: image.to_owned(),
        credentials: keyring.for_image(&reference),
        authorities: authorities.collect::<Result<_, _>>()?,
        plain: registry.plain_http.clone(),
    };
    let pulled = location.change(&command).await?;

    // The image may have other names too; print the requested one.
    let id = pulled
        .first()
        .map(|image| image.id.to_string())
        .unwrap_or_default();

    Ok(format!("{reference} {id}"))
}

impl ImageLocation {
    /// Performs an operation on the image store, or has the running node perform it.
    async fn change(&self, command: &ImageCommand) -> Result<Vec<Known>, CommandError> {
        // A running node has settings of its own.
        let registries = Registries {
            file: Some(PathBuf::from(process::REGISTRIES_FILE)),
            folder: Some(PathBuf::from(process::REGISTRY_HOSTS_DIR)),
            proxies: process::proxies()?,
            ..Registries::default()
        };
        let config = ImagesConfig {
            registries,
            ..self.config()
        };
        Ok(command.run(config, &progress::report()).await?)
    }

    /// The images, read-only; works while a node is running too.
    fn read_only(&self) -> Result<Arc<dyn Images>, CommandError> {
        match &self.endpoint {
            Some(socket) => Ok(Arc::new(Client::new(socket)?)),
            None => {
                self.check_exists()?;
                Ok(ImageStore::open_read_only(self.config())?)
            }
        }
    }

    /// A missing or unreadable data directory is an error, not an empty list.
    fn check_exists(&self) -> Result<(), CommandError> {
        let images = self.data_dir.join("images");
        for folder in [&self.data_dir, &images] {
            match fs::read_dir(folder) {
                // A cluster without a node has no images directory yet.
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

/// An absolute path, as another process may open it.
fn absolute(path: &Path) -> Result<PathBuf, CommandError> {
    std::path::absolute(path).map_err(|error| CommandError::Path(path.to_owned(), error))
}

fn spec(image: &str) -> ImageSpec {
    ImageSpec {
        image: image.to_owned(),
        ..ImageSpec::default()
    }
}

/// The name and the id of an image.
fn title(image: &Known) -> String {
    match image.tags.first().or(image.digests.first()) {
        Some(name) => format!("{name} {}", image.id),
        None => image.id.to_string(),
    }
}
