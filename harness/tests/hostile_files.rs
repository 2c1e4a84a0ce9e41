//! Files as a stranger may write them: what is read of them is checked, what is shown of them does nothing, and what is
//! no file of ours is neither waited for nor read to its end. Nothing here needs Docker.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

/// What a terminal would obey: its title, its colours, its screen (C1), the order of text, a line of one's own.
const HOSTILE: &str =
    "x\u{1b}]0;owned\u{7}\u{1b}[32mholds\u{1b}[0m\u{9b}2J\u{202e}\u{2028}\u{7f}\r\nforged: holds";

fn fencepost(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// A line of the corpus's first history as JSON, and those after it as they are.
fn saved() -> (Value, Vec<String>) {
    let corpus = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../histories/corpus/v1/paused-client.jsonl"
    );
    let text = fs::read_to_string(corpus).unwrap();
    let mut lines = text.lines().map(str::to_owned);
    let header = serde_json::from_str(&lines.next().unwrap()).unwrap();
    (header, lines.collect())
}

fn write(path: &Path, header: &Value, lines: &[String]) {
    fs::write(path, format!("{header}\n{}\n", lines.join("\n"))).unwrap();
}

/// The saved history with another value in its plan.
fn with_plan(folder: &Path, pointer: &str, value: Value) -> PathBuf {
    let (mut header, lines) = saved();
    *header["plan"].pointer_mut(pointer).unwrap() = value;
    let path = folder.join("history.jsonl");
    write(&path, &header, &lines);
    path
}

/// Whether a terminal obeys nothing of a text but newlines and, where there may be any, our own colours.
#[track_caller]
fn is_harmless(text: &str, colored: bool) {
    let mut rest = text.replace('\n', "");
    if colored {
        for code in ["32", "36", "1;31", "33", "0"] {
            rest = rest.replace(&format!("\u{1b}[{code}m"), "");
        }
    }
    assert_eq!(histories::visible(&rest), rest, "{text:?}");
    assert!(!text.contains("\nforged"), "{text:?}");
}

#[test]
fn a_wrong_plan_is_unreadable_whoever_asks() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    for (pointer, value, reason) in [
        (
            "/clients",
            json!(0),
            "`clients`: must be a whole number from 1 to 64, not 0",
        ),
        ("/clients", json!(u32::MAX), "`clients`: must be"),
        ("/ttl_ms", json!(0), "`ttl_ms`: must be"),
        ("/scenario", json!("../.."), "`scenario`: "),
        ("/scenario", json!(""), "`scenario`: "),
        ("/limit_ms", json!(u64::MAX), "`limit_ms`: must be"),
        (
            "/controls/0",
            json!("no-deadlock"),
            "`controls[0]`: unknown property `no-deadlock`",
        ),
        (
            "/faults/0/when/nth_grant",
            json!(0),
            "`faults[0].when.nth_grant`: must be",
        ),
    ] {
        let path = with_plan(folder.path(), pointer, value.clone());
        let path = path.to_str().unwrap();
        for arguments in [
            vec!["check", path],
            vec!["check", "--model", "mutex", path],
            vec!["export", path],
            vec!["replay", "--out", out.to_str().unwrap(), path],
        ] {
            let output = fencepost(&arguments);
            let (_, error) = said(&output);
            assert_eq!(
                output.status.code(),
                Some(65),
                "{arguments:?} {value}: {error}"
            );
            assert!(error.contains(reason) && error.contains(path), "{error}");
        }
    }
    assert!(!out.exists(), "nothing is made for a plan that is refused");
}

#[test]
fn a_run_s_id_is_no_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    for run in [
        "../../../etc",
        "",
        "a/b",
        ".",
        "a b",
        HOSTILE,
        &"1".repeat(65),
    ] {
        let (mut header, lines) = saved();
        header["run"] = json!(run);
        write(&path, &header, &lines);
        for verb in ["check", "replay", "export"] {
            let output = fencepost(&[verb, path.to_str().unwrap()]);
            let (_, error) = said(&output);
            assert_eq!(output.status.code(), Some(65), "{verb} {run}: {error}");
            assert!(
                error.contains("history.jsonl:1: `run` has to be"),
                "{error}"
            );
            is_harmless(&error, false);
        }
    }
}

#[test]
fn what_another_build_knows_can_be_checked_but_not_replayed() {
    let folder = tempfile::tempdir().unwrap();
    for (pointer, value, reason) in [
        ("/lock", json!("zookeeper"), "there is no lock `zookeeper`"),
        (
            "/topology",
            json!("redis-ring"),
            "unknown topology `redis-ring`",
        ),
        (
            "/topology",
            json!("etcd"),
            "`topology`: redis-set runs on topology redis, not on etcd",
        ),
        ("/storage", json!("mysql"), "there is no storage `mysql`"),
        ("/policy", json!("fencd"), "did you mean `fenced`?"),
        (
            "/policy",
            json!("fenced"),
            "`policy`: redis-set can't be used with policy fenced",
        ),
        ("/workload/name", json!("queue"), "unknown workload `queue`"),
        (
            "/faults/0/fault",
            json!("power-cut"),
            "unknown fault `power-cut`",
        ),
        ("/faults/0/on", json!("s7"), "unknown server `s7`"),
    ] {
        let path = with_plan(folder.path(), pointer, value.clone());
        let path = path.to_str().unwrap();
        let checked = fencepost(&["check", path]).status.code();
        assert!(matches!(checked, Some(0..=2)), "{value}: {checked:?}");
        let output = fencepost(&["replay", path]);
        let (_, error) = said(&output);
        assert_eq!(output.status.code(), Some(65), "{value}: {error}");
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn what_a_history_says_does_nothing_to_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let (mut header, lines) = saved();
    let plan = &mut header["plan"];
    for field in ["lock", "topology", "storage", "policy"] {
        plan[field] = json!(HOSTILE);
    }
    plan["workload"]["name"] = json!(HOSTILE);
    plan["faults"][0]["fault"] = json!(HOSTILE);
    plan["faults"][0]["on"] = json!(HOSTILE);
    let hostile = |line: &String| {
        let mut event: Value = serde_json::from_str(line).unwrap();
        for field in [
            "lock", "document", "value", "error", "fault", "engine", "point", "process",
        ] {
            let is_ours = event["process"] == "nemesis" || event["process"] == "storage";
            match &mut event[field] {
                Value::String(text) if field != "process" || !is_ours => *text += HOSTILE,
                _ => {}
            }
        }
        if event["on"].is_array() {
            event["on"] = json!([HOSTILE]);
        }
        // What is absent was read as null, which says the same.
        event.to_string()
    };
    let events = lines.len() - 1;
    let lines: Vec<String> = lines[..events]
        .iter()
        .map(hostile)
        .chain([lines[events].clone()])
        .collect();
    let path = folder.path().join("history.jsonl");
    write(&path, &header, &lines);
    let path = path.to_str().unwrap();
    for (color, colored) in [("never", false), ("always", true)] {
        for with in [
            vec![],
            vec!["--model", "mutex"],
            vec!["--model", "register"],
        ] {
            let arguments = [vec!["check", path, "--color", color], with].concat();
            let output = fencepost(&arguments);
            let (page, error) = said(&output);
            assert!(!page.is_empty() || !error.is_empty(), "{arguments:?}");
            is_harmless(&page, colored);
            is_harmless(&error, false);
        }
    }
    let (page, error) = said(&fencepost(&["check", path, "--color", "always"]));
    assert!(page.contains("\\u001b]0;owned\\u0007"), "{page} {error}");
    let (json, _) = said(&fencepost(&["check", path, "--format", "json"]));
    is_harmless(&json, false);
    let judged: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(judged[0]["lock"], HOSTILE);
}

#[test]
fn what_an_error_repeats_does_nothing_to_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let scenario = place("mine.toml");
    let escaped = HOSTILE.escape_unicode().to_string().replace("\\u{", "\\U{");
    let escaped: String = escaped
        .split_inclusive('}')
        .map(|code| {
            format!(
                "\\U{:0>8}",
                code.trim_start_matches("\\U{").trim_end_matches('}')
            )
        })
        .collect();
    fs::write(
        &scenario,
        format!("summary = \"s\"\ncontrols = [\"{escaped}\"]\n"),
    )
    .unwrap();
    let named = place(HOSTILE.split(']').next().unwrap());
    fs::write(&named, "no history").unwrap();
    let wrong_kind = place("kind.jsonl");
    let (header, mut lines) = saved();
    let escaped = serde_json::to_string(HOSTILE).unwrap();
    lines[0] = lines[0].replace("\"type\":\"invoke\"", &format!("\"type\":{escaped}"));
    write(&wrong_kind, &header, &lines);
    for (arguments, status) in [
        (vec!["run", HOSTILE], 64),
        (vec!["run", "--lock", HOSTILE], 64),
        (vec![HOSTILE], 64),
        (vec!["run", "--times", HOSTILE], 64),
        (vec!["check", "--property", HOSTILE, "x"], 64),
        (vec!["check", HOSTILE], 64),
        (vec!["run", scenario.to_str().unwrap()], 64),
        (vec!["check", named.to_str().unwrap()], 65),
        (vec!["check", wrong_kind.to_str().unwrap()], 65),
        (vec!["-vv", "check", wrong_kind.to_str().unwrap()], 65),
    ] {
        let output = fencepost(&arguments);
        let (page, error) = said(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
        let text = format!("{page}{error}").replace('\n', "");
        assert_eq!(histories::visible(&text), text, "{arguments:?}");
        assert!(text.contains("\\u00"), "{arguments:?}: {text}");
    }
}

/// Each of these would be waited for, or read, for ever.
#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    for name in ["history.jsonl", "c1.log", "mine.toml", "verdict.json"] {
        mkfifo(&place(name), Mode::S_IRWXU).unwrap();
    }
    let (header, lines) = saved();
    write(&place("whole.jsonl"), &header, &lines);
    let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, place(name)).unwrap();
    link(&place("loop.jsonl"), "loop.jsonl");
    link(folder.path(), "folder");
    link(Path::new("/dev/zero"), "zero.toml");
    fs::write(place("large.toml"), vec![b'#'; (1 << 20) + 1]).unwrap();

    for (verb, name, status, reason) in [
        (
            "run",
            "mine.toml",
            64,
            "it is a named pipe, not a regular file",
        ),
        ("run", "zero.toml", 64, "it is a device, not a regular file"),
        ("run", "large.toml", 64, "it is longer than 1048576 bytes"),
        ("check", "history.jsonl", 64, "is no regular file"),
        ("replay", "history.jsonl", 64, "is no regular file"),
        ("check", "loop.jsonl", 65, "loop.jsonl"),
        ("export", "c1.log", 64, "is no regular file"),
    ] {
        let path = place(name);
        let arguments = [verb, path.to_str().unwrap()];
        let output = fencepost(&arguments);
        let (_, error) = said(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
        assert_eq!(error.matches(reason).count(), 1, "{arguments:?}: {error}");
    }
    let output = fencepost(&["check", &folder.path().to_string_lossy()]);
    assert_eq!(
        output.status.code(),
        Some(1),
        "the one history in it is violated"
    );

    let run = place("scenario/run");
    fs::create_dir_all(&run).unwrap();
    mkfifo(&run.join("verdict.json"), Mode::S_IRWXU).unwrap();
    let output = fencepost(&["list", "runs", "--out", &folder.path().to_string_lossy()]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output).1);
}

#[test]
fn an_error_quotes_no_more_than_a_person_reads() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (digits, letters) = ("9".repeat(100_000), "x".repeat(100_000));
    for (name, line) in [
        ("number.toml", format!("ttl = {digits}")),
        ("length.toml", format!("ttl = \"{digits}ms\"")),
        ("name.toml", format!("controls = [\"{letters}\"]")),
        ("key.toml", format!("{letters} = 1")),
        ("fault.toml", format!("[[fault]]\nfault = \"{letters}\"")),
    ] {
        fs::write(place(name), format!("summary = \"s\"\n{line}\n")).unwrap();
    }
    let (header, mut lines) = saved();
    lines[0] = lines[0].replace("\"type\":\"invoke\"", &format!("\"type\":\"{letters}\""));
    write(&folder.path().join("type.jsonl"), &header, &lines);
    fs::write(
        place("value.edn"),
        format!("{{:process 0, :type :{letters}, :f :read}}"),
    )
    .unwrap();
    let mut numbers = header.clone();
    numbers["plan"]["ttl_ms"] = json!("digits");
    let numbers = numbers.to_string().replace("\"digits\"", &digits);
    fs::write(place("number.jsonl"), numbers + "\n").unwrap();
    for name in [
        "number.toml",
        "length.toml",
        "name.toml",
        "key.toml",
        "fault.toml",
        "type.jsonl",
        "value.edn",
        "number.jsonl",
    ] {
        let is_scenario = name.ends_with(".toml");
        let verb = if is_scenario { "run" } else { "check" };
        let output = fencepost(&[verb, &place(name)]);
        let (_, error) = said(&output);
        assert!(
            matches!(output.status.code(), Some(64 | 65)),
            "{name}: {error}"
        );
        assert!(error.len() < 2_000, "{name}: {} bytes", error.len());
        assert!(error.contains(name), "{error}");
    }
    for pointer in ["/lock", "/faults/0/fault", "/controls/0"] {
        let path = with_plan(folder.path(), pointer, json!(letters));
        for verb in ["check", "replay"] {
            let (page, error) = said(&fencepost(&[verb, path.to_str().unwrap()]));
            let longest = page.lines().chain(error.lines()).map(str::len).max();
            assert!(
                longest.is_some_and(|longest| longest < 10_000),
                "{pointer}: {longest:?}"
            );
        }
    }
}

#[test]
fn a_name_makes_no_line_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let name = "mine\nforged: holds\u{1b}[2J";
    let place = |ending: &str| {
        folder
            .path()
            .join(format!("{name}{ending}"))
            .to_string_lossy()
            .into_owned()
    };
    fs::write(place(".toml"), "summary = \"s\"\n").unwrap();
    fs::write(place(".jsonl"), "hello\n").unwrap();
    for arguments in [
        ["run", &place(".toml")],
        ["run", &place("-not-there.toml")],
        ["run", name],
        ["check", &place(".jsonl")],
        ["check", &place("-not-there")],
        ["replay", &place(".jsonl")],
        ["export", &place(".jsonl")],
        ["check", &folder.path().to_string_lossy()],
    ] {
        let (_, error) = said(&fencepost(&arguments));
        assert!(
            error.contains("mine\\u000aforged"),
            "{arguments:?}: {error}"
        );
        is_harmless(&error, false);
    }
}

#[test]
fn a_damaged_history_is_named_once_and_for_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    let check = || {
        let output = fencepost(&["check", path.to_str().unwrap()]);
        let (_, error) = said(&output);
        assert_eq!(output.status.code(), Some(65), "{error}");
        assert_eq!(error.matches("history.jsonl").count(), 1, "{error}");
        error
    };
    let (mut header, mut lines) = saved();
    lines[3] = lines[3].replace("\"type\"", "\"tipe\"");
    write(&path, &header, &lines);
    assert!(check().contains("history.jsonl:5:"));
    lines[3] = lines[3].replace("\"tipe\"", "\"type\"");
    // The longest line that is read, and what is longer.
    header["started"] = json!("1".repeat(6 << 20));
    write(&path, &header, &lines);
    assert_eq!(
        fencepost(&["check", path.to_str().unwrap()]).status.code(),
        Some(1)
    );
    header["started"] = json!("1".repeat(16 << 20));
    write(&path, &header, &lines);
    assert!(check().contains("history.jsonl:1: longer than 16777216 bytes"));
}
