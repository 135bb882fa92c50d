//! `coracle image`, as a user types it.
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn an_image_is_imported_listed_shown_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let archive = saved_image(folder.path());

    let data = folder.path().join("data");
    let coracle = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
        command
            .arg("image")
            .args(arguments)
            .arg("--data-dir")
            .arg(&data);

        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();

        (
            output.status.success(),
            text(&output.stdout),
            text(&output.stderr),
        )
    };

    let good = |arguments: &[&str]| {
        let (success, printed, complaint) = coracle(arguments);
        assert!(success, "{arguments:?}: {complaint}");
        printed
    };

    let (success, _, complaint) = coracle(&["ls"]);
    assert!(
        !success && complaint.contains("cannot read"),
        "what is not there is not empty: {complaint}"
    );

    fs::create_dir(&data).unwrap();
    assert_eq!(good(&["ls"]), "IMAGE   TAG   IMAGE ID   SIZE\n");

    let imported = good(&["import", &archive]);
    assert!(
        imported.starts_with("docker.io/team/app:v1 sha256:"),
        "{imported}"
    );

    let table = good(&["ls"]);
    assert!(
        table
            .lines()
            .nth(1)
            .unwrap()
            .starts_with("docker.io/team/app   v1    "),
        "{table}"
    );

    let id = good(&["ls", "-q"]);
    let shown: serde_json::Value =
        serde_json::from_str(&good(&["inspect", "team/app:v1"])).unwrap();
    assert_eq!(shown["id"], id.trim());
    assert_eq!(shown["info"]["config"]["config"]["Cmd"][0], "/opt/f");

    let (success, _, complaint) = coracle(&["inspect", "nothing"]);
    assert_eq!(
        (success, complaint.as_str()),
        (false, "coracle: no such image: nothing\n")
    );

    let (success, _, complaint) = coracle(&["pull", "team/APP"]);
    assert!(
        !success && complaint.contains("invalid reference format"),
        "{complaint}"
    );

    assert_eq!(good(&["rm", "team/app:v1"]), id);
    assert!(!coracle(&["rm", "team/app:v1"]).0);
    assert_eq!(fs::read_dir(data.join("images/layers")).unwrap().count(), 0);
}

/// What `docker save team/app:v1` would write.
fn saved_image(folder: &Path) -> String {
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        let output = output
            .unwrap_or_else(|error| panic!("{program}: {error}; see scripts/test-prereqs.sh"));
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    };

    let (layout, content) = (folder.join("layout"), folder.join("f"));
    fs::write(&content, "x").unwrap();

    let image = format!("{}:v1", layout.display());
    run("umoci", &["init", "--layout", layout.to_str().unwrap()]);

    run("umoci", &["new", "--image", &image]);
    run(
        "umoci",
        &[
            "insert",
            "--image",
            &image,
            content.to_str().unwrap(),
            "/opt/f",
        ],
    );

    run(
        "umoci",
        &["config", "--image", &image, "--config.cmd", "/opt/f"],
    );

    let archive = folder.join("saved.tar").to_str().unwrap().to_owned();
    run(
        "skopeo",
        &[
            "copy",
            &format!("oci:{image}"),
            &format!("docker-archive:{archive}:team/app:v1"),
        ],
    );

    archive
}
