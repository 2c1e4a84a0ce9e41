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

/// All of `images/`, in the program itself, so that it builds images wherever it is run.
const FILES: [File; 5] = [
    file("Dockerfile", include_str!("../../images/Dockerfile")),
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

/// The first 12 hexadecimal digits of the SHA-256 of all that an image is made from: the files, the base, the stage.
pub(super) fn digest(base: &str, stage: &str) -> String {
    digest_of(&FILES, base, stage)
}

fn digest_of(files: &[File], base: &str, stage: &str) -> String {
    let mut hash = Sha256::new();
    // Each part with its length first, so that no two inputs run together into the same bytes.
    let mut add = |part: &str| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
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

/// The build context as a tar archive, the same bytes each time.
pub(super) async fn archive() -> Result<Vec<u8>, Error> {
    write_archive(&FILES)
        .await
        .map_err(|error| Error::io("the build context", error))
}

async fn write_archive(files: &[File]) -> io::Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    for file in files {
        let mut header = Header::new_gnu();
        header.set_size(file.text.len() as u64);
        header.set_mode(if file.executable { 0o755 } else { 0o644 });
        archive
            .append_data(&mut header, file.name, file.text.as_bytes())
            .await?;
    }
    archive.into_inner().await
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    #[test]
    fn the_context_is_all_of_the_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("images");
        let mut there: Vec<String> = fs::read_dir(folder)
            .expect("the folder")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("a plain name")
            })
            .collect();
        there.sort();
        assert_eq!(FILES.map(|file| file.name.to_owned()).to_vec(), there);
    }

    #[test]
    fn the_digest_changes_with_each_input() {
        let files = || [file("a", "x"), file("b", "y")];
        let original = digest_of(&files(), "base", "stage");
        assert_eq!(original.len(), 12);
        assert_eq!(digest_of(&files(), "base", "stage"), original);
        let mut renamed = files();
        renamed[0].name = "c";
        let mut rewritten = files();
        rewritten[1].text = "z";
        let mut executable = files();
        executable[1].executable = true;
        let moved = [file("a", "xb"), file("", "y")];
        for changed in [
            digest_of(&renamed, "base", "stage"),
            digest_of(&rewritten, "base", "stage"),
            digest_of(&executable, "base", "stage"),
            digest_of(&moved, "base", "stage"),
            digest_of(&files(), "other", "stage"),
            digest_of(&files(), "base", "other"),
            digest_of(&files(), "bases", "tage"),
        ] {
            assert_ne!(changed, original);
        }
    }

    #[tokio::test]
    async fn the_archive_holds_the_files_as_tar_reads_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("context.tar");
        fs::write(&path, archive().await.expect("an archive")).expect("written");
        let status = Command::new("tar")
            .arg("-xf")
            .arg(&path)
            .arg("-C")
            .arg(folder.path())
            .status()
            .expect("tar");
        assert!(status.success());
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
            archive().await.expect("an archive"),
            archive().await.expect("an archive")
        );
    }
}
