//! Debian's registry, in the machine's network.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::machine::{Machine, eventually};

/// Where it listens.
pub(crate) const HOST: &str = "127.0.0.1:5000";

pub(crate) struct Registry {
    process: Child,
    user: Option<&'static str>,
}

impl Registry {
    pub(crate) fn start(machine: &Machine) -> Self {
        Self::begin(machine, None)
    }

    /// With one user, as `name:password`.
    pub(crate) fn with_user(machine: &Machine, user: &'static str) -> Self {
        Self::begin(machine, Some(user))
    }

    fn begin(machine: &Machine, user: Option<&'static str>) -> Self {
        let config = machine.folder().join("registry.yml");
        let data = machine.folder().join("registry");
        let mut text = format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: \"{HOST}\", secret: x}}\n",
            data.display()
        );

        if let Some((name, password)) = user.and_then(|user| user.split_once(':')) {
            let users = machine.folder().join("users");
            fs::write(&users, machine.run("htpasswd", &["-nbB", name, password])).unwrap();
            text += &format!(
                "auth: {{htpasswd: {{realm: test, path: {}}}}}\n",
                users.display()
            );
        }
        fs::write(&config, text).unwrap();

        let mut command: Command = machine.command("docker-registry", &["serve"]);
        let process = command
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let registry = Self { process, user };

        eventually("the registry answers", || {
            machine
                .inside(|| TcpStream::connect(HOST).map(drop))
                .join()
                .unwrap()
        });

        registry
    }

    /// Pushes an archive of `docker save`.
    pub(crate) fn push(&self, machine: &Machine, archive: &Path, name: &str) {
        let from = format!("docker-archive:{}", archive.display());
        let to = format!("docker://{HOST}/{name}");
        let mut arguments = vec![
            "copy",
            "--quiet",
            "--insecure-policy",
            "--dest-tls-verify=false",
        ];
        arguments.extend(self.user.map(|_| "--dest-creds"));
        arguments.extend(self.user);
        arguments.extend([from.as_str(), to.as_str()]);

        machine.run("skopeo", &arguments);
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
