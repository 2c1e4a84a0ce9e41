//! A base image made from Debian's packages by mmdebstrap, for a machine that no registry serves.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use bollard::body_try_stream;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::{StreamExt as _, stream};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::owner::LABEL;
use crate::runtime_directory::RuntimeDirectory;
use crate::{Engine, Error, Progress};

/// The image's repository and tag.
const REPOSITORY: &str = "fencepost/base";
const TAG: &str = "trixie";

/// The image's name.
pub(super) const NAME: &str = "fencepost/base:trixie";

/// Leaves out what Debian's own slim images leave out; `$1` is the root of the new system.
const SLIM: &str = r#"--customize-hook=cd "$1"/usr/share && rm -rf doc/* info/* locale/* man/*"#;

/// How much of the archive is sent to the daemon at a time, in bytes.
const CHUNK: usize = 1 << 20;

/// Makes the image [`NAME`]: about 30 seconds, 400 MB of temporary files.
///
/// # Errors
/// [`Error::Bootstrap`] where this machine cannot; [`Error::DiskFull`].
pub(super) async fn bootstrap(engine: &Engine, progress: &dyn Progress) -> Result<(), Error> {
    if !nix::unistd::geteuid().is_root() {
        return Err(failed("only root can bootstrap one"));
    }
    let scratch = RuntimeDirectory::scratch()?;
    let archive = scratch.path().join("base.tar");
    let mut mmdebstrap = match on_the_path("mmdebstrap") {
        Some(program) => vec![program.into_os_string()],
        None => vec![
            "perl".into(),
            fetch_mmdebstrap(scratch.path(), progress)
                .await?
                .into_os_string(),
        ],
    };
    mmdebstrap.extend(["--variant=minbase", SLIM, "trixie"].map(OsString::from));
    mmdebstrap.push(archive.clone().into_os_string());
    run(mmdebstrap, scratch.path(), progress).await?;
    progress.step(&format!("importing {NAME}"));
    import(engine, &archive).await
}

fn failed(reason: impl Into<String>) -> Error {
    Error::Bootstrap {
        reason: reason.into(),
    }
}

fn on_the_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Fetches mmdebstrap's package, without installing it, and gives the program in it.
async fn fetch_mmdebstrap(scratch: &Path, progress: &dyn Progress) -> Result<PathBuf, Error> {
    if let Some(missing) = ["apt-get", "dpkg-deb", "perl"]
        .iter()
        .find(|program| on_the_path(program).is_none())
    {
        return Err(failed(format!(
            "there is neither mmdebstrap on this machine nor {missing} to fetch it with"
        )));
    }
    progress.step("fetching mmdebstrap, which is not installed");
    let download = |options: &[OsString]| {
        let mut argv: Vec<OsString> = vec!["apt-get".into()];
        argv.extend_from_slice(options);
        argv.extend(["download".into(), "mmdebstrap".into()]);
        argv
    };
    if run(download(&[]), scratch, progress).await.is_err() {
        // The system's package lists may be empty or old: fetch them into a place of our own.
        let lists = scratch.join("lists");
        fs::create_dir_all(lists.join("partial")).map_err(|error| Error::io(&lists, error))?;
        let cache = scratch.join("cache");
        fs::create_dir_all(cache.join("archives/partial"))
            .map_err(|error| Error::io(&cache, error))?;
        let private = ["Dir::State::Lists", "Dir::Cache"]
            .iter()
            .zip([lists, cache]);
        let private: Vec<OsString> = private
            .map(|(option, path)| format!("-o{option}={}", path.display()).into())
            .collect();
        let mut update: Vec<OsString> = vec!["apt-get".into(), "update".into()];
        update.extend_from_slice(&private);
        run(update, scratch, progress).await?;
        run(download(&private), scratch, progress).await?;
    }
    let package =
        package_in(scratch).ok_or_else(|| failed("apt-get fetched no package mmdebstrap"))?;
    let unpacked = scratch.join("mmdebstrap");
    run(
        vec![
            "dpkg-deb".into(),
            "-x".into(),
            package.into(),
            unpacked.clone().into(),
        ],
        scratch,
        progress,
    )
    .await?;
    Ok(unpacked.join("usr/bin/mmdebstrap"))
}

fn package_in(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension() == Some(OsStr::new("deb")))
}

/// What `setpriv` gets before a command, so that it and all that it starts die with this process, and with `unshare`,
/// in process and mount namespaces of their own, with which goes what they have mounted.
const CONFINEMENT: [&str; 8] = [
    "--pdeathsig",
    "KILL",
    "unshare",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
];

/// Runs a command in a folder that is also its place for temporary files, and shows what it says.
///
/// It and all that it starts die with this process and when the future is dropped.
async fn run(argv: Vec<OsString>, folder: &Path, progress: &dyn Progress) -> Result<(), Error> {
    let name = argv
        .iter()
        .take(2)
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ");
    let cannot = |error: io::Error| failed(format!("`{name}` cannot be run: {error}"));
    let mut child = Command::new("setpriv")
        .args(CONFINEMENT)
        .args(&argv)
        .current_dir(folder)
        .env("TMPDIR", folder)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(cannot)?;
    let mut complaints = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let mut lines = BufReader::new(stderr).lines();
        while let Some(line) = lines.next_line().await.map_err(cannot)? {
            progress.detail(&line);
            complaints.push(line);
        }
    }
    if child.wait().await.map_err(cannot)?.success() {
        return Ok(());
    }
    if complaints
        .iter()
        .any(|line| line.to_lowercase().contains("no space left on device"))
    {
        let doing = format!("bootstrapping in {}", folder.display());
        return Err(Error::DiskFull {
            doing,
            reason: "no space left on device".to_owned(),
        });
    }
    let last = complaints[complaints.len().saturating_sub(5)..].join("; ");
    Err(failed(format!("`{name}` failed: {last}")))
}

/// Makes an image of a root file system in a tar archive.
async fn import(engine: &Engine, archive: &Path) -> Result<(), Error> {
    let mut file = File::open(archive).map_err(|error| Error::io(archive, error))?;
    let chunks = stream::iter(std::iter::from_fn(move || {
        let mut chunk = Vec::with_capacity(CHUNK);
        match (&mut file).take(CHUNK as u64).read_to_end(&mut chunk) {
            Ok(0) => None,
            Ok(_) => Some(Ok(chunk.into())),
            Err(error) => Some(Err(error)),
        }
    }));
    let options = CreateImageOptionsBuilder::default()
        .from_src("-")
        .repo(REPOSITORY)
        .tag(TAG)
        .changes(vec![format!("LABEL {LABEL}=1"), "CMD [\"sh\"]".to_owned()])
        .build();
    let mut answers =
        engine
            .docker()
            .create_image(Some(options), Some(body_try_stream(chunks)), None);
    while let Some(answer) = answers.next().await {
        answer.map_err(|reply| Error::docker(format!("importing {NAME}"), reply))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    async fn shell(script: &str, progress: &dyn Progress) -> Result<(), Error> {
        let folder = tempfile::tempdir().expect("a folder");
        run(
            ["sh", "-c", script].map(OsString::from).to_vec(),
            folder.path(),
            progress,
        )
        .await
    }

    /// Only root bootstraps.
    fn root_or_skip() -> Option<()> {
        let root = nix::unistd::geteuid().is_root();
        if !root {
            eprintln!("skipped: only root can make namespaces");
        }
        root.then_some(())
    }

    #[tokio::test]
    async fn a_command_that_fails_is_quoted() {
        let Some(()) = root_or_skip() else { return };
        let error = shell("echo E: no key >&2; exit 3", &())
            .await
            .expect_err("it fails")
            .to_string();
        assert!(error.contains("`sh -c` failed: E: no key"), "{error}");
    }

    #[tokio::test]
    async fn a_full_disk_is_said_to_be_one() {
        let Some(()) = root_or_skip() else { return };
        let error = shell("echo tar: No space left on device >&2; exit 1", &())
            .await
            .expect_err("it fails");
        assert!(matches!(error, Error::DiskFull { .. }), "{error:?}");
    }

    /// Sends what it is told.
    struct Tell(mpsc::UnboundedSender<String>);

    impl Progress for Tell {
        fn step(&self, _what: &str) {}

        fn detail(&self, line: &str) {
            self.0.send(line.to_owned()).expect("the test listens");
        }
    }

    /// Whether any process has this word among its arguments.
    fn lives(word: &str) -> bool {
        fs::read_dir("/proc")
            .expect("/proc")
            .flatten()
            .any(|entry| {
                let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                arguments
                    .split(|byte| *byte == 0)
                    .any(|argument| argument == word.as_bytes())
            })
    }

    #[tokio::test]
    async fn all_that_a_command_started_dies_with_the_future() {
        let Some(()) = root_or_skip() else { return };
        let word = format!("86400.{}", std::process::id());
        let script = format!("sleep {word} & echo begun >&2; wait");
        let (tell, mut told) = mpsc::unbounded_channel();
        let tell = Tell(tell);
        let until_it_lives = async {
            told.recv().await;
            while !lives(&word) {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            ended = shell(&script, &tell) => panic!("it ended: {ended:?}"),
            () = until_it_lives => {}
        }
        while lives(&word) {
            tokio::task::yield_now().await;
        }
    }
}
