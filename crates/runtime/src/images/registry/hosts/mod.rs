//! Which hosts serve the images of a registry, and how they are reached.
//!
//! Without configuration this is the registry itself. A folder of the registry with `hosts.toml`
//! ([`folder`], as containerd has it), or else a page of mirrors for all registries ([`yaml`],
//! `registries.yaml` of k3s), names others, in the order in which they are tried. Both are read for
//! every pull, so that a change holds at once; what cannot be read fails the pull.

mod folder;
mod yaml;

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use regex::Regex;

use super::{Credentials, Registries};

/// The default registry has another host than its image names.
const DEFAULT: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// One host that serves a registry's images.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    /// `http` or `https`; none: as it turns out.
    pub(super) scheme: Option<&'static str>,
    /// With its port.
    pub(super) authority: String,
    /// The path of its API, `/v2`.
    pub(super) path: String,
    pub(super) can: Capabilities,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) tls: TlsSettings,
    pub(super) connect_timeout: Option<Duration>,
    /// Used where the pull has none.
    pub(super) credentials: Option<Credentials>,
    /// What becomes of the names of repositories; the first that matches is applied.
    pub(super) rewrites: Vec<Rewrite>,
}

/// What a host is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capabilities {
    /// Content by its digest.
    pub(super) pull: bool,
    /// What a tag stands for.
    pub(super) resolve: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            pull: true,
            resolve: true,
        }
    }
}

/// Whom a host trusts, and whom we trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TlsSettings {
    /// Beside the system's.
    pub(super) authorities: Vec<PathBuf>,
    /// Certificate and key of this client.
    pub(super) identity: Option<(PathBuf, PathBuf)>,
    pub(super) skip_verify: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Rewrite {
    pattern: Regex,
    replacement: String,
}

impl Host {
    /// The registry itself.
    pub(super) fn of_registry(registry: &str) -> Host {
        let is_default = registry == DEFAULT.0;
        Host {
            authority: if is_default { DEFAULT.1 } else { registry }.to_owned(),
            path: "/v2".to_owned(),
            ..Host::default()
        }
    }

    /// Whether it has to be told which registry is meant.
    pub(super) fn is_mirror_of(&self, registry: &str) -> bool {
        self.authority != registry && (registry, self.authority.as_str()) != DEFAULT
    }

    /// The name of a repository on this host.
    pub(super) fn repository(&self, name: &str) -> String {
        let found = self
            .rewrites
            .iter()
            .find(|rewrite| rewrite.pattern.is_match(name));
        match found {
            Some(Rewrite {
                pattern,
                replacement,
            }) => pattern.replace_all(name, replacement).into_owned(),
            None => name.to_owned(),
        }
    }
}

/// Why the configuration of registries cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("invalid registry configuration in {}: {why}", path.display())]
pub struct HostsError {
    path: PathBuf,
    why: String,
}

impl HostsError {
    fn new(path: &Path, why: &impl ToString) -> HostsError {
        HostsError {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}

/// The hosts of a registry, in the order in which they are tried. Blocks on the disk.
pub(super) fn read(registries: &Registries, registry: &str) -> Result<Vec<Host>, HostsError> {
    let page = match &registries.file {
        Some(file) => yaml::Page::read(file)?,
        None => yaml::Page::default(),
    };
    let own = match &registries.folder {
        Some(folder) => folder::read(folder, registry)?,
        None => None,
    };

    let mut hosts = match own {
        Some(hosts) => hosts,
        None => page.mirrors(registry)?,
    };
    for host in &mut hosts {
        page.configure(host);
    }
    Ok(hosts)
}

/// The bytes of a file; none if there is no such file.
fn contents(path: &Path) -> Result<Option<Vec<u8>>, HostsError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(HostsError::new(path, &error)),
    }
}

/// Scheme, authority and path of an address like `https://mirror.example/v2`; the path is empty where
/// none is given.
fn split(address: &str) -> Result<(Option<&'static str>, String, String), String> {
    let wrong = |why: &str| format!("{address:?}: {why}");
    let (scheme, rest) = match address.split_once("://") {
        Some(("http", rest)) => (Some("http"), rest),
        Some(("https", rest)) => (Some("https"), rest),
        Some((other, _)) => return Err(wrong(&format!("{other} is neither http nor https"))),
        None => (None, address),
    };

    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let parsed: Result<http::uri::Authority, _> = authority.parse();
    let parsed = parsed.map_err(|error| wrong(&error.to_string()))?;
    if parsed.host().is_empty() || authority.contains('@') {
        return Err(wrong("expected HOST or HOST:PORT"));
    }

    let path = path.trim_end_matches('/').to_owned();
    Ok((scheme, authority.to_owned(), path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(hosts: &[Host]) -> Vec<String> {
        let shown = |host: &Host| {
            let scheme = host.scheme.unwrap_or("?");
            let mut text = format!("{scheme}://{}{}", host.authority, host.path);
            for (name, value) in &host.headers {
                text += &format!(" {name}={}", value.to_str().unwrap());
            }
            if !host.can.resolve {
                text += " pull-only";
            }
            if host.tls.skip_verify {
                text += " unverified";
            }
            for authority in &host.tls.authorities {
                text += &format!(" ca={}", authority.file_name().unwrap().to_str().unwrap());
            }
            if let Some((_, key)) = &host.tls.identity {
                text += &format!(" key={}", key.file_name().unwrap().to_str().unwrap());
            }
            if let Some(credentials) = &host.credentials {
                text += &format!(" {credentials:?}");
            }
            if let Some(timeout) = host.connect_timeout {
                text += &format!(" {timeout:?}");
            }
            text
        };
        hosts.iter().map(shown).collect()
    }

    struct Files {
        folder: tempfile::TempDir,
        registries: Registries,
    }

    impl Files {
        fn new(yaml: &str, hosts: &[(&str, &str)]) -> Files {
            let folder = tempfile::tempdir().unwrap();
            let registries = Registries {
                file: Some(folder.path().join("registries.yaml")),
                folder: Some(folder.path().join("certs.d")),
                ..Registries::default()
            };
            let files = Files { folder, registries };
            files.write("registries.yaml", yaml);
            for (host, text) in hosts {
                files.write(&format!("certs.d/{host}/hosts.toml"), text);
            }
            files
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn check(&self, registry: &str, expected: &[&str]) {
            let hosts = read(&self.registries, registry).unwrap();
            assert_eq!(shown(&hosts), expected, "{registry}");
        }

        fn error(&self, registry: &str) -> String {
            read(&self.registries, registry).unwrap_err().to_string()
        }
    }

    #[test]
    fn without_configuration_a_registry_serves_its_images() {
        let none = Registries::default();
        let check = |registry: &str, expected: &str| {
            assert_eq!(shown(&read(&none, registry).unwrap()), [expected]);
        };
        check("docker.io", "?://registry-1.docker.io/v2");
        check("localhost:5000", "?://localhost:5000/v2");

        // The files may be missing.
        let missing = Registries {
            file: Some("/nonexistent/registries.yaml".into()),
            folder: Some("/nonexistent/certs.d".into()),
            ..Registries::default()
        };
        let hosts = read(&missing, "quay.io").unwrap();
        assert_eq!(shown(&hosts), ["?://quay.io/v2"]);
    }

    #[test]
    fn mirrors_of_k3s_are_tried_before_the_registry() {
        let files = Files::new(
            r#"
mirrors:
  docker.io:
    endpoint: ["https://m.example:5000", "http://n.example/proxy/docker", "o.example/v2"]
  own.example:
    endpoint: ["https://own.example"]
  local.example:
    endpoint: ["localhost:5000"]
  "*":
    endpoint: ["https://all.example"]
configs:
  m.example:5000:
    auth: {username: u, password: p}
    tls: {ca_file: /x/ca.crt, cert_file: /x/c.crt, key_file: /x/c.key}
  docker.io:
    auth: {auth: aDpw}
  all.example:
    tls: {insecure_skip_verify: true}
"#,
            &[],
        );

        files.check(
            "docker.io",
            &[
                "https://m.example:5000/v2 ca=ca.crt key=c.key User(u)",
                "http://n.example/proxy/docker",
                "https://o.example/v2",
                "?://registry-1.docker.io/v2 User(h)",
            ],
        );
        files.check("own.example", &["https://own.example/v2"]);
        files.check(
            "local.example",
            &["http://localhost:5000/v2", "?://local.example/v2"],
        );
        files.check(
            "other.example",
            &["https://all.example/v2 unverified", "?://other.example/v2"],
        );
    }

    #[test]
    fn a_rewrite_changes_the_repository_on_mirrors_only() {
        let files = Files::new(
            r#"
mirrors:
  docker.io:
    endpoint: [https://m.example]
    rewrite: {"^library/(.*)": "hub/$1-x"}
"#,
            &[],
        );

        let hosts = read(&files.registries, "docker.io").unwrap();
        let names: Vec<String> = hosts
            .iter()
            .map(|host| host.repository("library/nginx"))
            .collect();
        assert_eq!(names, ["hub/nginx-x", "library/nginx"]);
        assert_eq!(hosts[0].repository("team/app"), "team/app");
    }

    #[test]
    fn folders_of_containerd_name_hosts_in_the_order_of_the_file() {
        let toml = r#"
server = "https://own.example/v2"
ca = "own.crt"

[host."https://z.example"]
  capabilities = ["pull"]
  ca = ["one.crt", "/two.crt"]
  client = [["c.crt", "c.key"]]
  dial_timeout = "1.5s"
  [host."https://z.example".header]
    x-token = "t"

[host."http://a.example:5000/prefix"]
  skip_verify = true

[host."https://b.example/odd"]
  override_path = true
"#;
        let files = Files::new(
            "mirrors: {r.example: {endpoint: [https://unused.example]}}\n\
             configs: {'a.example:5000': {auth: {username: u, password: p}}}",
            &[
                ("r.example", toml),
                ("p.example_5000_", "[host.\"https://m.example\"]"),
                ("_default", "server = \"all.example\""),
            ],
        );

        files.check(
            "r.example",
            &[
                "https://z.example/v2 x-token=t pull-only ca=one.crt ca=two.crt key=c.key 1.5s",
                "http://a.example:5000/prefix/v2 unverified User(u)",
                "https://b.example/odd",
                "https://own.example/v2 ca=own.crt",
            ],
        );
        files.check(
            "p.example:5000",
            &["https://m.example/v2", "?://p.example:5000/v2"],
        );
        files.check("other.example", &["https://all.example/v2"]);
    }

    #[test]
    fn certificates_of_a_folder_are_used_without_a_file_of_hosts() {
        let files = Files::new("", &[]);
        for name in ["a.crt", "b.cert", "b.key", "other"] {
            files.write(&format!("certs.d/r.example:5000/{name}"), "");
        }
        files.check(
            "r.example:5000",
            &["?://r.example:5000/v2 ca=a.crt key=b.key"],
        );
    }

    #[test]
    fn a_change_holds_at_once() {
        let files = Files::new("", &[]);
        files.check("r.example", &["?://r.example/v2"]);

        files.write(
            "registries.yaml",
            "mirrors: {r.example: {endpoint: [https://m.example]}}",
        );
        files.check("r.example", &["https://m.example/v2", "?://r.example/v2"]);
    }

    #[test]
    fn mistakes_are_reported_with_their_file() {
        let yaml = |text: &str, expected: &str| {
            let error = Files::new(text, &[]).error("r.example");
            assert!(
                error.contains("registries.yaml") && error.contains(expected),
                "{error}"
            );
        };
        yaml("mirrors: [", "yaml");
        yaml("mirror: {}", "unknown field `mirror`");
        yaml(
            "mirrors: {r.example: {endpoint: [ftp://x]}}",
            "ftp is neither http nor https",
        );
        yaml(
            "mirrors: {r.example: {endpoint: [https://x], rewrite: {'(': x}}}",
            "rewrite",
        );

        let toml = |text: &str, expected: &str| {
            let error = Files::new("", &[("r.example", text)]).error("r.example");
            assert!(
                error.contains("hosts.toml") && error.contains(expected),
                "{error}"
            );
        };
        toml("[host", "TOML");
        toml("capabilities = [\"fly\"]", "unknown capability \"fly\"");
        toml("ca = 1", "ca");
        toml("client = [[\"one\"]]", "client");
        toml("dial_timeout = \"soon\"", "dial_timeout");
        toml("[header]\nx = \"a\\nb\"", "header");
    }
}
