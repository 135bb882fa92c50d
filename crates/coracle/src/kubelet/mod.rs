//! `coracle kubelet`: the kubelet as a process of its own, over HTTPS, with upstream's flags and its
//! KubeletConfiguration, on the built-in container runtime or another one.

mod omissions;
mod options;
mod program;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coracle_base::error_chain;
use coracle_client::config::Pem;
use coracle_client::{Client, Config as ClientConfig, Environment, Tasks};
use coracle_cri::{Images, Runtime};
use coracle_kubelet::certificates::{
    self, BootstrapError, CertificateStore, Names, Purpose, Rotation, ServingCertificate,
};
use coracle_kubelet::server::access::Access;
use coracle_kubelet::server::{Server, TlsError};
use coracle_kubelet::{Config, Kubelet, Shown, StartError};
use coracle_runtime::OpenFiles;
use coracle_runtime::images::ProxyError;
use coracle_serving::certificate;
use coracle_settings::Mistakes;
use rustls::server::ResolvesServerCert;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::certificates::{CertificateError, ensure_self_signed};
use crate::component_port::component_metrics;
use crate::instance::Instance;
use crate::node_runtime::{self, RuntimeError, RuntimeSettings};
use crate::process::{self, ProcessError};
use crate::running;
use crate::server::pod_network::KnownRanges;
use crate::settings::{self, Arguments, ImageFlags};
use crate::world::WORLD;
use options::{Complete, Options, Serving, Sockets};
use program::PROGRAM;

#[derive(Debug, thiserror::Error)]
pub(crate) enum KubeletError {
    #[error(transparent)]
    Settings(#[from] Mistakes),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("the kubelet needs root")]
    NotRoot,
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{}: another kubelet is running with this directory; stop it or use another --root-dir", .0.display())]
    RunsAlready(PathBuf),
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    #[error(transparent)]
    Certificates(#[from] certificates::CertificateError),
    #[error("cannot configure the API client")]
    Client(#[from] coracle_client::ConfigError),
    #[error(
        "the certificate of --kubeconfig is that of {found}, not of {expected}: the files of another node were copied; \
         delete them, or set --hostname-override"
    )]
    OtherNode { found: String, expected: String },
    #[error(transparent)]
    Proxy(ProxyError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error("cannot use the container runtime")]
    OtherRuntime(#[from] coracle_cri::Error),
    #[error("cannot listen on {address}: {error}")]
    Listen {
        address: SocketAddr,
        error: io::Error,
    },
    #[error(transparent)]
    SelfSigned(#[from] CertificateError),
    #[error(transparent)]
    Serving(#[from] TlsError),
    #[error("cannot start the kubelet")]
    Start(#[from] StartError),
}

#[cfg(test)]
pub(crate) fn declared() -> settings::declared::Declared {
    settings::declared::Declared::of(&PROGRAM)
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), KubeletError> {
    let Some(mut options) = settings::read(&PROGRAM, arguments)? else {
        return Ok(());
    };
    options.feature_gates.set()?;

    let shown = Shown::All(settings::shown(&PROGRAM, &mut options, "kubeletconfig"));
    let complete = options.complete(shown)?;
    if !rustix::process::geteuid().is_root() {
        return Err(KubeletError::NotRoot);
    }

    let open_files = process::open_files();
    process::block_on(async {
        process::until_signalled(|mut stop| async move {
            tokio::select! {
                biased;
                result = lead(&options, complete, open_files) => result,
                _ = stop.wait_for(|stop| *stop) => Ok(()),
            }
        })
        .await
    })??
}

/// Runs the kubelet until the future is dropped.
async fn lead(
    options: &Options,
    complete: Complete,
    open_files: OpenFiles,
) -> Result<(), KubeletError> {
    let instance = claim(&options.root_dir)?;
    let tasks = Tasks::new();
    let Complete {
        config,
        listen,
        access,
        tls,
        kubeconfig,
        serving,
        sockets,
    } = complete;

    let client = client(options, &kubeconfig, &config.node_name, &tasks).await?;
    let (config, runtime, images) =
        runtime(options, config, &instance, sockets, open_files, &tasks).await?;

    let listener = TcpListener::bind(listen).await;
    let listener = listener.map_err(|error| KubeletError::Listen {
        address: listen,
        error,
    })?;
    let port = listener
        .local_addr()
        .map_or(listen.port(), |address| address.port());
    let config = Config { port, ..config };
    let presented = presented(options, &serving, &config, &client, &tasks)?;

    let access = Access::new(&config.node_name, client.clone(), access);
    let kubelet = Kubelet::new(config, client, runtime, images);
    let mut server = Server::new(&kubelet.host(), kubelet.pod_manager(), access);
    server.tls = tls;
    let (stop, stopped) = watch::channel(false);
    tasks.spawn(async move {
        // Held by the task, so that the API server stops with it.
        let _stop = stop;
        if let Err(error) = Arc::new(server).serve(listener, presented, stopped).await {
            tracing::error!(error = %error_chain(&error), "kubelet API server failed");
        }
    });

    process::announce("kubelet is ready\n");
    process::notify_ready();
    let result = kubelet.run().await;
    tasks.stop().await;
    Ok(result?)
}

/// Takes the directory for this process.
fn claim(folder: &Path) -> Result<Instance, KubeletError> {
    let fail = |error| KubeletError::File {
        path: folder.to_owned(),
        error,
    };
    process::make_data_dir(folder).map_err(fail)?;
    let instance = Instance::of(folder).map_err(fail)?;
    running::begin(&instance.data_dir)
        .map_err(fail)?
        .ok_or_else(|| KubeletError::RunsAlready(instance.data_dir.clone()))?
        .keep();
    Ok(instance)
}

/// The client of the node, after TLS bootstrap where that is asked for.
async fn client(
    options: &Options,
    kubeconfig: &Path,
    node: &str,
    tasks: &Tasks,
) -> Result<Client, KubeletError> {
    if let Some(bootstrap) = &options.bootstrap_kubeconfig {
        certificates::bootstrap(kubeconfig, bootstrap, &options.cert_dir, node, WORLD).await?;
    }

    let mut config = ClientConfig::load(Some(kubeconfig), None, &Environment::default())?;
    let pem = |pem: &Pem| match pem {
        Pem::Content(pem) => Ok(pem.clone()),
        Pem::File(path) => fs::read(path).map_err(|error| KubeletError::File {
            path: path.clone(),
            error,
        }),
    };
    let identity = config.credentials.certificate.as_ref();
    let identity = identity
        .map(|(certificate, key)| Ok::<_, KubeletError>((pem(certificate)?, pem(key)?)))
        .transpose()?;

    if let Some((certificate, _)) = &identity {
        check_identity(certificate, node)?;
    }

    let store = CertificateStore::client(&options.cert_dir);
    if let (true, Some((certificate, key))) = (options.rotate_certificates, &identity) {
        // The certificate of the kubeconfig is the first one that is replaced.
        if store.current().is_none() {
            let text = |pem: &[u8]| String::from_utf8_lossy(pem).into_owned();
            store.update(&text(certificate), &text(key), WORLD.now())?;
        }
        let current = Pem::File(store.current_path());
        config.credentials.certificate = Some((current.clone(), current));
    }

    let client = Client::connect(config, WORLD)
        .await?
        .named("kubelet")
        .measured(&component_metrics());
    let burst = u32::try_from(options.burst).unwrap_or(1);
    let client = client.limited(f64::from(options.qps), burst);

    if options.rotate_certificates && identity.is_some() {
        let rotation = Rotation {
            client: client.clone(),
            node: node.to_owned(),
            purpose: Purpose::Client,
            store,
            presented: None,
        };
        tasks.spawn(rotation.keep());
    }
    Ok(client)
}

/// A certificate of another node would make this machine that node.
fn check_identity(pem: &[u8], node: &str) -> Result<(), KubeletError> {
    let expected = certificates::request::common_name(node);
    match certificates::Facts::of(pem) {
        Some(facts)
            if facts.common_name.starts_with("system:node:") && facts.common_name != expected =>
        {
            Err(KubeletError::OtherNode {
                found: facts.common_name,
                expected,
            })
        }
        _ => Ok(()),
    }
}

/// The container runtime and its images, and the configuration for them.
async fn runtime(
    options: &Options,
    config: Config,
    instance: &Instance,
    sockets: Option<Sockets>,
    open_files: OpenFiles,
    tasks: &Tasks,
) -> Result<(Config, Arc<dyn Runtime>, Arc<dyn Images>), KubeletError> {
    if let Some(sockets) = sockets {
        let runtime = coracle_cri::Client::new(&sockets.runtime)?;
        let images = coracle_cri::Client::new(&sockets.images)?;
        return Ok((config, Arc::new(runtime), Arc::new(images)));
    }

    let run_dir = instance.make_run_dir();
    run_dir.map_err(|error| KubeletError::File {
        path: instance.run_dir(),
        error,
    })?;
    let cni = options.cni.plugins();
    let settings = RuntimeSettings {
        instance,
        ranges: KnownRanges {
            pods: options.cluster_cidrs.clone(),
            services: Vec::new(),
        },
        cni: cni.as_ref(),
        has_network: false,
        registries: ImageFlags::default_registries().map_err(KubeletError::Proxy)?,
        open_files: Some(open_files),
    };
    let (runtime, images, _) = node_runtime::open(settings, tasks).await?;

    let cgroup_root = match config.cgroup_root.as_str() {
        "" => instance.name(),
        given => given.to_owned(),
    };
    let config = Config {
        cgroup_root,
        ..config
    };
    Ok((config, Arc::new(runtime), images))
}

/// The serving certificate of the kubelet API.
fn presented(
    options: &Options,
    serving: &Serving,
    config: &Config,
    client: &Client,
    tasks: &Tasks,
) -> Result<Arc<dyn ResolvesServerCert>, KubeletError> {
    let read = |path: &Path| {
        fs::read(path).map_err(|error| KubeletError::File {
            path: path.to_owned(),
            error,
        })
    };

    match serving {
        Serving::Files(chain, key) => Ok(certificate(&read(chain)?, &read(key)?)?),
        Serving::SelfSigned => {
            let files = coracle_apiserver::serve::CertificateFiles {
                certificate: options.cert_dir.join("kubelet.crt"),
                key: options.cert_dir.join("kubelet.key"),
            };
            let names = [config.node_name.clone()];
            ensure_self_signed(&files, &config.addresses, &names)?;
            Ok(certificate(&read(&files.certificate)?, &read(&files.key)?)?)
        }
        Serving::Requested => Ok(requested(
            &config.node_name,
            Names {
                dns: vec![config.node_name.clone()],
                addresses: config.addresses.clone(),
            },
            &options.cert_dir,
            client,
            tasks,
        )),
    }
}

/// A serving certificate that the API server issues, and that is replaced before it expires.
pub(crate) fn requested(
    node: &str,
    names: Names,
    folder: &Path,
    client: &Client,
    tasks: &Tasks,
) -> Arc<ServingCertificate> {
    let store = CertificateStore::serving(folder);
    let presented = Arc::new(ServingCertificate::default());
    presented.load(&store);

    let rotation = Rotation {
        client: client.clone(),
        node: node.to_owned(),
        purpose: Purpose::Serving(names),
        store,
        presented: Some(presented.clone()),
    };
    tasks.spawn(rotation.keep());
    presented
}
