//! The kubeconfig files of the administrator and of components that run separately.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use base64::Engine;
use coracle_files::private;

use super::options::AccessFlags;
use crate::certificates::{self, CertificateError, Certificates, Pair};

/// Writes all kubeconfig files into `folder`.
pub(super) fn write(
    folder: &Path,
    address: SocketAddr,
    pki: &Certificates,
    authority: &Pair,
) -> Result<(), CertificateError> {
    let write = |name: &str, user: &Pair| {
        let file = folder.join(format!("{name}.kubeconfig"));
        certificates::write_private(&file, &text(address, authority, name, user))
    };
    for component in ["controller-manager", "scheduler"] {
        write(component, &pki.component(component, authority)?)?;
    }
    write("admin", &pki.administrator(authority)?)
}

/// Copies the administrator's kubeconfig to the file of the flags, if there is one.
pub(super) fn copy(folder: &Path, flags: &AccessFlags) -> Result<(), CertificateError> {
    let (Some(to), Some(mode)) = (&flags.kubeconfig, flags.mode()) else {
        return Ok(());
    };
    let fail = |error| CertificateError::File {
        file: to.clone(),
        error,
    };

    let text = fs::read(folder.join("admin.kubeconfig")).map_err(fail)?;
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(fail)?;
    }
    // Private until its permissions are set, whatever they were.
    private::write(to, &text).map_err(fail)?;
    fs::set_permissions(to, Permissions::from_mode(mode)).map_err(fail)
}

fn text(address: SocketAddr, authority: &Pair, name: &str, user: &Pair) -> String {
    let base64 = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: coracle\n  cluster:\n    server: https://{address}\n    \
         certificate-authority-data: {}\nusers:\n- name: {name}\n  user:\n    client-certificate-data: {}\n    \
         client-key-data: {}\ncontexts:\n- name: coracle\n  context:\n    cluster: coracle\n    user: {name}\n\
         current-context: coracle\n",
        base64(&authority.certificate),
        base64(&user.certificate),
        base64(&user.key)
    )
}
