//! Short-lived folders outside Docker, such as the one that holds a run's sockets, each with its owner's name in it.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::Error;
use crate::owner::Owner;

/// What the names of all such folders begin with.
const PREFIX: &str = "fencepost-";

/// The file in each that names its owner, and on a second line its run.
const OWNER_FILE: &str = "owner";

/// How old a folder without a readable owner has to be to count as left behind: its maker writes the owner at once.
const OWNERLESS_AGE: Duration = Duration::from_secs(60);

/// A folder of this process, removed with all that is in it when this is dropped.
///
/// Only its owner may look into it (mode 0700). A process that dies leaves its folders to [`crate::sweep`].
#[derive(Debug)]
pub struct RuntimeDirectory {
    path: PathBuf,
}

impl RuntimeDirectory {
    /// Makes the folder of a run, `/tmp/fencepost-<12 hex>`: short, because a Unix socket's path has 108 bytes. The 12 are
    /// the last of the run's id, since a UUIDv7 begins with the time, which runs of the same minute share.
    ///
    /// # Errors
    /// [`Error::Io`] where it cannot be made, or is there already.
    pub fn of_run(run: &str) -> Result<RuntimeDirectory, Error> {
        let digits: Vec<char> = run.chars().filter(char::is_ascii_alphanumeric).collect();
        let name: String = digits[digits.len().saturating_sub(12)..].iter().collect();
        RuntimeDirectory::make(Path::new("/tmp").join(format!("{PREFIX}{name}")), run)
    }

    /// Makes a folder in the system's place for temporary files, for large things.
    pub(crate) fn scratch() -> Result<RuntimeDirectory, Error> {
        let place = env::temp_dir();
        // Only its name is wanted: it is made anew, so that it is cleaned up in one way.
        let name = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&place)
            .map_err(|error| Error::io(&place, error))?;
        let path = name.path().to_path_buf();
        name.close().map_err(|error| Error::io(&path, error))?;
        RuntimeDirectory::make(path, "")
    }

    fn make(path: PathBuf, run: &str) -> Result<RuntimeDirectory, Error> {
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| Error::io(&path, error))?;
        let directory = RuntimeDirectory { path };
        let file = directory.path.join(OWNER_FILE);
        fs::write(&file, format!("{}\n{run}\n", Owner::current()?))
            .map_err(|error| Error::io(&file, error))?;
        Ok(directory)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RuntimeDirectory {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            tracing::warn!("{error}");
        }
    }
}

/// The folders that dead owners left, or those of one run.
pub(crate) fn left_behind(run: Option<&str>) -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from("/tmp"), env::temp_dir()];
    places.dedup();
    let mut found: Vec<PathBuf> = places
        .iter()
        .filter_map(|place| fs::read_dir(place).ok())
        .flat_map(|entries| entries.flatten())
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .map(|entry| entry.path())
        .filter(|path| is_left_behind(path, run))
        .collect();
    found.sort();
    found
}

fn is_left_behind(path: &Path, run: Option<&str>) -> bool {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return false;
    };
    let mine =
        nix::unistd::geteuid().is_root() || metadata.uid() == nix::unistd::geteuid().as_raw();
    if !metadata.is_dir() || !mine {
        return false;
    }
    let text = fs::read_to_string(path.join(OWNER_FILE)).unwrap_or_default();
    let mut lines = text.lines();
    match (lines.next().and_then(Owner::parse), run) {
        (Some(_), Some(run)) => lines.next() == Some(run),
        (None, Some(_)) => false,
        (Some(owner), None) => !owner.is_alive(),
        (None, None) => metadata
            .modified()
            .is_ok_and(|at| is_older(at, OWNERLESS_AGE)),
    }
}

fn is_older(at: SystemTime, age: Duration) -> bool {
    SystemTime::now()
        .duration_since(at)
        .is_ok_and(|since| since > age)
}

/// Removes a folder and all below it; one that is gone is fine.
///
/// Refuses where something is mounted in it: what is removed then would be something else's.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| Error::io("/proc/self/mountinfo", error))?;
    if let Some(mount) = mount_below(&mounts, path) {
        let error = format!(
            "{} is mounted in it: unmount it, and run `fencepost clean`",
            mount.display()
        );
        return Err(Error::io(
            path,
            io::Error::new(io::ErrorKind::ResourceBusy, error),
        ));
    }
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(path, error)),
        _ => Ok(()),
    }
}

/// The first mount point at or below a path, from the text of `/proc/self/mountinfo`, whose fifth field it is
/// (proc_pid_mountinfo(5)). Our paths hold none of the characters that are escaped there.
fn mount_below<'a>(mountinfo: &'a str, path: &Path) -> Option<&'a Path> {
    mountinfo
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(Path::new)
        .find(|mount| mount.starts_with(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run id that no other test has.
    fn run_id(test: &str) -> String {
        format!("0190b6f0-0000-7000-8000-{test}{:07x}", std::process::id())
    }

    #[test]
    fn it_is_named_by_the_end_of_the_run_private_and_gone_when_dropped() {
        let run = run_id("a0001");
        let directory = RuntimeDirectory::of_run(&run).expect("made");
        let path = directory.path().to_path_buf();
        assert_eq!(
            path,
            Path::new("/tmp").join(format!("fencepost-{}", &run[run.len() - 12..]))
        );
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o700);
        fs::create_dir_all(path.join("a/b")).expect("something in it");
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn one_in_use_is_not_made_again() {
        let run = run_id("a0002");
        let directory = RuntimeDirectory::of_run(&run).expect("made");
        assert!(matches!(
            RuntimeDirectory::of_run(&run),
            Err(Error::Io { .. })
        ));
        assert!(
            directory.path().join(OWNER_FILE).exists(),
            "the second attempt took the first one's folder away"
        );
    }

    #[test]
    fn a_live_owner_s_folder_is_left_behind_by_nobody_but_found_by_its_run() {
        let run = run_id("a0003");
        let directory = RuntimeDirectory::of_run(&run).expect("made");
        assert!(!is_left_behind(directory.path(), None));
        assert!(is_left_behind(directory.path(), Some(&run)));
        assert!(!is_left_behind(directory.path(), Some("another run")));
        assert_eq!(left_behind(Some(&run)), [directory.path()]);
    }

    #[test]
    fn a_dead_owner_s_folder_is_left_behind() {
        let directory = RuntimeDirectory::scratch().expect("made");
        fs::write(directory.path().join(OWNER_FILE), "1:1:another-boot:1\n\n").expect("written");
        assert!(is_left_behind(directory.path(), None));
        assert!(left_behind(None).contains(&directory.path().to_path_buf()));
    }

    #[test]
    fn a_folder_whose_owner_is_not_yet_written_is_spared() {
        let directory = RuntimeDirectory::scratch().expect("made");
        fs::remove_file(directory.path().join(OWNER_FILE)).expect("removed");
        assert!(!is_left_behind(directory.path(), None));
    }

    #[test]
    fn what_is_mounted_below_is_found() {
        let mountinfo = "22 1 254:0 / / rw - ext4 /dev/vda rw\n90 22 0:5 / /tmp/fencepost-a/root/dev rw - devtmpfs d rw\n";
        assert_eq!(
            mount_below(mountinfo, Path::new("/tmp/fencepost-a")),
            Some(Path::new("/tmp/fencepost-a/root/dev"))
        );
        assert_eq!(mount_below(mountinfo, Path::new("/tmp/fencepost-b")), None);
        assert_eq!(mount_below(mountinfo, Path::new("/tmp/fencepost")), None);
    }
}
