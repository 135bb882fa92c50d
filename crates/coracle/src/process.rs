//! A component as a process: its runtime, its data directory, the signals that end it, the line
//! that says it is ready.

use std::fmt::Display;
use std::fs::DirBuilder;
use std::future::Future;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

use coracle_runtime::OpenFiles;
use coracle_store::embedded::files::RealFiles;
use coracle_store::embedded::{Config, Embedded, OpenError, SystemClock};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

/// Why a process cannot begin its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    #[error("the runtime cannot be started: {0}")]
    Runtime(io::Error),
    #[error("{}: cannot be used as the data directory: {error}", folder.display())]
    DataDir { folder: PathBuf, error: io::Error },
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// Lets what happens be seen on standard error. `verbosity` is upstream's `-v`: from 4 on details,
/// from 6 on everything.
pub(crate) fn log(verbosity: i64) {
    let level = match verbosity {
        ..4 => LevelFilter::INFO,
        4..6 => LevelFilter::DEBUG,
        6.. => LevelFilter::TRACE,
    };

    // It tells of every question at this level.
    let names = if level == LevelFilter::INFO {
        LevelFilter::WARN
    } else {
        level
    };

    let wanted = Targets::new()
        .with_default(level)
        .with_target("hickory_server", names);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false);

    let subscriber = Registry::default().with(lines.with_filter(wanted));
    if tracing::subscriber::set_global_default(subscriber).is_err() {
        tracing::debug!("somebody else in this process has seen to logs");
    }
}

/// The stack of every thread that does a component's work, of which the kernel gives as much as is
/// used. What recurses does so at most as deep as an object may nest, which takes half of it in a
/// debug build (`tests/users/deep.rs`).
pub(crate) const STACK: usize = 4 << 20;

/// How many files this process may have open.
pub(crate) fn open_files() -> OpenFiles {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    OpenFiles {
        soft: number(current),
        hard: number(maximum),
    }
}

/// Lets this process have as many files open as it may. The usual limit of 1024 is for programs
/// that use `select`; every connection, watch and pod takes some.
fn raise_open_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    ) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

/// Runs `work` on a runtime of its own, with as many open files as this process may have.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, ProcessError> {
    raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK)
        .enable_all()
        .build();
    Ok(runtime.map_err(ProcessError::Runtime)?.block_on(work))
}

/// Runs what may wait on a thread for that.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The process ends, and whoever waits here with it.
        Err(_) => std::future::pending().await,
    }
}

/// Runs what `begin` makes. It is told to stop by the first SIGTERM or SIGINT; the second ends the
/// process at once.
pub(crate) async fn until_signalled<W: Future>(
    begin: impl FnOnce(watch::Receiver<bool>) -> W,
) -> Result<W::Output, ProcessError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(ProcessError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ProcessError::Signals)?;

    let (stop, stopped) = watch::channel(false);
    let work = begin(stopped);
    let signals = async {
        either(&mut terminate, &mut interrupt).await;
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

/// Makes a data directory. One that is there is its owner's: its mode stays, and what needs more is
/// protected in there.
pub(crate) fn make_data_dir(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o750).create(folder)
}

/// The embedded store of a data directory, which is made if it is not there.
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

/// Prints what a command was asked for. Where whoever read it has seen enough, the command ends as
/// others do then.
pub(crate) fn print(text: impl Display) {
    let mut out = io::stdout().lock();
    if let Err(error) = write!(out, "{text}").and_then(|()| out.flush()) {
        unread(&error);
    }
}

pub(crate) fn print_line(text: impl Display) {
    print(format_args!("{text}\n"));
}

/// Ends a command that has nobody left to print for.
pub(crate) fn unread(error: &io::Error) -> ! {
    /// What a shell shows of a process that SIGPIPE ended.
    const PIPE_BROKE: i32 = 128 + 13;
    if error.kind() == io::ErrorKind::BrokenPipe {
        process::exit(PIPE_BROKE);
    }
    tracing::error!(%error, "standard output cannot be written");
    process::exit(1)
}

/// Says that it is ready. Whoever waited for that may have gone by the second line, which ends
/// nothing.
pub(crate) fn announce(lines: &str) {
    if let Err(error) = io::stdout().lock().write_all(lines.as_bytes()) {
        tracing::debug!(%error, "nobody reads standard output");
    }
}
