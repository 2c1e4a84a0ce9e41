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

/// The file that says that a run is to stay though its owner is dead.
const KEPT_FILE: &str = "kept";

/// How old a folder without a readable owner has to be to count as left behind: its maker writes the owner at once.
const OWNERLESS_AGE: Duration = Duration::from_secs(60);

/// A folder of this process, removed with all that is in it when this is dropped.
///
/// Only its owner may look into it (mode 0700). A process that dies leaves its folders to [`crate::sweep()`].
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
        RuntimeDirectory::make(path_of_run(run), run)
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

    /// Lets the folder stay, and with it all that its run made: the run counts as wanted after the death of its owner,
    /// until the machine boots again.
    ///
    /// # Errors
    /// [`Error::Io`] where that cannot be noted in the folder, which then stays until its owner is dead.
    pub fn keep(self) -> Result<(), Error> {
        let path = self.path.join(KEPT_FILE);
        std::mem::forget(self);
        fs::write(&path, "").map_err(|error| Error::io(&path, error))
    }
}

fn path_of_run(run: &str) -> PathBuf {
    let digits: Vec<char> = run.chars().filter(char::is_ascii_alphanumeric).collect();
    let name: String = digits[digits.len().saturating_sub(12)..].iter().collect();
    Path::new("/tmp").join(format!("{PREFIX}{name}"))
}

/// Whether a run is to stay though its owner is dead.
pub(crate) fn is_kept(run: &str) -> bool {
    let path = path_of_run(run);
    let owner = fs::read_to_string(path.join(OWNER_FILE)).unwrap_or_default();
    let mut lines = owner.lines();
    let of_this_boot = lines
        .next()
        .and_then(Owner::parse)
        .is_some_and(|owner| owner.is_of_this_boot());
    of_this_boot && lines.next() == Some(run) && path.join(KEPT_FILE).exists()
}

impl Drop for RuntimeDirectory {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            tracing::warn!("{error}");
        }
    }
}

/// One of the folders that are there.
pub(crate) struct Found {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its owner, as text; nothing where none is written in it yet.
    pub(crate) owner: Option<String>,
    /// Its run; empty where it belongs to none.
    pub(crate) run: String,
    /// Whether it is old enough that its owner would be written in it if that still lived.
    pub(crate) abandoned: bool,
}

/// All such folders of this user; root sees everybody's.
pub(crate) fn all() -> Vec<Found> {
    let mut places = vec![PathBuf::from("/tmp"), env::temp_dir()];
    places.dedup();
    let entries = places
        .iter()
        .filter_map(|place| fs::read_dir(place).ok())
        .flat_map(|entries| entries.flatten());
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    let mut found: Vec<Found> = ours.filter_map(|entry| look(entry.path())).collect();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn look(path: PathBuf) -> Option<Found> {
    let metadata = fs::symlink_metadata(&path).ok()?;
    let user = nix::unistd::geteuid();
    if !metadata.is_dir() || !(user.is_root() || user.as_raw() == metadata.uid()) {
        return None;
    }
    let text = fs::read_to_string(path.join(OWNER_FILE)).unwrap_or_default();
    let mut lines = text.lines().map(str::to_owned);
    let (owner, run) = (lines.next(), lines.next().unwrap_or_default());
    let abandoned = metadata
        .modified()
        .is_ok_and(|at| is_older(at, OWNERLESS_AGE));
    Some(Found {
        path,
        owner,
        run,
        abandoned,
    })
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
    fn it_is_found_with_its_owner_and_its_run() {
        let run = run_id("a0003");
        let directory = RuntimeDirectory::of_run(&run).expect("made");
        let found = all()
            .into_iter()
            .find(|found| found.path == directory.path())
            .expect("found");
        assert_eq!(
            found.owner,
            Some(Owner::current().expect("this process").to_string())
        );
        assert_eq!(found.run, run);
    }

    #[test]
    fn one_whose_owner_is_not_yet_written_is_not_abandoned() {
        let directory = RuntimeDirectory::scratch().expect("made");
        fs::remove_file(directory.path().join(OWNER_FILE)).expect("removed");
        let found = look(directory.path().to_path_buf()).expect("found");
        assert_eq!(found.owner, None);
        assert!(!found.abandoned);
        let long_ago = SystemTime::now() - 2 * OWNERLESS_AGE;
        fs::File::open(directory.path())
            .expect("opened")
            .set_modified(long_ago)
            .expect("made old");
        assert!(
            look(directory.path().to_path_buf())
                .expect("found")
                .abandoned
        );
    }

    #[test]
    fn a_run_is_kept_when_its_folder_says_so_and_only_in_this_boot() {
        let run = run_id("a0004");
        let directory = RuntimeDirectory::of_run(&run).expect("made");
        let path = directory.path().to_path_buf();
        assert!(!is_kept(&run));
        directory.keep().expect("noted");
        assert!(is_kept(&run));
        fs::write(
            path.join(OWNER_FILE),
            format!("1:1:another-boot:1\n{run}\n"),
        )
        .expect("written");
        assert!(!is_kept(&run));
        remove(&path).expect("removed");
        assert!(!is_kept(&run));
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
