//! What the images are made from: the files that the builder gets, and the digest by which an image is found again.

use std::io;

use sha2::{Digest as _, Sha256};
use tokio_tar::{Builder, Header};

use crate::Error;

/// One file of the build context.
struct File {
    name: &'static str,
    text: &'static str,
    executable: bool,
}

const fn file(name: &'static str, text: &'static str) -> File {
    File {
        name,
        text,
        executable: false,
    }
}

/// The Dockerfile with all its stages. It and the files are in the program itself, which builds images wherever it runs.
const DOCKERFILE: &str = include_str!("../../images/Dockerfile");

/// The files that the Dockerfile copies: all others of `images/`.
const FILES: [File; 4] = [
    file("guard.c", include_str!("../../images/guard.c")),
    File {
        executable: true,
        ..file(
            "install-packages",
            include_str!("../../images/install-packages"),
        )
    },
    file("pg_hba.conf", include_str!("../../images/pg_hba.conf")),
    file(
        "postgresql.conf",
        include_str!("../../images/postgresql.conf"),
    ),
];

/// The stage that all others stand on.
pub(super) const SHARED_STAGE: &str = "base";

/// The first 12 hexadecimal digits of the SHA-256 of all that an image is made from: its stage, the files, the base.
pub(super) fn digest(base: &str, stage: &str) -> String {
    digest_of(&one_stage(DOCKERFILE, stage), &FILES, base, stage)
}

fn digest_of(dockerfile: &str, files: &[File], base: &str, stage: &str) -> String {
    let mut hash = Sha256::new();
    // Each part with its length first, so that no two inputs run together into the same bytes.
    let mut add = |part: &str| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    add(dockerfile);
    for file in files {
        add(file.name);
        add(file.text);
        add(if file.executable { "x" } else { "" });
    }
    add(base);
    add(stage);
    hash.finalize()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The build context for a stage as a tar archive, the same bytes each time.
pub(super) async fn archive(stage: &str) -> Result<Vec<u8>, Error> {
    let dockerfile = one_stage(DOCKERFILE, stage);
    write_archive(&dockerfile, &FILES)
        .await
        .map_err(|error| Error::io("the build context", error))
}

async fn write_archive(dockerfile: &str, files: &[File]) -> io::Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    let files = files
        .iter()
        .map(|file| (file.name, file.text, file.executable));
    for (name, text, executable) in [("Dockerfile", dockerfile, false)].into_iter().chain(files) {
        let mut header = Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(if executable { 0o755 } else { 0o644 });
        archive
            .append_data(&mut header, name, text.as_bytes())
            .await?;
    }
    archive.into_inner().await
}

/// The Dockerfile with no stages but the shared one and this one. The classic builder builds all that it finds before
/// its target, whether the target needs it or not; and so an image keeps its digest when another stage changes.
fn one_stage(dockerfile: &str, stage: &str) -> String {
    let mut kept = true;
    dockerfile
        .lines()
        .filter(|line| {
            if line.starts_with("FROM ") {
                let name = line.rsplit(' ').next();
                kept = name == Some(SHARED_STAGE) || name == Some(stage);
            }
            kept
        })
        .map(|line| format!("{line}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::images::STAGES;

    #[test]
    fn the_context_is_all_of_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("images");
        let entries = fs::read_dir(folder).expect("the folder");
        let mut there: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("a plain name")
            })
            .collect();
        there.sort();
        let known: Vec<&str> = ["Dockerfile"]
            .into_iter()
            .chain(FILES.iter().map(|file| file.name))
            .collect();
        assert_eq!(there, known);
    }

    #[test]
    fn the_stages_are_those_of_the_dockerfile() {
        let mut stages: Vec<&str> = DOCKERFILE
            .lines()
            .filter_map(|line| line.strip_prefix("FROM base AS "))
            .collect();
        stages.sort_unstable();
        assert_eq!(stages, STAGES);
    }

    #[test]
    fn a_stage_gets_the_shared_one_and_its_own() {
        let all =
            "ARG BASE\nFROM $BASE AS base\nRUN 1\nFROM base AS a\nRUN 2\nFROM base AS b\nRUN 3\n";
        assert_eq!(
            one_stage(all, "a"),
            "ARG BASE\nFROM $BASE AS base\nRUN 1\nFROM base AS a\nRUN 2\n"
        );
        assert_eq!(
            one_stage(all, "b"),
            "ARG BASE\nFROM $BASE AS base\nRUN 1\nFROM base AS b\nRUN 3\n"
        );
        assert_eq!(
            one_stage(all, "base"),
            "ARG BASE\nFROM $BASE AS base\nRUN 1\n"
        );
    }

    #[test]
    fn the_digest_changes_with_each_input() {
        let files = || [file("a", "x"), file("b", "y")];
        let original = digest_of("FROM", &files(), "base", "stage");
        assert_eq!(original.len(), 12);
        assert_eq!(digest_of("FROM", &files(), "base", "stage"), original);
        let mut renamed = files();
        renamed[0].name = "c";
        let mut rewritten = files();
        rewritten[1].text = "z";
        let mut executable = files();
        executable[1].executable = true;
        let run_together = [file("a", "xb"), file("", "y")];
        for changed in [
            digest_of("FROM x", &files(), "base", "stage"),
            digest_of("FROM", &renamed, "base", "stage"),
            digest_of("FROM", &rewritten, "base", "stage"),
            digest_of("FROM", &executable, "base", "stage"),
            digest_of("FROM", &run_together, "base", "stage"),
            digest_of("FROM", &files(), "other", "stage"),
            digest_of("FROM", &files(), "base", "other"),
            digest_of("FROM", &files(), "bases", "tage"),
        ] {
            assert_ne!(changed, original);
        }
    }

    #[tokio::test]
    async fn the_archive_holds_the_files_as_tar_reads_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("context.tar");
        fs::write(&path, archive("redis").await.expect("an archive")).expect("written");
        let status = Command::new("tar")
            .arg("-xf")
            .arg(&path)
            .arg("-C")
            .arg(folder.path())
            .status()
            .expect("tar");
        assert!(status.success());
        let dockerfile =
            fs::read_to_string(folder.path().join("Dockerfile")).expect("the Dockerfile");
        assert!(
            dockerfile.contains("AS redis") && !dockerfile.contains("AS etcd"),
            "{dockerfile}"
        );
        for file in &FILES {
            let path = folder.path().join(file.name);
            assert_eq!(fs::read_to_string(&path).expect(file.name), file.text);
            let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&path).expect(file.name));
            assert_eq!(mode & 0o100 != 0, file.executable, "{}", file.name);
        }
    }

    #[tokio::test]
    async fn the_archive_is_the_same_each_time() {
        assert_eq!(
            archive("etcd").await.expect("an archive"),
            archive("etcd").await.expect("an archive")
        );
    }
}
