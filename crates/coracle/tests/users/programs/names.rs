//! What every link does.

use super::{Links, NAMES};

#[test]
fn a_link_is_the_program_of_its_name() {
    let links = Links::new();
    for name in NAMES {
        let run = |argument: &str| {
            let output = links.command(name).arg(argument).output().unwrap();
            let text = |bytes| String::from_utf8(bytes).unwrap();
            (
                output.status.code(),
                text(output.stdout),
                text(output.stderr),
            )
        };

        let (status, help, _) = run("--help");
        assert_eq!(status, Some(0), "{name}");
        assert!(
            help.contains(&format!("Usage:\n  coracle {name} [flags]")),
            "{help}"
        );

        let (status, version, _) = run("--version");
        assert_eq!(status, Some(0), "{name}");
        let expected = match name {
            "etcd" => "etcd Version: 3.6",
            _ => "Kubernetes v1.36.",
        };
        assert!(version.starts_with(expected), "{version}");

        let (status, _, error) = run("--no-such-flag=1");
        assert_eq!(status, Some(1), "{name}");
        assert_eq!(error, format!("{name}: unknown flag: --no-such-flag\n"));
    }
}

/// envtest looks for these in the help.
#[test]
fn the_help_says_what_tests_look_for() {
    let links = Links::new();
    let has = |name: &str, flag: &str| {
        let help = links.command(name).arg("--help").output().unwrap().stdout;
        let help = String::from_utf8(help).unwrap();
        help.lines()
            .any(|line| line.trim_start().split(' ').next() == Some(flag))
    };
    assert!(has("etcd", "--unsafe-no-fsync"));
    assert!(!has("kube-apiserver", "--insecure-port"));
}
