use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

#[derive(Clone, Debug, Default, PartialEq)]
struct Options {
    config: Option<PathBuf>,
    port: i64,
    fast: bool,
    wait: Duration,
    names: Vec<String>,
    each: Each,
    labels: BTreeMap<String, String>,
    gates: BTreeMap<String, bool>,
    address: Option<IpAddr>,
    ratio: f64,
    verbosity: i32,
    modules: Patterns,
    profiles: Tree,
}

type S = Setting<Options>;

const SETTINGS: &[S] = &[
    S::new("config", "", "file", |options| &mut options.config),
    S::new("secure-port", "1", "port", |options| &mut options.port).key("serving.port"),
    S::new("fast", "true", "fast", |options| &mut options.fast)
        .key("fast")
        .yields_to_file(),
    S::new("wait", "1m0s", "wait", |options| &mut options.wait).key("wait"),
    S::new("names", "a,b", "names", |options| &mut options.names).key("names"),
    S::new("each", "", "each", |options| &mut options.each),
    S::new("labels", "", "labels", |options| &mut options.labels).key("labels"),
    S::new("feature-gates", "", "gates", |options| &mut options.gates).key("featureGates"),
    S::new("address", "", "address", |options| &mut options.address).key("address"),
    S::new("qps", "5", "qps", |options| &mut options.ratio)
        .key("client.qps")
        .zero_is_default(),
    S::new("v", "0", "level", |options| &mut options.verbosity),
    S::new("vmodule", "", "levels", |options| &mut options.modules),
    S::new("", "", "profiles", |options| &mut options.profiles).key("profiles"),
];

const OMISSIONS: &[Omission] = &[
    Omission {
        why: "it is slow",
        switches: &["slow"],
        keys: &["slow"],
        ..Omission::NONE
    },
    Omission {
        why: "there are no clouds",
        treatment: Treatment::Only(&["", "external"]),
        values: &["cloud"],
        ..Omission::NONE
    },
    Omission {
        why: "nothing is periodic",
        treatment: Treatment::Ignored,
        values: &["period"],
        keys: &["period"],
        ..Omission::NONE
    },
];

const fn program(format: Format) -> Program<Options> {
    Program {
        name: "thing",
        about: "A thing.",
        sections: &[Section {
            name: "generic",
            settings: SETTINGS,
        }],
        omissions: &[OMISSIONS],
        format,
    }
}

const KIND: Format = Format::Kind {
    api_version: "thing/v1",
    kind: "Thing",
    unknown: Unknown::Error,
};

type Outcome = Result<(Options, Vec<String>), Vec<String>>;

fn read(format: Format, arguments: &[&str], file: &str) -> Outcome {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let load = |_: &Path| io::Result::Ok(file.as_bytes().to_vec());
    match program(format).read(&arguments, load) {
        Ok(Request::Run { options, warnings }) => Ok((options, warnings)),
        Ok(other) => panic!("{other:?}"),
        Err(mistakes) => Err(mistakes.0),
    }
}

/// The arguments lead to the defaults with a change.
fn check(arguments: &[&str], change: impl FnOnce(&mut Options)) {
    let mut expected = program(Format::None).defaults();
    change(&mut expected);
    let (options, warnings) = read(Format::None, arguments, "").unwrap();
    assert_eq!((options, warnings), (expected, Vec::new()), "{arguments:?}");
}

#[test]
fn flags_are_read_in_every_spelling() {
    check(&["--secure-port=7"], |options| options.port = 7);
    check(&["--secure_port", "7", "--fast=false"], |options| {
        options.port = 7;
        options.fast = false;
    });
    check(&["--secure-port=7", "--secure-port=8"], |options| {
        options.port = 8
    });
    check(&["--secure-port=0x10"], |options| options.port = 16);
    check(&["--secure-port", "-1"], |options| options.port = -1);
    check(&["--fast=f", "--fast"], |_| {});
    check(&["--wait=1h2m"], |options| {
        options.wait = Duration::from_secs(3720)
    });
    check(&["--address", "::1"], |options| {
        options.address = Some("::1".parse().unwrap())
    });
    check(&["--address="], |_| {});

    for level in [&["-v4"][..], &["-v=4"], &["-v", "4"], &["--v=4"]] {
        check(level, |options| options.verbosity = 4);
    }
}

#[test]
fn lists_replace_the_default_and_grow() {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    check(&["--names=x"], |options| options.names = names(&["x"]));
    check(&["--names=x,y", "--names=z"], |options| {
        options.names = names(&["x", "y", "z"])
    });
    check(&[r#"--names="x,y",z"#], |options| {
        options.names = names(&["x,y", "z"])
    });
    check(&["--names="], |options| options.names.clear());
    check(&["--each=x,y", "--each=z"], |options| {
        options.each = Each(names(&["x,y", "z"]))
    });

    check(&["--labels=a=1,b=2", "--labels=c="], |options| {
        let pairs = [("a", "1"), ("b", "2"), ("c", "")];
        options.labels = pairs
            .map(|(name, value)| (name.into(), value.into()))
            .into();
    });
    check(&["--feature-gates=A=true,B=false"], |options| {
        options.gates = [("A".into(), true), ("B".into(), false)].into();
    });
    check(&["--vmodule=a*=4,b=6"], |options| {
        let pattern = |file: &str, level| Pattern {
            file: file.into(),
            level,
        };
        options.modules = Patterns(vec![pattern("a*", 4), pattern("b", 6)]);
    });
}

fn refused(format: Format, arguments: &[&str], file: &str, expected: &[&str]) {
    assert_eq!(read(format, arguments, file).unwrap_err(), expected);
}

#[test]
fn all_mistakes_are_reported_together() {
    refused(
        Format::None,
        &[
            "--nope",
            "value",
            "word",
            "-x",
            "--secure-port=x",
            "--fast=2",
            "--address=x",
            "--secure-port",
        ],
        "",
        &[
            "unknown flag: --nope",
            "\"thing\" does not take any arguments, got [\"word\"]",
            "unknown shorthand flag: -x",
            "flag needs an argument: --secure-port",
            "invalid argument \"x\" for \"--secure-port\" flag: strconv.ParseInt: parsing \"x\": invalid syntax",
            "invalid argument \"2\" for \"--fast\" flag: strconv.ParseBool: parsing \"2\": invalid syntax",
            "invalid argument \"x\" for \"--address\" flag: failed to parse IP: \"x\"",
        ],
    );
    refused(
        Format::None,
        &[
            "-v=x",
            "--labels=a",
            "--feature-gates=A=1x",
            "--vmodule=a",
            "--",
            "--fast",
        ],
        "",
        &[
            "unknown shorthand flag: --fast",
            "invalid argument \"x\" for \"-v, --v\" flag: strconv.ParseInt: parsing \"x\": invalid syntax",
            "invalid argument \"a\" for \"--labels\" flag: malformed pair, expect string=string",
            "invalid argument \"A=1x\" for \"--feature-gates\" flag: invalid value of A: 1x, err: strconv.ParseBool: \
             parsing \"1x\": invalid syntax",
            "invalid argument \"a\" for \"--vmodule\" flag: syntax error: \"a\" is not pattern=N",
        ],
    );
}

#[test]
fn omitted_flags_are_treated_as_declared() {
    refused(
        Format::None,
        &["--slow"],
        "",
        &["--slow is not supported: it is slow"],
    );
    refused(
        Format::None,
        &["--cloud", "aws"],
        "",
        &["--cloud accepts only \"\" or \"external\": there are no clouds"],
    );
    check(&["--cloud=external"], |_| {});

    let (_, warnings) = read(Format::None, &["--period", "5s"], "").unwrap();
    assert_eq!(warnings, ["--period has no effect: nothing is periodic"]);
}

const HEAD: &str = "apiVersion: thing/v1\nkind: Thing\n";

#[test]
fn a_file_sets_keys_and_flags_win() {
    let file = format!(
        "{HEAD}serving: {{port: 7}}\nfast: false\nwait: 0s\nnames: [x]\nlabels: {{a: b}}\nclient: {{qps: 0}}\n\
         profiles: [{{a: 1}}]\nslow: false\nperiod: 3s\n"
    );
    let arguments = ["--config=c.yaml", "--names=y", "--fast"];
    let (options, warnings) = read(KIND, &arguments, &file).unwrap();

    assert_eq!(
        (options.port, options.fast, options.names),
        (7, false, vec!["y".into()])
    );
    assert_eq!(
        (options.wait, options.ratio),
        (Duration::from_secs(60), 5.0)
    );
    assert_eq!(options.labels, [("a".into(), "b".into())].into());
    assert!(options.profiles.0.is_some());
    assert_eq!(
        warnings,
        [
            "c.yaml: period has no effect: nothing is periodic",
            "--fast is ignored: the configuration file decides"
        ]
    );
}

#[test]
fn wrong_files_are_refused() {
    let refused = |text: &str, expected: &[&str]| {
        refused(
            KIND,
            &["--config=c.yaml"],
            &format!("{HEAD}{text}"),
            expected,
        );
    };
    refused("sreving: {}", &["c.yaml: unknown field \"sreving\""]);
    refused(
        "serving: {prot: 1}",
        &["c.yaml: unknown field \"serving.prot\""],
    );
    refused("serving: 1", &["c.yaml: serving: expected a mapping"]);
    refused(
        "serving: {port: '1'}",
        &["c.yaml: serving.port: expected an integer, got string"],
    );
    refused("fast: 1", &["c.yaml: fast: expected a bool, got number"]);
    refused("slow: true", &["c.yaml: slow is not supported: it is slow"]);

    let other = read(KIND, &["--config=c.yaml"], "apiVersion: v1\nkind: Pod\n").unwrap_err();
    assert_eq!(
        other,
        ["c.yaml: no kind \"Pod\" is registered for version \"v1\": want Thing of thing/v1"]
    );
    let twice = read(
        KIND,
        &["--config=c.yaml"],
        &format!("{HEAD}fast: true\nfast: true\n"),
    );
    assert!(twice.unwrap_err()[0].contains("fast"));
}

#[test]
fn unknown_keys_are_warnings_where_upstream_warns() {
    let format = Format::Kind {
        api_version: "thing/v1",
        kind: "Thing",
        unknown: Unknown::Warning,
    };
    let (_, warnings) = read(format, &["--config=c.yaml"], &format!("{HEAD}fsat: true\n")).unwrap();
    assert_eq!(warnings, ["c.yaml: unknown field \"fsat\""]);
}

#[test]
fn a_file_of_names_has_the_flags_as_keys() {
    let names = |file: &str, arguments: &[&str]| {
        let arguments = [&["--config", "c.yaml"], arguments].concat();
        read(Format::Names, &arguments, file)
    };
    let (options, _) = names("secure-port: 7\nnames: ['x', '-y']\nfast: false\n", &[]).unwrap();
    assert_eq!((options.port, options.fast), (7, false));
    assert_eq!(options.names, ["x", "-y"]);

    let (options, _) = names(
        "secure-port: 7\nnames: [x]\n",
        &["--secure-port=8", "--names=z"],
    )
    .unwrap();
    assert_eq!((options.port, options.names), (8, vec!["z".into()]));
    assert!(names("", &[]).is_ok());

    let wrong = |file: &str, expected: &str| assert_eq!(names(file, &[]).unwrap_err(), [expected]);
    wrong(
        "prot: 1",
        "c.yaml: unknown key \"prot\"; keys are the flags of `coracle thing`, without the dashes",
    );
    wrong(
        "config: x",
        "c.yaml: unknown key \"config\"; keys are the flags of `coracle thing`, without the dashes",
    );
    wrong(
        "fast: {}",
        "c.yaml: key \"fast\": expected a plain value or a list of them",
    );
    wrong("- a", "c.yaml: expected a mapping");
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let load = |_: &Path| Err(io::Error::other("gone"));
    let arguments = [String::from("--config=c.yaml")];
    let error = program(KIND).read(&arguments, load).unwrap_err();
    assert_eq!(error.to_string(), "c.yaml: gone");
}

#[test]
fn patterns_match_whole_names() {
    let matches = |file: &str, name: &str| {
        let file = file.to_string();
        Pattern { file, level: 0 }.matches(name)
    };
    for (pattern, name) in [
        ("a", "a"),
        ("a*", "abc"),
        ("*c", "abc"),
        ("a?c", "abc"),
        ("*b*", "abbc"),
        ("*", ""),
    ] {
        assert!(matches(pattern, name), "{pattern} {name}");
    }
    for (pattern, name) in [("a", "ab"), ("?", ""), ("*b", "abc"), ("", "a")] {
        assert!(!matches(pattern, name), "{pattern} {name}");
    }
}

#[test]
fn a_range_of_ports_has_two_ends_or_a_length() {
    let read = |text: &str| {
        let mut range = PortRange::default();
        range.set(text).map(|()| range.0)
    };

    assert_eq!(read("30000-32767"), Ok(30000..=32767));
    assert_eq!(read("100 - 200"), Ok(100..=200));
    assert_eq!(read("100+50"), Ok(100..=150));
    assert_eq!(read("8080"), Ok(8080..=8080));

    for wrong in [
        "",
        "a-b",
        "200-100",
        "0-10",
        "65000-70000",
        "65000+1000",
        "1-2-3",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_help_shows_types_and_defaults() {
    let help = program(Format::None).help();
    for part in [
        "\nGeneric flags:\n",
        "\n  --secure-port int (default 1)\n      port\n",
        "\n  --fast (default true)\n",
        "\n  -v, --v int32",
    ] {
        assert!(help.contains(part), "{help}");
    }
    let asked = program(Format::None).read(&[String::from("-h")], |_| Ok(Vec::new()));
    assert_eq!(asked, Ok(Request::Help));
}

#[test]
fn values_in_effect_are_shown_as_flags_and_as_a_file() {
    let arguments = [
        "--secure-port=7",
        "--names=x,y",
        "--each=a,b",
        "--labels=k=v,l=w",
        "--feature-gates=A=true",
        "--address=::1",
        "--qps=0.5",
        "--wait=90s",
        "--vmodule=queue*=4",
    ];
    let (mut options, _) = read(KIND, &arguments, "").unwrap();

    let flags = program(KIND).flags(&mut options);
    let expected = [
        ("address", "::1"),
        ("config", ""),
        ("each", "[a,b]"),
        ("fast", "true"),
        ("feature-gates", "A=true"),
        ("labels", "k=v,l=w"),
        ("names", "[x,y]"),
        ("qps", "0.5"),
        ("secure-port", "7"),
        ("v", "0"),
        ("vmodule", "queue*=4"),
        ("wait", "1m30s"),
    ];
    assert_eq!(
        flags,
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );

    // Read as a file, it leads to the same values again.
    let file = program(KIND).configuration(&mut options);
    let file = String::from_utf8(coracle_api::codec::json::to_vec(&file)).unwrap();
    let (again, _) = read(
        KIND,
        &["--config=f", "--each=a,b", "--vmodule=queue*=4"],
        &file,
    )
    .unwrap();
    options.config = Some(PathBuf::from("f"));
    assert_eq!(again, options);
}
