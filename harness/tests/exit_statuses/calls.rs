//! Calls that give no verdict.

use std::fs;
use std::path::Path;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::{Histories, To, fencepost, said, with};

#[test]
fn what_gives_no_verdict_ends_quietly_where_nobody_reads() {
    let histories = Histories::new();
    let violated = histories.path("violated.jsonl");
    let calls: [&[&str]; 11] = [
        &["--help"],
        &["run", "--help"],
        &["--version"],
        &["man"],
        &["completions", "bash"],
        &["list", "locks"],
        &["list", "scenarios", "--format", "json"],
        &["list", "faults", "--format", "jsonl"],
        &["export", &violated],
        &["doctor"],
        &["doctor", "--format", "jsonl"],
    ];
    for call in calls {
        let (reader, closed, full) = (To::Reader, To::ClosedPipe, To::Full);
        let alone = with(fencepost(call), reader, reader).status.code();
        let unread = with(fencepost(call), closed, reader);
        assert_eq!(unread.status.code(), alone, "{call:?}: {}", said(&unread));
        assert_eq!(said(&unread), "", "{call:?}");
        let deaf = with(fencepost(call), closed, closed).status.code();
        assert_eq!(deaf, alone, "{call:?}");
        let full = with(fencepost(call), full, reader);
        assert_eq!(full.status.code(), Some(69), "{call:?}");
        assert!(said(&full).contains("No space left"), "{call:?}");
    }
    for (call, status) in [
        (["frobnicate", "all"], 64),
        (["check", "/nowhere"], 64),
        (["check", "--bycontract"], 64),
    ] {
        for stderr in [To::ClosedPipe, To::Full] {
            let output = with(fencepost(&call), To::ClosedPipe, stderr);
            assert_eq!(output.status.code(), Some(status), "{call:?}");
        }
    }
}

/// Logs go to standard error, too.
#[test]
fn logs_that_nobody_reads_disturb_nothing() {
    let clean = |stderr| {
        let mut command = fencepost(&["clean"]);
        command.env("FENCEPOST_LOG", "trace");
        command.env("DOCKER_HOST", "tcp://127.0.0.1:1");
        let output = with(command, To::Reader, stderr);
        assert_eq!(output.status.code(), Some(69));
        said(&output)
    };
    let said = clean(To::Reader);
    assert!(said.contains("TRACE"), "there is nothing to log: {said}");
    clean(To::ClosedPipe);
    clean(To::Full);
}

#[test]
fn pairs_that_cannot_be_are_skipped_with_a_line_each() {
    let run = |policies: &[&str]| {
        let out = tempfile::tempdir().unwrap();
        let mut command = fencepost(&["run", "no-fault", "short-pause"]);
        command.args(["--lock", "redis-token", "--lock", "redlock"]);
        for policy in policies {
            command.args(["--policy", policy]);
        }
        command.arg("--out").arg(out.path());
        command.env("DOCKER_HOST", "unix:///nowhere");
        with(command, To::Reader, To::Reader)
    };
    let some = run(&["fenced", "unfenced"]);
    // It came as far as to look for Docker.
    assert_eq!(some.status.code(), Some(69), "{}", said(&some));
    let skipped = "skipped: redlock can't be used with policy fenced";
    assert_eq!(said(&some).matches(skipped).count(), 1, "{}", said(&some));
    assert_eq!(said(&some).matches("skipped").count(), 1, "{}", said(&some));

    let none = run(&["same-transaction"]);
    assert_eq!(none.status.code(), Some(64), "{}", said(&none));
    assert!(said(&none).contains("nothing to run"), "{}", said(&none));
}

#[test]
fn sizes_that_cannot_be_are_wrong_usage() {
    for jobs in ["0", "2305843009213693952", "-1"] {
        let output = with(
            fencepost(&["run", "no-fault", "--jobs", jobs]),
            To::Reader,
            To::Reader,
        );
        assert_eq!(output.status.code(), Some(64), "{}", said(&output));
    }
}

/// The damage comes last: whoever stops where nobody reads never sees it.
#[test]
fn a_damaged_history_is_told_also_where_nobody_reads_its_export() {
    let histories = Histories::new();
    let whole =
        "{:process 0, :type :invoke, :f :read}\n{:process 0, :type :ok, :f :read, :value 1}\n";
    histories.write(
        "damaged.edn",
        &(whole.repeat(2_000) + "{:process 0, :type :perhaps}\n"),
    );
    for stdout in [To::Reader, To::ClosedPipe] {
        let export = fencepost(&["export", &histories.path("damaged.edn")]);
        let output = with(export, stdout, To::Reader);
        assert_eq!(
            output.status.code(),
            Some(65),
            "{stdout:?}: {}",
            said(&output)
        );
    }
}

#[test]
fn what_is_no_regular_file_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    let call = |option: &str, path: &Path| {
        let mut command = fencepost(&["run", "no-fault", "--lock", "redis-set"]);
        let out = folder.path().join("out");
        command.env("FENCEPOST_OUT", out).arg(option).arg(path);
        command.env("DOCKER_HOST", "unix:///nowhere");
        with(command, To::Reader, To::Reader)
    };
    for (option, path, reason) in [
        (
            "--summary",
            fifo.as_path(),
            "it is a named pipe, not a regular file",
        ),
        (
            "--summary",
            Path::new("/dev/null"),
            "it is a device, not a regular file",
        ),
        (
            "--summary",
            folder.path(),
            "it is a folder, not a regular file",
        ),
        ("--out", &fifo, "name another place"),
    ] {
        let output = call(option, path);
        assert_eq!(
            output.status.code(),
            Some(64),
            "{option}: {}",
            said(&output)
        );
        assert!(
            said(&output).contains(reason),
            "{option}: {}",
            said(&output)
        );
    }
    // What is there is written anew, and what is not is made.
    let summary = folder.path().join("summary.md");
    for before in [None, Some("old")] {
        before.inspect(|old| fs::write(&summary, old).unwrap());
        assert_eq!(call("--summary", &summary).status.code(), Some(69));
        assert_eq!(fs::read_to_string(&summary).unwrap(), "");
    }
}

#[test]
fn runs_are_listed_where_there_are_none() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    for (out, status, reason) in [
        (None, 0, "there are no runs in fencepost-runs yet"),
        (Some("empty"), 0, "there are no runs in empty yet"),
        (Some("not-there"), 64, "not-there: there is no such folder"),
        (Some("file"), 64, "file is no folder"),
        (Some("file/in"), 64, "file/in is no folder"),
    ] {
        for format in ["human", "json"] {
            let mut command = fencepost(&["list", "runs", "--format", format]);
            command
                .current_dir(folder.path())
                .env_remove("FENCEPOST_OUT");
            if let Some(out) = out {
                command.env("FENCEPOST_OUT", out);
            }
            let output = with(command, To::Reader, To::Reader);
            assert_eq!(
                output.status.code(),
                Some(status),
                "{out:?}: {}",
                said(&output)
            );
            assert!(said(&output).contains(reason), "{out:?}: {}", said(&output));
        }
    }
}
