//! The certificates of a cluster with its own CA: CA, server, administrator and components. Keys
//! are ECDSA P-256: generating an RSA key would take longer than the whole start. Files are kept in
//! the data directory and reused. A lost file of a cluster in use is an error; a new CA is never
//! generated silently.

use std::fs::{self, DirBuilder};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use coracle_apiserver::serve::CertificateFiles;
use coracle_files::private;
use coracle_kubelet::certificates::{Facts, Names};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

/// The `pki` directory of a data directory.
pub(crate) struct Certificates {
    folder: PathBuf,
    /// Whether a cluster uses certificates and tokens signed with these keys.
    in_use: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error("{}: {error}", file.display())]
    File { file: PathBuf, error: io::Error },
    #[error("cannot generate a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error(
        "{} is missing, but this data directory holds a cluster: {what}. Restore the file from a backup; or, if it is lost, \
         create a new one manually, and {then}",
        file.display()
    )]
    Lost {
        file: PathBuf,
        what: &'static str,
        then: &'static str,
    },
}

/// A certificate and its key, in PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// The names of the API server in the cluster.
const SERVER_NAMES: [&str; 5] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
];

impl Certificates {
    /// The certificates of a data directory. If a cluster uses them, keys that cannot be replaced
    /// are not regenerated. If there are none at all, as after a restore of the store, all are
    /// generated.
    pub(crate) fn new(data_dir: &Path, has_cluster: bool) -> Certificates {
        let folder = data_dir.join("pki");
        let exist = fs::read_dir(&folder).is_ok_and(|mut files| files.next().is_some());
        if has_cluster && !exist {
            tracing::warn!(
                folder = %folder.display(),
                "the store holds a cluster, but its certificates and keys are missing; generating new ones: certificates and \
                 tokens issued before are no longer valid"
            );
        }

        Certificates {
            folder,
            in_use: has_cluster && exist,
        }
    }

    /// The files of one certificate and its key.
    pub(crate) fn files(&self, name: &str) -> CertificateFiles {
        CertificateFiles {
            certificate: self.folder.join(format!("{name}.crt")),
            key: self.folder.join(format!("{name}.key")),
        }
    }

    /// The CA, generated on the first start.
    pub(crate) fn authority(&self) -> Result<Pair, CertificateError> {
        // Older versions made the directory readable to all users.
        private::restrict(&self.folder, private::FOLDER).map_err(|error| {
            CertificateError::File {
                file: self.folder.clone(),
                error,
            }
        })?;

        if let Some(pair) = self.load("ca")? {
            return Ok(pair);
        }

        if self.in_use {
            return Err(CertificateError::Lost {
                file: self.files("ca").certificate,
                what: "it and ca.key signed every certificate of its users and nodes",
                then: "give all of them new certificates",
            });
        }

        self.keep("ca", new_authority("coracle-ca")?)
    }

    /// The certificate by which aggregated servers know the API server, with an authority of its
    /// own: the holder of a certificate of it can name any user. Both can be replaced at any time.
    pub(crate) fn front_proxy(&self) -> Result<(), CertificateError> {
        let known = self.load("front-proxy-ca")?;
        if known.is_some() && self.load("front-proxy-client")?.is_some() {
            return Ok(());
        }

        let authority = match known {
            Some(known) => known,
            None => self.keep("front-proxy-ca", new_authority("coracle-front-proxy-ca")?)?,
        };
        let mut params = named("front-proxy-client", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.signed("front-proxy-client", &params, &authority)?;
        Ok(())
    }

    /// The serving certificate of the API server, for these addresses and further names. One that
    /// lacks some of them is replaced, if the CA of the cluster signed it.
    pub(crate) fn server(
        &self,
        authority: &Pair,
        addresses: &[IpAddr],
        names: &[String],
    ) -> Result<Pair, CertificateError> {
        let mut wanted = Names {
            dns: SERVER_NAMES.map(str::to_owned).to_vec(),
            addresses: addresses.to_vec(),
        };
        for name in names {
            match name.parse() {
                Ok(address) => wanted.addresses.push(address),
                Err(_) => wanted.dns.push(name.clone()),
            }
        }
        wanted.addresses.sort();
        wanted.addresses.dedup();

        if let Some(pair) = self.load("apiserver")? {
            let facts = Facts::of(pair.certificate.as_bytes());
            let issuer = Facts::of(authority.certificate.as_bytes());
            let (Some(facts), Some(issuer)) = (facts, issuer) else {
                return Ok(pair);
            };
            if facts.names.include(&wanted) || facts.issuer != issuer.subject {
                return Ok(pair);
            }
            tracing::info!("the certificate of the API server lacks names; issuing another");
            // Names that were given before stay.
            for name in facts.names.dns {
                if !wanted.dns.contains(&name) {
                    wanted.dns.push(name);
                }
            }
            for address in facts.names.addresses {
                if !wanted.addresses.contains(&address) {
                    wanted.addresses.push(address);
                }
            }
        }

        let mut params = named("kube-apiserver", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        for name in &wanted.dns {
            params
                .subject_alt_names
                .push(SanType::DnsName(name.as_str().try_into()?));
        }
        params
            .subject_alt_names
            .extend(wanted.addresses.iter().copied().map(SanType::IpAddress));

        self.signed("apiserver", &params, authority)
    }

    /// The administrator's certificate, in `system:masters`.
    pub(crate) fn administrator(&self, authority: &Pair) -> Result<Pair, CertificateError> {
        if let Some(pair) = self.load("admin")? {
            return Ok(pair);
        }
        let mut params = named("kubernetes-admin", Some("system:masters"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.signed("admin", &params, authority)
    }

    /// The API server's client certificate for kubelets, in `system:masters`.
    pub(crate) fn kubelet_client(&self, authority: &Pair) -> Result<Pair, CertificateError> {
        if let Some(pair) = self.load("apiserver-kubelet-client")? {
            return Ok(pair);
        }
        let mut params = named("kube-apiserver-kubelet-client", Some("system:masters"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.signed("apiserver-kubelet-client", &params, authority)
    }

    /// The key that signs service account tokens, generated on the first start.
    pub(crate) fn service_account_key(&self) -> Result<PathBuf, CertificateError> {
        let file = self.folder.join("service-account.key");
        if !file.exists() {
            if self.in_use {
                return Err(CertificateError::Lost {
                    file,
                    what: "it signed the tokens of all service accounts",
                    then: "restart all pods that talk to the API server \
                           (openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 makes one)",
                });
            }

            write_private(&file, &KeyPair::generate()?.serialize_pem())?;
        }

        Ok(file)
    }

    /// The client certificate of a component that runs separately: `scheduler` is
    /// `system:kube-scheduler`.
    pub(crate) fn component(&self, name: &str, authority: &Pair) -> Result<Pair, CertificateError> {
        if let Some(pair) = self.load(name)? {
            return Ok(pair);
        }
        let mut params = named(&format!("system:kube-{name}"), None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.signed(name, &params, authority)
    }

    /// The serving certificate of the kubelet. It is generated at every start, as addresses change,
    /// and not written to disk, so that a server starts on a full disk too.
    pub(crate) fn kubelet(
        authority: &Pair,
        node: &str,
        addresses: &[IpAddr],
    ) -> Result<Pair, CertificateError> {
        let mut params = named(&format!("system:node:{node}"), Some("system:nodes"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names = vec![SanType::DnsName(node.try_into()?)];
        params
            .subject_alt_names
            .extend(addresses.iter().map(|address| SanType::IpAddress(*address)));
        signed(&params, authority)
    }

    /// The serving certificate of another component in the server's process, generated at every
    /// start as the kubelet's is.
    pub(crate) fn serving(
        authority: &Pair,
        name: &str,
        addresses: &[IpAddr],
    ) -> Result<Pair, CertificateError> {
        signed(&serving(name, "localhost", addresses)?, authority)
    }

    /// A serving certificate that is its own CA, generated at every start.
    pub(crate) fn self_signed(host: &str, addresses: &[IpAddr]) -> Result<Pair, CertificateError> {
        let key = KeyPair::generate()?;
        let certificate = serving(host, "localhost", addresses)?.self_signed(&key)?;
        Ok(Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    fn signed(
        &self,
        name: &str,
        params: &CertificateParams,
        authority: &Pair,
    ) -> Result<Pair, CertificateError> {
        self.keep(name, signed(params, authority)?)
    }

    fn load(&self, name: &str) -> Result<Option<Pair>, CertificateError> {
        let CertificateFiles { certificate, key } = self.files(name);
        if !certificate.exists() && !key.exists() {
            return Ok(None);
        }
        let read = |file: PathBuf| {
            fs::read_to_string(&file).map_err(|error| CertificateError::File { file, error })
        };
        Ok(Some(Pair {
            certificate: read(certificate)?,
            key: read(key)?,
        }))
    }

    fn keep(&self, name: &str, pair: Pair) -> Result<Pair, CertificateError> {
        let files = self.files(name);
        write_private(&files.certificate, &pair.certificate)?;
        write_private(&files.key, &pair.key)?;
        Ok(pair)
    }
}

/// Generates a self-signed certificate unless it exists.
pub(crate) fn ensure_self_signed(
    files: &CertificateFiles,
    addresses: &[IpAddr],
    names: &[String],
) -> Result<(), CertificateError> {
    if files.certificate.exists() && files.key.exists() {
        return Ok(());
    }

    let name = names.first().map_or("localhost", String::as_str);
    let mut params = named(name, None);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];

    for name in names {
        params
            .subject_alt_names
            .push(SanType::DnsName(name.as_str().try_into()?));
    }

    params
        .subject_alt_names
        .extend(addresses.iter().map(|address| SanType::IpAddress(*address)));
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    write_private(&files.certificate, &certificate.pem())?;

    write_private(&files.key, &key.serialize_pem())
}

fn new_authority(common_name: &str) -> Result<Pair, CertificateError> {
    let mut params = named(common_name, None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];

    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

fn serving(
    common_name: &str,
    host: &str,
    addresses: &[IpAddr],
) -> Result<CertificateParams, CertificateError> {
    let mut params = named(common_name, None);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.subject_alt_names = vec![SanType::DnsName(host.try_into()?)];
    params
        .subject_alt_names
        .extend(addresses.iter().map(|address| SanType::IpAddress(*address)));
    Ok(params)
}

fn named(common_name: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        params
            .distinguished_name
            .push(DnType::OrganizationName, organization);
    }
    params
}

fn signed(params: &CertificateParams, authority: &Pair) -> Result<Pair, CertificateError> {
    let issuer =
        Issuer::from_ca_cert_pem(&authority.certificate, KeyPair::from_pem(&authority.key)?)?;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Writes a file atomically, readable by its owner only. A file with the same content is not
/// written, so that a server starts on a full disk too.
pub(crate) fn write_private(file: &Path, text: &str) -> Result<(), CertificateError> {
    use std::io::Write;

    let fail = |error| CertificateError::File {
        file: file.to_path_buf(),
        error,
    };

    if fs::read_to_string(file).is_ok_and(|known| known == text) {
        return private::restrict(file, private::FILE).map_err(fail);
    }

    if let Some(folder) = file.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(private::FOLDER)
            .create(folder)
            .map_err(fail)?;
    }

    let new = file.with_extension("new");
    let mut out = private::create(&new).map_err(fail)?;
    out.write_all(text.as_bytes())
        .and_then(|()| out.sync_all())
        .map_err(fail)?;

    fs::rename(&new, file).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_further_name_reissues_the_certificate_of_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let pki = Certificates::new(folder.path(), false);
        let authority = pki.authority().unwrap();
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let served = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let pair = pki.server(&authority, &[address], &names).unwrap();
            (
                Facts::of(pair.certificate.as_bytes()).unwrap().names,
                pair.certificate,
            )
        };

        let (names, first) = served(&[]);
        assert_eq!(names.addresses, [address]);
        assert_eq!(served(&[]).1, first);

        let (names, second) = served(&["k8s.example", "192.0.2.9"]);
        assert!(names.dns.contains(&"k8s.example".to_owned()), "{names:?}");
        assert_eq!(names.addresses.len(), 2);
        assert_ne!(second, first);
        // Nobody who used a name loses it.
        assert_eq!(served(&["192.0.2.1"]).1, second);

        let own = new_authority("another").unwrap();
        let foreign = signed(&serving("x", "localhost", &[]).unwrap(), &own).unwrap();
        pki.keep("apiserver", foreign).unwrap();
        let (names, _) = served(&["k8s.example"]);
        assert_eq!(names.dns, ["localhost"]);
    }

    #[test]
    fn a_file_with_the_same_content_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("admin.kubeconfig");
        let written = |text: &str| {
            write_private(&file, text).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            fs::metadata(&file).unwrap().ino()
        };
        let first = written("one");
        assert_eq!(written("one"), first);
        assert_ne!(written("two"), first);
    }
}
