//! Short-lived folders outside Docker, such as the one that holds a run's sockets, each with its owner's name in it.

use std::env;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::fcntl::OFlag;

use crate::Error;
use crate::owner::Owner;

/// What the names of all such folders begin with.
const PREFIX: &str = "fencepost-";

/// The file in each that names its owner, and on a second line its run.
const OWNER_FILE: &str = "owner";

/// The file that says that a run is to stay though its owner is dead.
const KEPT_FILE: &str = "kept";

/// The most that an owner file may hold, in bytes; ours hold a hundred.
const OWNER_BYTES: u64 = 4096;

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

    /// Makes a folder for a run in `parent`, which is made if it is not there; those of dead owners in it go.
    ///
    /// # Errors
    /// [`Error::Io`] where it cannot be made, or `parent` is a symbolic link.
    pub(crate) fn beside(parent: &Path, run: &str) -> Result<RuntimeDirectory, Error> {
        match fs::create_dir(parent) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io(parent, error));
            }
            _ => {}
        }
        let is_folder = fs::symlink_metadata(parent).is_ok_and(|found| found.is_dir());
        if !is_folder {
            let error = io::Error::new(io::ErrorKind::NotADirectory, "not a folder: remove it");
            return Err(Error::io(parent, error));
        }
        for left in found_in(parent).filter(Found::is_of_the_dead) {
            // What is left of others is no reason not to run.
            if let Err(error) = remove(&left.path) {
                tracing::warn!("{error}");
            }
        }
        RuntimeDirectory::make(parent.join(name_of_run(run)), run)
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

fn name_of_run(run: &str) -> String {
    let digits: Vec<char> = run.chars().filter(char::is_ascii_alphanumeric).collect();
    let name: String = digits[digits.len().saturating_sub(12)..].iter().collect();
    format!("{PREFIX}{name}")
}

fn path_of_run(run: &str) -> PathBuf {
    Path::new("/tmp").join(name_of_run(run))
}

/// Whether a run is to stay though its owner is dead.
pub(crate) fn is_kept(run: &str) -> bool {
    let Some(found) = look(path_of_run(run)) else {
        return false;
    };
    let owner = found.owner.as_deref().and_then(Owner::parse);
    let of_this_boot = owner.is_some_and(|owner| owner.is_of_this_boot());
    let kept = fs::symlink_metadata(found.path.join(KEPT_FILE));
    of_this_boot && found.run == run && kept.is_ok_and(|kept| kept.is_file())
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

impl Found {
    /// Whether its owner is proven dead, and did not tell it to stay.
    fn is_of_the_dead(&self) -> bool {
        let owner = self.owner.as_deref().and_then(Owner::parse);
        owner.is_some_and(|owner| !owner.is_alive()) && !is_kept(&self.run)
    }
}

/// All such folders of this user; root sees everybody's.
pub(crate) fn all() -> Vec<Found> {
    let mut places = vec![PathBuf::from("/tmp"), env::temp_dir()];
    places.dedup();
    let mut found: Vec<Found> = places.iter().flat_map(|place| found_in(place)).collect();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Those in one place.
fn found_in(place: &Path) -> impl Iterator<Item = Found> + use<> {
    let entries = fs::read_dir(place).ok().into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    ours.filter_map(|entry| look(entry.path()))
}

fn look(path: PathBuf) -> Option<Found> {
    let metadata = fs::symlink_metadata(&path).ok()?;
    let user = nix::unistd::geteuid();
    if !metadata.is_dir() || !(user.is_root() || user.as_raw() == metadata.uid()) {
        return None;
    }
    let text = match read_owner(&path.join(OWNER_FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        // It may have an owner who lives: a name that is nobody's keeps it from being taken for abandoned.
        Err(error) => error.to_string(),
    };
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

/// Reads an owner file as if a stranger had put it there: never waits for a FIFO, follows no link, reads no more than the
/// most that one may hold.
fn read_owner(path: &Path) -> io::Result<String> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("the owner file is no regular file"));
    }
    let mut text = String::new();
    file.take(OWNER_BYTES).read_to_string(&mut text)?;
    Ok(text)
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
    fn an_owner_file_that_is_none_is_neither_waited_for_nor_followed() {
        use nix::sys::stat::Mode;
        let directory = RuntimeDirectory::scratch().expect("made");
        let file = directory.path().join(OWNER_FILE);
        let long_ago = SystemTime::now() - 2 * OWNERLESS_AGE;
        let put: [(&str, &dyn Fn()); 4] = [
            ("a FIFO", &|| {
                nix::unistd::mkfifo(&file, Mode::S_IRWXU).expect("made")
            }),
            ("a link", &|| {
                std::os::unix::fs::symlink("/proc/self/stat", &file).expect("made")
            }),
            ("a folder", &|| fs::create_dir(&file).expect("made")),
            ("endless", &|| {
                let sparse = fs::File::create(&file).expect("made");
                sparse.set_len(1 << 40).expect("made long");
            }),
        ];
        fs::remove_file(&file).expect("ours is gone");
        for (what, put) in put {
            put();
            let folder = fs::File::open(directory.path()).expect("opened");
            folder.set_modified(long_ago).expect("made old");
            let found = look(directory.path().to_path_buf()).expect("found");
            assert!(found.owner.is_some(), "{what}: taken for abandoned");
            assert!(!found.is_of_the_dead(), "{what}: taken for a dead one's");
            let removed = fs::remove_file(&file).or_else(|_| fs::remove_dir(&file));
            removed.expect("removed");
        }
    }

    #[test]
    fn those_of_dead_owners_beside_a_new_one_go_and_no_link_is_followed() {
        let root = tempfile::tempdir().expect("a folder");
        let parent = root.path().join(".hosts");
        let first = RuntimeDirectory::beside(&parent, &run_id("a0005")).expect("made");
        let dead = parent.join("fencepost-dead");
        fs::create_dir(&dead).expect("made");
        fs::write(dead.join(OWNER_FILE), "1:1:another-boot:1\nx\n").expect("written");
        let _second = RuntimeDirectory::beside(&parent, &run_id("a0006")).expect("made");
        assert!(!dead.exists() && first.path().exists());

        let link = root.path().join("link");
        std::os::unix::fs::symlink(&parent, &link).expect("made");
        let error = RuntimeDirectory::beside(&link, &run_id("a0007")).expect_err("a link");
        assert!(error.to_string().contains("not a folder"), "{error}");
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
