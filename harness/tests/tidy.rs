//! Holds the invariants of ARCHITECTURE.md that no compiler holds, and keeps lists and files in step.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All files with this ending under a folder of the project.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
        for entry in
            fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, ending, found);
            } else if path.extension().is_some_and(|found| found == ending) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), ending, &mut found);
    assert!(!found.is_empty(), "{folder} has no .{ending} file");
    found
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of the files and modules in a folder, as names of what they hold: `redis_set.rs` is `redis-set`.
fn names_of_files(folder: &str, ending: &str, but: &[&str]) -> BTreeSet<String> {
    let is_one = |path: &PathBuf| {
        path.extension().is_some_and(|found| found == ending) || path.join("mod.rs").is_file()
    };
    fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(is_one)
        .map(|path| {
            path.file_stem()
                .unwrap()
                .to_string_lossy()
                .replace('_', "-")
        })
        .filter(|name| !but.contains(&name.as_str()))
        .collect()
}

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn crates_use_only_those_below_them() {
    let ours = ["histories", "checker", "containers", "nemesis", "harness"];
    let may = |name: &str| match name {
        "histories" => vec![],
        "checker" => vec!["histories"],
        "containers" => vec![],
        "nemesis" => vec!["containers", "histories"],
        _ => vec!["checker", "containers", "histories", "nemesis"],
    };
    for name in ours {
        let manifest: toml::Table = text(&root().join(name).join("Cargo.toml")).parse().unwrap();
        let used: Vec<&str> = manifest["dependencies"]
            .as_table()
            .unwrap()
            .keys()
            .map(String::as_str)
            .filter(|used| ours.contains(used))
            .collect();
        assert_eq!(used, may(name), "the dependencies of {name}");
    }
}

#[test]
fn the_checker_does_no_io_and_knows_no_clock() {
    let forbidden = [
        "std::fs",
        "std::net",
        "std::time",
        "std::env",
        "std::process",
        "SystemTime",
        "Instant::",
        "async fn",
        "rand::",
    ];
    for path in files("checker/src", "rs") {
        for word in forbidden {
            assert!(
                !text(&path).contains(word),
                "{} has `{word}`",
                path.display()
            );
        }
    }
}

#[test]
fn everything_that_people_see_goes_through_one_place() {
    for path in files("harness/src", "rs") {
        let text = text(&path);
        for word in ["stdout().write", "stderr(),", "with_writer(std"] {
            assert!(
                path.ends_with("cli/output.rs") || !text.contains(word),
                "{} has `{word}`: use `say` or `tell`, which escape what a terminal would obey",
                path.display()
            );
        }
    }
}

#[test]
fn faults_know_no_lock_service() {
    for path in files("nemesis/src", "rs") {
        let text = text(&path);
        let code = text.split("#[cfg(test)]").next().unwrap();
        for lock in harness::locks::SERVICES
            .iter()
            .map(|lock| lock.name())
            .filter(|name| *name != "redlock")
        {
            assert!(
                !code.contains(&format!("\"{lock}\"")),
                "{} names the lock service {lock}",
                path.display()
            );
        }
    }
}

#[test]
fn no_rule_names_a_fault_outside_its_own_file() {
    for folder in [
        "checker/src",
        "harness/src",
        "containers/src",
        "nemesis/src",
    ] {
        for path in files(folder, "rs") {
            let own = path.to_string_lossy().into_owned();
            // The timelines of tests are tests.
            let elsewhere = ["nemesis/src/faults/", "/tests", "checker/src/timeline"];
            if elsewhere.iter().any(|part| own.contains(part)) {
                continue;
            }
            let text = text(&path);
            let code = text.split("#[cfg(test)]").next().unwrap();
            // The kernel's own word for what `netem` does, and Docker's for a container that it froze, are those of
            // faults as well.
            let code = code.replace("\"delay\",", "");
            let code = code.replace("const PAUSED: &str = \"pause\"", "");
            for fault in nemesis::faults::FAULTS {
                let name = format!("\"{}\"", fault.name());
                assert!(!code.contains(&name), "{own} names the fault {name}");
            }
        }
    }
}

#[test]
fn every_file_stands_in_its_list() {
    assert_eq!(
        names_of_files("harness/src/locks", "rs", &["mod", "seam", "keys"]),
        set(harness::locks::SERVICES.iter().map(|lock| lock.name()))
    );
    assert_eq!(
        names_of_files("harness/src/storages", "rs", &["mod"]),
        set(harness::storages::STORAGES
            .iter()
            .map(|storage| storage.name()))
    );
    assert_eq!(
        names_of_files("nemesis/src/faults", "rs", &["mod"]),
        set(nemesis::faults::FAULTS.iter().map(|fault| fault.name()))
    );
    assert_eq!(
        names_of_files("nemesis/scenarios", "toml", &[]),
        set(nemesis::scenarios().iter().map(|scenario| scenario.name))
    );
    assert_eq!(
        names_of_files("checker/src/properties", "rs", &["mod"]),
        set(checker::properties().iter().map(|property| property.name))
    );
    let shared = [
        "mod",
        "guess",
        "laws",
        "list",
        "locking",
        "non-deterministic",
        "recorded",
        "text",
        "values",
    ];
    assert_eq!(
        names_of_files("checker/src/models", "rs", &shared),
        set(checker::models::kinds().iter().map(|kind| kind.name))
    );
    assert_eq!(
        names_of_files("containers/src/topologies", "rs", &["mod"]),
        set(containers::topologies::TOPOLOGIES
            .iter()
            .map(|topology| topology.name))
    );
}

#[test]
fn the_nemesis_and_the_checker_speak_of_the_same_properties() {
    assert_eq!(
        set(nemesis::PROPERTIES.iter().copied()),
        set(checker::properties().iter().map(|property| property.name))
    );
}

#[test]
fn nothing_is_left_unfinished_and_no_file_is_too_long_to_read() {
    // Put together here so that this file does not find itself.
    let marks = ["TO", "FIX", "XX"]
        .into_iter()
        .zip(["DO", "ME", "X"])
        .map(|(a, b)| format!("{a}{b}"));
    let marks: Vec<String> = marks
        .chain(["todo", "unimplemented"].map(|word| format!("{word}!(")))
        .collect();
    for folder in ["histories", "checker", "containers", "nemesis", "harness"] {
        for path in files(&format!("{folder}/src"), "rs") {
            let text = text(&path);
            for mark in &marks {
                assert!(
                    !text.contains(mark.as_str()),
                    "{} has {mark}",
                    path.display()
                );
            }
            assert!(
                !text.contains(concat!("allow(", "dead_code)")),
                "{} hides dead code",
                path.display()
            );
            let lines = text.lines().count();
            assert!(
                lines <= 500,
                "{} has {lines} lines: would two rooms be clearer?",
                path.display()
            );
        }
    }
}

#[test]
fn nothing_panics_where_nobody_reads_what_it_says() {
    for folder in ["histories", "checker", "containers", "nemesis", "harness"] {
        let sources = files(&format!("{folder}/src"), "rs");
        let is_test = |path: &PathBuf| path.iter().any(|part| part == "tests");
        for path in sources.iter().filter(|path| !is_test(path)) {
            let text = text(path);
            let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
            assert!(
                !shipped.contains("print!(") && !shipped.contains("println!("),
                "{} prints, which panics where its reader is gone: see harness/src/cli/output.rs",
                path.display()
            );
        }
    }
}

#[test]
fn the_readme_names_every_lock_and_scenario() {
    let readme = text(&root().join("README.md"));
    for name in harness::locks::SERVICES.iter().map(|lock| lock.name()) {
        assert!(
            readme.contains(&format!("`{name}`")),
            "README.md does not name the lock service {name}"
        );
    }
    for scenario in nemesis::scenarios() {
        assert!(
            readme.contains(&format!("`{}`", scenario.name)),
            "README.md does not name the scenario {}",
            scenario.name
        );
    }
}
