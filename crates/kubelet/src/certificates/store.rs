//! Certificates on disk, as upstream names them: `kubelet-client-2026-03-01-12-00-00.pem` holds a
//! certificate and its key, and the link `kubelet-client-current.pem` points to the newest one.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use coracle_api::time::{Time, Timestamp};
use coracle_base::tls::server::certified_key;
use coracle_files::private;

use super::CertificateError;

/// The certificates of one purpose in a directory.
#[derive(Clone, Debug)]
pub struct CertificateStore {
    folder: PathBuf,
    prefix: &'static str,
}

impl CertificateStore {
    /// The client certificates: `kubelet-client-…`.
    pub fn client(folder: &Path) -> CertificateStore {
        CertificateStore {
            folder: folder.to_owned(),
            prefix: "kubelet-client",
        }
    }

    /// The serving certificates: `kubelet-server-…`.
    pub fn serving(folder: &Path) -> CertificateStore {
        CertificateStore {
            prefix: "kubelet-server",
            ..CertificateStore::client(folder)
        }
    }

    /// The file of the certificate in use, with its key.
    pub fn current_path(&self) -> PathBuf {
        self.folder.join(format!("{}-current.pem", self.prefix))
    }

    /// The certificate in use and its key, in PEM; `None`: there is none, or it cannot be used.
    pub fn current(&self) -> Option<Vec<u8>> {
        let file = self.current_path();
        let pem = match fs::read(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(file = %file.display(), %error, "cannot read certificate");
                return None;
            }
            Ok(pem) => pem,
        };

        match certified_key(&pem, &pem) {
            Ok(_) => Some(pem),
            Err(error) => {
                tracing::warn!(file = %file.display(), %error, "certificate is not usable");
                None
            }
        }
    }

    /// Stores a certificate, which is the one in use afterwards.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn update(
        &self,
        certificate: &str,
        key: &str,
        now: Timestamp,
    ) -> Result<(), CertificateError> {
        let stamp: String = Time(now)
            .text()
            .trim_end_matches('Z')
            .replace(['T', ':'], "-");
        let file = self.folder.join(format!("{}-{stamp}.pem", self.prefix));

        self.replace(&file, certificate, key)
            .map_err(|source| CertificateError::File { file, source })
    }

    fn replace(&self, file: &Path, certificate: &str, key: &str) -> io::Result<()> {
        private::folder(&self.folder)?;
        private::write(
            file,
            format!("{}\n{key}", certificate.trim_end()).as_bytes(),
        )?;

        // The link is replaced by a rename, so that there is always one.
        let link = self.folder.join(format!("{}-updated.pem", self.prefix));
        match fs::remove_file(&link) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => symlink(file, &link)?,
        }
        fs::rename(&link, self.current_path())
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[test]
    fn the_newest_certificate_is_the_current_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = CertificateStore::client(folder.path());
        assert_eq!(store.current(), None);

        let mut files = Vec::new();
        for seconds in [1_772_366_400, 1_772_366_401] {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::default();
            let certificate = params.self_signed(&key).unwrap().pem();
            let now = Timestamp::from_unix(seconds, 0);
            store
                .update(&certificate, &key.serialize_pem(), now)
                .unwrap();

            let current = String::from_utf8(store.current().unwrap()).unwrap();
            assert!(current.contains(certificate.trim_end()), "{current}");
            files.push(fs::read_link(store.current_path()).unwrap());
        }

        let names = ["2026-03-01-12-00-00", "2026-03-01-12-00-01"];
        let expected = names.map(|stamp| folder.path().join(format!("kubelet-client-{stamp}.pem")));
        assert_eq!(files, expected);
    }

    #[test]
    fn a_file_without_a_key_is_no_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let store = CertificateStore::serving(folder.path());
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::default();
        let certificate = params.self_signed(&key).unwrap().pem();
        fs::write(store.current_path(), certificate).unwrap();
        assert_eq!(store.current(), None);
    }
}
