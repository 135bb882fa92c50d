//! Arguments and environment of a container's process, from the image and the container config.

use coracle_cri::v1::ContainerConfig;

use super::users::User;
use crate::error::Error;
use crate::ports::ImageConfig;

const USUAL_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The command line. A command of the container config replaces the image's arguments too.
pub(super) fn command(config: &ContainerConfig, image: &ImageConfig) -> Result<Vec<String>, Error> {
    let (command, default_args) = if config.command.is_empty() {
        (&image.entrypoint, image.command.as_slice())
    } else {
        (&config.command, [].as_slice())
    };

    let args = if config.args.is_empty() {
        default_args
    } else {
        config.args.as_slice()
    };

    let whole: Vec<String> = command.iter().chain(args).cloned().collect();
    if whole.is_empty() {
        Err(Error::Invalid("no command specified".to_owned()))
    } else {
        Ok(whole)
    }
}

/// The environment: defaults, overridden by the image's, overridden by the container's.
pub(super) fn variables(
    config: &ContainerConfig,
    image: &ImageConfig,
    user: &User,
    host_name: &str,
) -> Vec<String> {
    let mut variables: Vec<String> = Vec::new();
    let mut set = |variable: String| {
        let name = variable.split('=').next().unwrap_or_default().to_owned();
        match variables
            .iter_mut()
            .find(|known| known.split('=').next() == Some(&name))
        {
            Some(known) => *known = variable,
            None => variables.push(variable),
        }
    };

    set(USUAL_PATH.to_owned());
    set(format!("HOSTNAME={host_name}"));

    if config.tty {
        set("TERM=xterm".to_owned());
    }
    if !user.home.is_empty() {
        set(format!("HOME={}", user.home));
    }

    image.environment.iter().cloned().for_each(&mut set);

    for pair in &config.envs {
        set(format!(
            "{}={}",
            pair.key,
            String::from_utf8_lossy(&pair.value)
        ));
    }

    variables
}

#[cfg(test)]
mod tests {
    use coracle_cri::v1::KeyValue;

    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn check(container: (&[&str], &[&str]), image: (&[&str], &[&str]), expected: Option<&[&str]>) {
        let config = ContainerConfig {
            command: texts(container.0),
            args: texts(container.1),
            ..Default::default()
        };
        let image = ImageConfig {
            entrypoint: texts(image.0),
            command: texts(image.1),
            ..Default::default()
        };
        assert_eq!(command(&config, &image).ok(), expected.map(texts));
    }

    #[test]
    fn the_command_is_the_containers_or_the_images() {
        check((&[], &[]), (&["e"], &["c"]), Some(&["e", "c"]));
        check((&[], &["a"]), (&["e"], &["c"]), Some(&["e", "a"]));
        check((&["x"], &[]), (&["e"], &["c"]), Some(&["x"]));
        check((&["x"], &["a"]), (&["e"], &["c"]), Some(&["x", "a"]));
        check((&[], &[]), (&[], &[]), None);
    }

    #[test]
    fn the_containers_environment_lies_over_the_images() {
        let image = ImageConfig {
            environment: texts(&["A=1", "PATH=/x", "B=1"]),
            ..ImageConfig::default()
        };

        let pair = |key: &str, value: &'static str| KeyValue {
            key: key.to_owned(),
            value: value.into(),
        };

        let config = ContainerConfig {
            envs: vec![pair("B", "2"), pair("C", "x=y"), pair("B", "3")],
            ..Default::default()
        };

        let user = User {
            home: "/root".to_owned(),
            ..User::default()
        };

        assert_eq!(
            variables(&config, &image, &user, "pod-1"),
            texts(&[
                "PATH=/x",
                "HOSTNAME=pod-1",
                "HOME=/root",
                "A=1",
                "B=3",
                "C=x=y"
            ])
        );
    }
}
