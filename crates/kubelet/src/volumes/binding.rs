//! The mounts of a container.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use coracle_api::go_text::Quoted;
use coracle_cri::v1::{ImageSpec, Mount, MountPropagation};
use k8s_openapi::api::core::v1::{Container, Pod, VolumeMount};

use super::{ImageVolumes, plugin_of, subpath};
use crate::env::expand_with;
use crate::pod::PodView as _;

/// A mount without its path on the host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Planned {
    pub(super) volume: String,
    container: String,
    target: String,
    /// Empty: the whole volume.
    sub_path: String,
    read_only: bool,
    recursive_read_only: bool,
    propagation: MountPropagation,
    /// The image of an `image` volume.
    image: Option<ImageSpec>,
}

/// Why a container's mounts cannot be prepared. The texts are upstream's; they do not reveal files
/// of the host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BindingError {
    #[error(
        "cannot find volume {} to mount into container {}",
        Quoted(volume),
        Quoted(container)
    )]
    NoVolume { volume: String, container: String },
    #[error("missing value for {0}")]
    NoVariable(String),
    #[error("error SubPath `{0}` must not be an absolute path")]
    Absolute(String),
    #[error("unable to provision SubPath `{0}`: must not contain '..'")]
    Backsteps(String),
    #[error("invalid MountPropagation mode: {}", Quoted(.0))]
    Propagation(String),
    #[error("failed to resolve recursive read-only mode: {0}")]
    RecursiveReadOnly(String),
    #[error(
        "failed to create subPath directory for volumeMount {} of container {}",
        Quoted(volume),
        Quoted(container)
    )]
    Create { volume: String, container: String },
    #[error(
        "failed to prepare subPath for volumeMount {} of container {}",
        Quoted(volume),
        Quoted(container)
    )]
    Prepare { volume: String, container: String },
    #[error("error DevicePath `{0}`: block devices are not supported by this node")]
    Device(String),
}

/// The mounts of a container, in the order of its `volumeMounts`.
pub(super) fn plan(
    pod: &Pod,
    container: &Container,
    environment: &[(String, String)],
    images: &ImageVolumes,
    supports_recursive: bool,
) -> Result<Vec<Planned>, BindingError> {
    if let Some(device) = container.volume_devices.iter().flatten().next() {
        return Err(BindingError::Device(device.device_path.clone()));
    }
    let mounts = container.volume_mounts.iter().flatten();
    mounts
        .map(|mount| {
            let planned = plan_one(pod, container, mount, environment, supports_recursive)?;
            let image = images.get(&mount.name).cloned();
            Ok(Planned { image, ..planned })
        })
        .collect()
}

fn plan_one(
    pod: &Pod,
    container: &Container,
    mount: &VolumeMount,
    environment: &[(String, String)],
    supports_recursive: bool,
) -> Result<Planned, BindingError> {
    let mut volumes = pod.pod_spec().volumes.iter().flatten();
    let volume = volumes.find(|volume| volume.name == mount.name);
    let plugin = volume
        .and_then(|volume| plugin_of(volume).ok())
        .ok_or_else(|| BindingError::NoVolume {
            volume: mount.name.clone(),
            container: container.name.clone(),
        })?;

    let target = match mount.mount_path.starts_with('/') {
        true => mount.mount_path.clone(),
        false => format!("/{}", mount.mount_path),
    };

    Ok(Planned {
        volume: mount.name.clone(),
        container: container.name.clone(),
        target,
        sub_path: sub_path(mount, environment)?,
        read_only: !plugin.is_writable() || mount.read_only == Some(true),
        recursive_read_only: recursive(mount, supports_recursive)?,
        propagation: propagation(mount)?,
        image: None,
    })
}

fn sub_path(mount: &VolumeMount, environment: &[(String, String)]) -> Result<String, BindingError> {
    let path = match mount.sub_path_expr.as_deref().unwrap_or_default() {
        "" => mount.sub_path.clone().unwrap_or_default(),
        expression => {
            let mut missing = BTreeSet::new();
            let expanded = expand_with(expression, |name| {
                let value = environment
                    .iter()
                    .rev()
                    .find(|(key, _)| key == name)
                    .map(|(_, value)| value.clone());

                value.filter(|value| !value.is_empty()).unwrap_or_else(|| {
                    missing.insert(name.to_owned());
                    String::new()
                })
            });

            if !missing.is_empty() {
                return Err(BindingError::NoVariable(Vec::from_iter(missing).join(", ")));
            }

            expanded
        }
    };

    if path.starts_with('/') {
        return Err(BindingError::Absolute(path));
    }
    if path.split('/').any(|part| part == "..") {
        return Err(BindingError::Backsteps(path));
    }

    Ok(path)
}

fn propagation(mount: &VolumeMount) -> Result<MountPropagation, BindingError> {
    match mount.mount_propagation.as_deref() {
        None | Some("None") => Ok(MountPropagation::PropagationPrivate),
        Some("HostToContainer") => Ok(MountPropagation::PropagationHostToContainer),
        Some("Bidirectional") => Ok(MountPropagation::PropagationBidirectional),
        Some(other) => Err(BindingError::Propagation(other.to_owned())),
    }
}

/// Whether nested mounts are read-only too.
fn recursive(mount: &VolumeMount, supported: bool) -> Result<bool, BindingError> {
    let mode = match mount.recursive_read_only.as_deref() {
        None | Some("Disabled") => return Ok(false),
        Some(mode) => mode,
    };

    let name = Quoted(&mount.name);
    let refused = |text: String| Err(BindingError::RecursiveReadOnly(text));
    if mount.read_only != Some(true) {
        return refused(format!(
            "volume {name} requested recursive read-only mode, but it is not read-only"
        ));
    }

    if let Some(other) = mount
        .mount_propagation
        .as_deref()
        .filter(|other| *other != "None")
    {
        let other = Quoted(other);
        return refused(format!(
            "volume {name} requested recursive read-only mode, but it is not compatible with propagation {other}"
        ));
    }

    match mode {
        "IfPossible" => Ok(supported),
        "Enabled" if supported => Ok(true),
        "Enabled" => refused(format!(
            "volume {name} requested recursive read-only mode, but it is not supported by the runtime"
        )),
        other => refused(format!(
            "unknown recursive read-only mode {}",
            Quoted(other)
        )),
    }
}

impl Planned {
    /// Prepares the mount. `volume`: the path of the volume on the host.
    pub(super) fn bind(
        self,
        volume: Option<PathBuf>,
        location: &subpath::Location<'_>,
    ) -> Result<Mount, BindingError> {
        if self.image.is_some() {
            return Ok(Mount {
                container_path: self.target,
                readonly: self.read_only,
                recursive_read_only: self.recursive_read_only,
                propagation: self.propagation.into(),
                image: self.image,
                image_sub_path: self.sub_path,
                ..Mount::default()
            });
        }

        let (name, container) = (self.volume.clone(), self.container.clone());
        let volume = volume.ok_or_else(|| BindingError::NoVolume {
            volume: name.clone(),
            container: container.clone(),
        })?;

        let host_path = match self.sub_path.as_str() {
            "" => volume,
            below => below_volume(&volume, &name, below, location).map_err(|error| {
                // Users must not learn which files the host has.
                tracing::warn!(pod = location.uid, container, volume = name, %error, "cannot prepare subPath");

                match error {
                    subpath::SubPathError::Create(_) => BindingError::Create {
                        volume: name,
                        container,
                    },
                    subpath::SubPathError::Prepare(_) => BindingError::Prepare {
                        volume: name,
                        container,
                    },
                }
            })?,
        };

        Ok(Mount {
            container_path: self.target,
            host_path: host_path.to_string_lossy().into_owned(),
            readonly: self.read_only,
            recursive_read_only: self.recursive_read_only,
            propagation: self.propagation.into(),
            ..Mount::default()
        })
    }
}

fn below_volume(
    volume: &Path,
    name: &str,
    below: &str,
    location: &subpath::Location<'_>,
) -> Result<PathBuf, subpath::SubPathError> {
    subpath::ensure(volume, below).map_err(subpath::SubPathError::Create)?;
    subpath::prepare(volume, name, below, location).map_err(subpath::SubPathError::Prepare)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;

    const POD: &str = r#"{"spec":{"containers":[],"volumes":[{"name":"dir","emptyDir":{}},{"name":"host","hostPath":{"path":"/x"}},
        {"name":"cm","configMap":{"name":"c"}},{"name":"image","image":{"reference":"r/i:1"}},{"name":"claim","persistentVolumeClaim":{"claimName":"c"}}]}}"#;

    fn images() -> ImageVolumes {
        let spec = ImageSpec {
            image: "sha256:1".to_owned(),
            user_specified_image: "r/i:1".to_owned(),
            ..ImageSpec::default()
        };
        [("image".to_owned(), spec)].into()
    }

    fn planned(mount: &str, supports_recursive: bool) -> Result<Planned, String> {
        let pod: Pod = serde_json::from_str(POD).unwrap();
        let container: Container =
            serde_json::from_str(&format!(r#"{{"name":"c","volumeMounts":[{mount}]}}"#)).unwrap();
        let environment = [("POD", "old"), ("POD", "web-0"), ("EMPTY", "")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let planned = plan(
            &pod,
            &container,
            &environment,
            &images(),
            supports_recursive,
        );
        planned
            .map(|mut all| all.remove(0))
            .map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(mount: &str, expected: &str) {
        assert_eq!(planned(mount, false).unwrap_err(), expected, "{mount}");
    }

    #[test]
    fn volumes_written_by_the_kubelet_are_read_only() {
        let read_only = |mount: &str| planned(mount, false).unwrap().read_only;
        assert!(!read_only(r#"{"name":"dir","mountPath":"/m"}"#));
        assert!(read_only(
            r#"{"name":"dir","mountPath":"/m","readOnly":true}"#
        ));

        assert!(!read_only(r#"{"name":"host","mountPath":"/m"}"#));
        assert!(read_only(r#"{"name":"cm","mountPath":"/m"}"#));
        assert_eq!(
            planned(r#"{"name":"cm","mountPath":"m"}"#, false)
                .unwrap()
                .target,
            "/m"
        );
    }

    #[test]
    fn the_runtime_mounts_images() {
        let location = subpath::Location {
            layout: &Layout::below(Path::new("/nowhere")),
            uid: "u",
            container: "c",
            index: 0,
        };

        let bound = |mount: &str| planned(mount, false).unwrap().bind(None, &location);
        let mount = bound(r#"{"name":"image","mountPath":"/m","subPath":"a/b"}"#).unwrap();
        assert_eq!(mount.image, images().remove("image"));
        assert_eq!(mount.image_sub_path, "a/b");
        assert!(mount.readonly && mount.host_path.is_empty());
        assert!(bound(r#"{"name":"cm","mountPath":"/m"}"#).is_err());
    }

    #[test]
    fn sub_path_expressions_are_expanded() {
        let path = |mount: &str| planned(mount, false).map(|planned| planned.sub_path);
        assert_eq!(
            path(r#"{"name":"dir","mountPath":"/m","subPath":"a/b"}"#).unwrap(),
            "a/b"
        );

        assert_eq!(
            path(r#"{"name":"dir","mountPath":"/m","subPathExpr":"logs/$(POD)"}"#).unwrap(),
            "logs/web-0"
        );

        refused(
            r#"{"name":"dir","mountPath":"/m","subPathExpr":"$(B)/$(EMPTY)/$(A)"}"#,
            "missing value for A, B, EMPTY",
        );

        refused(
            r#"{"name":"dir","mountPath":"/m","subPath":"/abs"}"#,
            "error SubPath `/abs` must not be an absolute path",
        );

        refused(
            r#"{"name":"dir","mountPath":"/m","subPath":"a/../b"}"#,
            "unable to provision SubPath `a/../b`: must not contain '..'",
        );
    }

    #[test]
    fn a_missing_volume_cannot_be_mounted() {
        let text =
            |name: &str| format!("cannot find volume \"{name}\" to mount into container \"c\"");
        refused(r#"{"name":"none","mountPath":"/m"}"#, &text("none"));
        refused(r#"{"name":"claim","mountPath":"/m"}"#, &text("claim"));
    }

    #[test]
    fn mount_propagation_is_converted() {
        let propagation = |mode: &str| {
            planned(
                &format!(r#"{{"name":"dir","mountPath":"/m","mountPropagation":"{mode}"}}"#),
                false,
            )
            .map(|planned| planned.propagation)
        };

        assert_eq!(
            propagation("None").unwrap(),
            MountPropagation::PropagationPrivate
        );

        assert_eq!(
            propagation("HostToContainer").unwrap(),
            MountPropagation::PropagationHostToContainer
        );

        assert_eq!(
            propagation("Bidirectional").unwrap(),
            MountPropagation::PropagationBidirectional
        );

        assert_eq!(
            propagation("Both").unwrap_err(),
            "invalid MountPropagation mode: \"Both\""
        );
    }

    #[test]
    fn recursive_read_only_depends_on_the_runtime() {
        let of = |mode: &str, supported| {
            let mount = format!(
                r#"{{"name":"dir","mountPath":"/m","readOnly":true,"recursiveReadOnly":"{mode}"}}"#
            );
            planned(&mount, supported).map(|planned| planned.recursive_read_only)
        };
        assert_eq!(of("Disabled", true), Ok(false));

        assert_eq!(of("IfPossible", true), Ok(true));
        assert_eq!(of("IfPossible", false), Ok(false));
        assert_eq!(of("Enabled", true), Ok(true));

        let prefix = "failed to resolve recursive read-only mode: volume \"dir\" requested recursive read-only mode, but it is not";
        assert_eq!(
            of("Enabled", false).unwrap_err(),
            format!("{prefix} supported by the runtime")
        );

        refused(
            r#"{"name":"dir","mountPath":"/m","recursiveReadOnly":"Enabled"}"#,
            &format!("{prefix} read-only"),
        );

        refused(
            r#"{"name":"dir","mountPath":"/m","readOnly":true,"recursiveReadOnly":"Enabled","mountPropagation":"HostToContainer"}"#,
            &format!("{prefix} compatible with propagation \"HostToContainer\""),
        );
    }
}
