//! Process-wide setup: runtime, logging, data directory, signals, the ready message.

use std::fmt::Display;
use std::fs::DirBuilder;
use std::future::Future;
use std::io::{self, Write};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

use coracle_client::Environment;
use coracle_runtime::OpenFiles;
use coracle_runtime::images::{Proxies, ProxyError};
use coracle_settings::Pattern;
use coracle_store::embedded::files::RealFiles;
use coracle_store::embedded::{Config, Embedded, OpenError, SystemClock};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing::Metadata;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

use crate::json_log::JsonLines;
use crate::parent::Parent;
use crate::settings::{LogFormat, Logs};

/// Why a process cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    #[error("cannot start the async runtime: {0}")]
    Runtime(io::Error),
    #[error("cannot use {} as the data directory: {error}", folder.display())]
    DataDir { folder: PathBuf, error: io::Error },
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Logs to standard error. The level is upstream's `-v`: 4 and above is debug, 6 and above trace;
/// below 0 information is left out, then warnings.
pub(crate) fn log(logs: &Logs) {
    let patterns = logs.modules.0.clone();
    let default = level(logs.verbosity);
    let levels = patterns.iter().map(|pattern| level(pattern.level));
    let highest = levels.fold(default, LevelFilter::max);

    let wanted =
        FilterFn::new(move |metadata| *metadata.level() <= log_level(metadata, default, &patterns));
    let wanted = wanted.with_max_level_hint(highest);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false);
    let lines = match logs.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.event_format(JsonLines).boxed(),
    };

    let subscriber = Registry::default().with(lines.with_filter(wanted));
    if tracing::subscriber::set_global_default(subscriber).is_err() {
        tracing::debug!("logging is already set up");
    }
}

fn level(verbosity: i32) -> LevelFilter {
    match verbosity {
        ..-1 => LevelFilter::ERROR,
        -1 => LevelFilter::WARN,
        0..4 => LevelFilter::INFO,
        4..6 => LevelFilter::DEBUG,
        6.. => LevelFilter::TRACE,
    }
}

/// The level of one place in the source.
fn log_level(metadata: &Metadata<'_>, default: LevelFilter, patterns: &[Pattern]) -> LevelFilter {
    let name = metadata.file().map(source_name).unwrap_or_default();
    let pattern = patterns.iter().find(|pattern| pattern.matches(name));
    match pattern {
        Some(pattern) => level(pattern.level),
        // hickory logs every query at info.
        None if default == LevelFilter::INFO && metadata.target().starts_with("hickory_server") => {
            LevelFilter::WARN
        }
        None => default,
    }
}

/// The name of a source file without its ending, or that of the folder of a `mod.rs`.
fn source_name(file: &str) -> &str {
    let file = file.strip_suffix(".rs").unwrap_or(file);
    let file = file.strip_suffix("/mod").unwrap_or(file);
    file.rsplit('/').next().unwrap_or(file)
}

/// The environment that configurations of the API client refer to.
#[expect(
    clippy::disallowed_methods,
    reason = "this is where configuration is read from the environment"
)]
pub(crate) fn environment() -> Environment {
    Environment::read(|name| std::env::var(name).ok())
}

/// A variable of the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "this is where configuration is read from the environment"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Where mirrors and settings of registries are looked for.
pub(crate) const REGISTRIES_FILE: &str = "/etc/coracle/registries.yaml";
pub(crate) const REGISTRY_HOSTS_DIR: &str = "/etc/coracle/certs.d";

/// The proxies of the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "this is where configuration is read from the environment"
)]
pub(crate) fn proxies() -> Result<Proxies, ProxyError> {
    Proxies::read(|name| std::env::var(name).ok())
}

/// Stack size of worker threads. The deepest recursion follows the nesting of an object and uses
/// half of it in a debug build (`tests/users/deep_nesting.rs`).
pub(crate) const STACK: usize = 4 << 20;

/// The open file limit of this process.
pub(crate) fn open_files() -> OpenFiles {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    OpenFiles {
        soft: number(current),
        hard: number(maximum),
    }
}

/// Raises the soft open file limit to the hard one. The usual 1024 is for programs that use
/// `select`; every connection, watch and pod needs some.
fn raise_open_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    ) {
        tracing::warn!(%error, "cannot raise the open file limit");
    }
}

/// Runs `work` on a new runtime, with the open file limit raised.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, ProcessError> {
    raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK)
        .enable_all()
        .build();
    Ok(runtime.map_err(ProcessError::Runtime)?.block_on(work))
}

/// Runs blocking work on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is shutting down, and this future with it.
        Err(_) => std::future::pending().await,
    }
}

/// Runs the future of `begin`. The first SIGTERM or SIGINT, or the end of the test that started
/// this process, sets its stop flag; the second signal ends the process at once.
pub(crate) async fn until_signalled<W: Future>(
    begin: impl FnOnce(watch::Receiver<bool>) -> W,
) -> Result<W::Output, ProcessError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(ProcessError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ProcessError::Signals)?;
    let parent = Parent::watched();

    let (stop, stopped) = watch::channel(false);
    let work = begin(stopped);
    let signals = async {
        tokio::select! {
            () = either(&mut terminate, &mut interrupt) => {}
            () = parent.end() => tracing::info!("the test that started this process has ended; stopping"),
        }
        stop.send_replace(true);
        either(&mut terminate, &mut interrupt).await;
        process::exit(1)
    };

    tokio::select! {
        biased;
        result = work => Ok(result),
        never = signals => never,
    }
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

/// Creates a data directory. The mode of an existing one is kept; private files in it have modes of
/// their own.
pub(crate) fn make_data_dir(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o750).create(folder)
}

/// Opens the embedded store of a data directory; creates it if necessary.
pub(crate) fn open_store(folder: &Path, config: Config) -> Result<Arc<Embedded>, ProcessError> {
    let fail = |error| ProcessError::DataDir {
        folder: folder.to_path_buf(),
        error,
    };
    make_data_dir(folder).map_err(fail)?;
    let files = RealFiles::new(crate::store::folder(folder)).map_err(fail)?;
    Ok(Arc::new(Embedded::open(
        config,
        Arc::new(files),
        Arc::new(SystemClock::default()),
    )?))
}

/// Prints the output of a command. If the reader has closed the pipe, the process exits as if
/// killed by SIGPIPE.
pub(crate) fn print(text: impl Display) {
    let mut out = io::stdout().lock();
    if let Err(error) = write!(out, "{text}").and_then(|()| out.flush()) {
        exit_on_write_error(&error);
    }
}

pub(crate) fn print_line(text: impl Display) {
    print(format_args!("{text}\n"));
}

/// Ends a command that cannot write its output.
pub(crate) fn exit_on_write_error(error: &io::Error) -> ! {
    /// The exit code of a process killed by SIGPIPE, as shells report it.
    const SIGPIPE_EXIT: i32 = 128 + 13;
    if error.kind() == io::ErrorKind::BrokenPipe {
        process::exit(SIGPIPE_EXIT);
    }
    tracing::error!(%error, "cannot write to standard output");
    process::exit(1)
}

/// Tells systemd that the service is ready, if it waits for that (`Type=notify`).
pub(crate) fn notify_ready() {
    let Some(socket) = variable("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send_ready(&socket) {
        tracing::warn!(%error, socket, "cannot tell systemd that the service is ready");
    }
}

fn send_ready(socket: &str) -> io::Result<()> {
    let address = match socket.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?
        .send_to_addr(b"READY=1", &address)
        .map(drop)
}

/// Prints a status message. A closed pipe is ignored: the reader may exit after the first line.
pub(crate) fn announce(lines: &str) {
    if let Err(error) = io::stdout().lock().write_all(lines.as_bytes()) {
        tracing::debug!(%error, "cannot write to standard output");
    }
}
