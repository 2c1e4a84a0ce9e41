//! `check`, and the order in which exit statuses apply.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::{Histories, To, as_nobody, fencepost, said, with};

#[test]
fn a_reader_that_went_away_changes_no_verdict_and_a_full_disk_hides_no_violation() {
    let histories = Histories::new();
    let closed = To::ClosedPipe;
    for (names, status, with_full_output) in [
        (["holds.log"].as_slice(), 0, 69),
        (&["violated.jsonl"], 1, 1),
        (&["unknown.jsonl"], 2, 69),
        (&["unreadable.jsonl", "holds.log"], 65, 69),
        (&["holds.log", "unknown.jsonl"], 2, 69),
        (&["unreadable.jsonl", "unknown.jsonl", "holds.log"], 65, 69),
        // The violation comes last: whoever stops at the first line that can't be written never sees it.
        (&["holds.log", "unreadable.jsonl", "violated.jsonl"], 1, 1),
    ] {
        for (stdout, stderr, expected) in [
            (To::Reader, To::Reader, status),
            (closed, To::Reader, status),
            (To::Reader, closed, status),
            (closed, closed, status),
            (To::Reader, To::Full, status),
            (To::Full, To::Reader, with_full_output),
            (To::Full, closed, with_full_output),
            (To::Full, To::Full, with_full_output),
        ] {
            for format in ["human", "json", "jsonl"] {
                let mut command = histories.check(names);
                command.args(["--format", format]);
                let output = with(command, stdout, stderr);
                assert_eq!(
                    output.status.code(),
                    Some(expected),
                    "{names:?} as {format} to {stdout:?} and {stderr:?}: {}",
                    said(&output)
                );
            }
        }
    }
}

#[test]
fn a_full_disk_is_told_once() {
    let histories = Histories::new();
    let command = histories.check(&["holds.log", "violated.jsonl", "holds.log"]);
    let output = with(command, To::Full, To::Reader);
    assert_eq!(said(&output).matches("No space left").count(), 1);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn what_cannot_be_looked_at_is_told_and_the_rest_is_judged() {
    let histories = Histories::new();
    symlink(histories.path("loop"), histories.path("loop")).unwrap();
    let output = with(
        histories.check(&["loop", "holds.log"]),
        To::Reader,
        To::Reader,
    );
    assert_eq!(output.status.code(), Some(65), "{}", said(&output));
    assert!(said(&output).contains("/loop; make it readable"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        stdout.contains("2 histories: 1 hold, 0 are violated, 0 unknown, 1 could not be read"),
        "{stdout}"
    );
    let worse = histories.check(&["loop", "violated.jsonl"]);
    assert_eq!(with(worse, To::Reader, To::Reader).status.code(), Some(1));
}

#[test]
fn what_is_not_there_keeps_nothing_else_from_being_judged() {
    let histories = Histories::new();
    let empty = histories.path("empty");
    fs::create_dir(&empty).unwrap();
    for (good, status) in [
        ("violated.jsonl", 1),
        ("unreadable.jsonl", 65),
        ("unknown.jsonl", 64),
        ("holds.log", 64),
    ] {
        for (missing, reason) in [
            ("not-there", "not-there: there is no such file or folder"),
            ("empty", "empty holds no history"),
        ] {
            for names in [[good, missing], [missing, good]] {
                let output = with(histories.check(&names), To::Reader, To::Reader);
                let (told, stdout) = (said(&output), String::from_utf8_lossy(&output.stdout));
                assert_eq!(output.status.code(), Some(status), "{names:?}: {told}");
                assert_eq!(told.matches(reason).count(), 1, "{names:?}: {told}");
                assert!(stdout.contains("2 histories: "), "{names:?}: {stdout}");
            }
        }
    }
    let twice = with(fencepost(&["check", "-", "-"]), To::Reader, To::Reader);
    assert!(said(&twice).contains("name `-` once"), "{}", said(&twice));
}

/// What has a history's name and is none of the files that are read is not passed over.
#[test]
fn what_is_no_regular_file_in_a_folder_is_unreadable() {
    type Make = fn(&Path);
    let fifo: Make = |path| mkfifo(path, Mode::S_IRWXU).unwrap();
    let link: Make = |path| symlink("holds.log", path).unwrap();
    let socket: Make = |path| drop(UnixListener::bind(path).unwrap());
    for (make, reason) in [
        (fifo, "it is a named pipe, not a regular file"),
        (
            link,
            "it is a symbolic link, and none is followed below a folder",
        ),
        (socket, "history.jsonl"),
    ] {
        for (good, status) in [("holds.log", 65), ("violated.jsonl", 1)] {
            let histories = Histories::new();
            let folder = tempfile::tempdir().unwrap();
            let run = folder.path().join("run");
            fs::create_dir(&run).unwrap();
            fs::copy(histories.path(good), run.join(good)).unwrap();
            make(&run.join("history.jsonl"));
            let check = fencepost(&["check", &folder.path().to_string_lossy()]);
            let output = with(check, To::Reader, To::Reader);
            assert_eq!(output.status.code(), Some(status), "{}", said(&output));
            assert_eq!(
                said(&output).matches(reason).count(),
                1,
                "{}",
                said(&output)
            );
            let stdout = String::from_utf8_lossy(&output.stdout);
            assert!(stdout.contains("1 could not be read"), "{stdout}");
        }
    }
}

#[test]
fn a_subfolder_that_cannot_be_read_keeps_none_of_the_others_from_being_judged() {
    let folder = tempfile::tempdir().unwrap();
    let histories = Histories::new();
    let at = |name: &str| folder.path().join(name);
    for name in ["a", "closed", "z"] {
        fs::create_dir(at(name)).unwrap();
        fs::copy(histories.path("holds.log"), at(name).join("holds.log")).unwrap();
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(at("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    // Whether it is a history, only its text could say.
    fs::write(at("z/shut.log"), "").unwrap();
    fs::set_permissions(at("z/shut.log"), fs::Permissions::from_mode(0o000)).unwrap();
    let path = folder.path().to_string_lossy().into_owned();
    let not_as_root = |arguments: &[&str]| {
        let (command, _program) = as_nobody(&[], arguments);
        with(command, To::Reader, To::Reader)
    };
    let output = not_as_root(&["check", &path]);
    let listed = not_as_root(&["list", "runs", "--out", &path]);
    fs::set_permissions(at("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(listed.status.code(), Some(0), "{}", said(&listed));
    assert_eq!(output.status.code(), Some(65), "{}", said(&output));
    assert!(
        said(&output).contains("/closed; make it readable, or leave it out: Permission denied")
    );
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("4 histories: 2 hold"), "{stdout}");
    assert!(stdout.contains("2 could not be read"), "{stdout}");
}

/// A run that ended in its first instant is not passed over, with or without others beside it.
#[test]
fn a_run_directory_without_a_history_is_told_and_unknown() {
    let told = "holds the plan of a run and no history: the run ended before it recorded anything";
    for (beside, expected, by_contract) in [
        (None, 2, 2),
        (Some("holds.log"), 2, 2),
        (Some("violated.jsonl"), 1, 2),
        (Some("unreadable.jsonl"), 65, 65),
    ] {
        let histories = Histories::new();
        let out = tempfile::tempdir().unwrap();
        let run = out.path().join("no-fault/run");
        for folder in ["clients", "logs/c1"] {
            fs::create_dir_all(run.join(folder)).unwrap();
        }
        fs::write(run.join("plan.toml"), "").unwrap();
        fs::write(run.join("clients/c1.jsonl"), "").unwrap();
        if let Some(name) = beside {
            fs::copy(histories.path(name), out.path().join(name)).unwrap();
        }
        for (flag, status) in [(None, expected), (Some("--by-contract"), by_contract)] {
            let mut check = fencepost(&["check", &out.path().to_string_lossy()]);
            check.args(flag);
            let output = with(check, To::Reader, To::Reader);
            let said = said(&output);
            assert_eq!(output.status.code(), Some(status), "{beside:?}: {said}");
            let lines: Vec<&str> = said.lines().filter(|line| line.contains(told)).collect();
            assert_eq!(lines.len(), 1, "{beside:?}: {said}");
            assert!(lines[0].contains("/no-fault/run holds"), "{said}");
            let stdout = String::from_utf8_lossy(&output.stdout);
            let sum = stdout.contains("2 histories: ") && stdout.contains("1 unknown");
            assert_eq!(sum, beside.is_some(), "{stdout}");
        }
    }
}

#[test]
fn of_a_run_directory_only_a_missing_history_is_told() {
    let histories = Histories::new();
    let run = tempfile::tempdir().unwrap();
    fs::write(run.path().join("plan.toml"), "").unwrap();
    let path = run.path().to_string_lossy().into_owned();
    let call = |arguments: &[&str]| with(fencepost(arguments), To::Reader, To::Reader);
    let check = || call(&["check", &path]);

    let output = check();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let output = call(&["export", &path]);
    assert_eq!(output.status.code(), Some(64), "{}", said(&output));
    assert!(said(&output).contains("ended before it recorded anything"));

    // A folder of that name is none.
    fs::create_dir(run.path().join("history.jsonl")).unwrap();
    assert_eq!(check().status.code(), Some(2));
    fs::remove_dir(run.path().join("history.jsonl")).unwrap();

    fs::copy(
        histories.path("violated.jsonl"),
        run.path().join("history.jsonl"),
    )
    .unwrap();
    let output = check();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(said(&output), "");
}

#[test]
fn by_contract_a_known_limit_is_no_failure() {
    let histories = Histories::new();
    for (names, alone, by_contract) in [
        (["violated.jsonl"].as_slice(), 1, 0),
        (&["unknown.jsonl"], 2, 2),
        (&["violated.jsonl", "unknown.jsonl"], 1, 2),
        (&["violated.jsonl", "unreadable.jsonl"], 1, 65),
    ] {
        let status = |command| with(command, To::Reader, To::Reader).status.code();
        assert_eq!(status(histories.check(names)), Some(alone), "{names:?}");
        let mut asked = histories.check(names);
        asked.arg("--by-contract");
        assert_eq!(status(asked), Some(by_contract), "{names:?}");
        let mut by_environment = histories.check(names);
        by_environment.env("FENCEPOST_BY_CONTRACT", "true");
        assert_eq!(status(by_environment), Some(by_contract), "{names:?}");
    }
}

/// As `run` says of the same runs: a control counts over all histories of its scenario, lock and policy.
#[test]
fn by_contract_a_control_has_to_be_shown_by_one_of_its_histories() {
    let histories = Histories::new();
    let saved = |name: &str| {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../histories/corpus/v2");
        fs::read_to_string(corpus.join(name)).unwrap()
    };
    // What the fenced run does not show is what this scenario is there to show.
    let (header, events) = saved("paused-client-redis-token-fenced.jsonl")
        .split_once('\n')
        .map(|(header, rest)| (header.to_owned(), rest.trim_end().to_owned()))
        .unwrap();
    let header = header
        .replace(r#""policy":"fenced""#, r#""policy":"unfenced""#)
        .replace(
            r#""controls":["no-stale-write","exclusive-belief"]"#,
            r#""controls":["no-lost-update"]"#,
        );
    let (events, _footer) = events.rsplit_once('\n').unwrap();
    histories.write("missed.jsonl", &format!("{header}\n{events}\n"));
    histories::seal(histories.path("missed.jsonl")).unwrap();
    histories.write(
        "shown.jsonl",
        &saved("paused-client-redis-token-unfenced.jsonl"),
    );
    let missed = "paused-client redis-token unfenced: no-lost-update: the scenario is there to show a violation";
    for (names, property, status) in [
        (["missed.jsonl"].as_slice(), None, 2),
        (&["missed.jsonl", "missed.jsonl"], None, 2),
        (&["missed.jsonl", "shown.jsonl"], None, 0),
        (&["shown.jsonl", "missed.jsonl"], None, 0),
        (&["missed.jsonl", "unreadable.jsonl"], None, 65),
        // What is not looked for is not missed.
        (&["missed.jsonl"], Some("mutual-exclusion"), 0),
    ] {
        for format in ["human", "json", "jsonl"] {
            let mut command = histories.check(names);
            command.args(["--by-contract", "--format", format]);
            command.args(property.map(|name| format!("--property={name}")));
            let output = with(command, To::Reader, To::Reader);
            let told = said(&output);
            assert_eq!(output.status.code(), Some(status), "{names:?}: {told}");
            assert_eq!(
                told.contains(missed),
                status != 0,
                "{names:?} as {format}: {told}"
            );
        }
    }
}

#[test]
fn a_saved_verdict_that_does_not_agree_is_told() {
    let histories = Histories::new();
    fs::rename(
        histories.path("violated.jsonl"),
        histories.path("history.jsonl"),
    )
    .unwrap();
    let check = || {
        let mut command = histories.check(&["history.jsonl"]);
        command.args(["--format", "json"]);
        let output = with(command, To::Reader, To::Reader);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let judged: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (judged[0].clone(), said(&output))
    };
    let (verdict, _) = check();
    let verdict = serde_json::to_string(&verdict).unwrap();
    histories.write("verdict.json", &verdict);
    let (agreed, said) = check();
    assert_eq!(said, "");
    assert!(agreed.get("saved_verdict_differs").is_none());

    histories.write(
        "verdict.json",
        &verdict.replace("\"violated\"", "\"holds\""),
    );
    let (differs, said) = check();
    assert!(
        said.contains("no-stale-write: it says holds, this build says violated"),
        "{said}"
    );
    let differences = differs["saved_verdict_differs"].as_array().unwrap();
    assert_eq!(differences[0]["saved"], "holds");
    assert_eq!(differences[0]["now"], "violated");

    histories.write("verdict.json", "{");
    assert!(check().1.contains("cannot read"), "a torn verdict");
}
