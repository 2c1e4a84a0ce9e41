//! A run's directory: `<out>/<scenario>/<run id>/`, all of which belongs to whoever started the run.
//!
//! Hosts do not see it. Each has a folder of its own, where it finds the files that it writes for this run as hard links:
//! what is appended there is in the run's directory at once, and nothing is lost by a kill. No symbolic link below `<out>`
//! is followed, since others may be allowed to write there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use containers::site::{Host, Role};
use histories::{Plan, create_regular};
use nix::fcntl::OFlag;

use crate::exit::{UsageError, is_full};

/// What a client's files are called in its host's folder.
const EVENTS: &str = "client.jsonl";
const CONFIG: &str = "client.json";

/// Where a run keeps its plan, its history, its verdict and its logs.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    path: PathBuf,
    run: String,
}

impl RunDirectory {
    /// Makes the directory of a run, with the folders and files that processes in containers then append to.
    ///
    /// The files are made here so that they belong to the user, though containers write them as root.
    ///
    /// # Errors
    /// [`UsageError`] where a symbolic link is in the way, or the scenario's name is no name of a folder.
    pub fn create(out: &Path, plan: &Plan, run: &str, hosts: &[Host]) -> Result<RunDirectory> {
        let scenario = out.join(folder_name(&plan.scenario)?);
        make_or_find(&scenario)?;
        let directory = RunDirectory {
            path: scenario.join(run),
            run: run.to_owned(),
        };
        let text = toml::to_string(plan).context("write the plan as TOML")?;
        make_new(&directory.path)?;
        // First of all: by its plan the directory of a run that ends before it records anything is known for one.
        write_new(&directory.path.join("plan.toml"), text.as_bytes())?;
        for folder in [directory.clients(), directory.path.join("logs")] {
            make_new(&folder)?;
        }
        for host in hosts {
            directory.share(host)?;
        }
        Ok(directory)
    }

    /// Makes the files that a host writes, and lets it find them in its own folder.
    fn share(&self, host: &Host) -> Result<()> {
        make_new(&self.logs(&host.name))?;
        make_new(&self.folder(host))?;
        self.link(host, &self.log(host), &log_name(host))?;
        match host.role {
            Role::Client => self.link(host, &self.client_events(&host.name), EVENTS),
            Role::Server(_) | Role::Storage(_) => Ok(()),
        }
    }

    fn link(&self, host: &Host, file: &Path, name: &str) -> Result<()> {
        write_new(file, b"")?;
        let link = self.folder(host).join(name);
        match fs::hard_link(file, &link) {
            Err(error) if !is_full(&error) => Err(UsageError(format!(
                "{} cannot be shared with host {} by a hard link ({error}): name an --out whose file system has them",
                file.display(),
                host.name
            ))
            .into()),
            linked => linked.with_context(|| format!("write {}", link.display())),
        }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `history.jsonl`.
    pub fn history(&self) -> PathBuf {
        self.path.join("history.jsonl")
    }

    /// Writes `verdict.json`.
    pub fn write_verdict(&self, verdict: &str) -> Result<()> {
        write_new(&self.path.join("verdict.json"), verdict.as_bytes())
    }

    fn logs(&self, host: &str) -> PathBuf {
        self.path.join("logs").join(host)
    }

    /// The log of what a host is there for: `logs/<host>/server.log`.
    pub fn log(&self, host: &Host) -> PathBuf {
        self.logs(&host.name).join(log_name(host))
    }

    /// The folder in which a host finds its files of this run, and logs what else runs in it.
    pub fn folder(&self, host: &Host) -> PathBuf {
        host.folder.join(&self.run)
    }

    /// The file that a client appends its events to. It goes when the history is sealed.
    pub fn client_events(&self, client: &str) -> PathBuf {
        self.clients().join(format!("{client}.jsonl"))
    }

    /// The same file as the client's host sees it.
    pub fn events_in(&self, host: &Host) -> PathBuf {
        self.folder(host).join(EVENTS)
    }

    /// Writes what tells a client what to do, and lets its host find it; where.
    pub fn write_client_config(&self, host: &Host, config: &str) -> Result<PathBuf> {
        let file = self.clients().join(format!("{}.json", host.name));
        self.link(host, &file, CONFIG)?;
        write(&file, config.as_bytes())?;
        Ok(self.folder(host).join(CONFIG))
    }

    fn clients(&self) -> PathBuf {
        self.path.join("clients")
    }

    /// Takes in what hosts logged besides, such as the processes of faults, and removes what only a run in progress needs.
    pub fn finish(&self, hosts: &[Host]) -> Result<()> {
        self.check()?;
        for host in hosts {
            let (from, to) = (self.folder(host), self.logs(&host.name));
            take_in(&from, &to).with_context(|| {
                format!(
                    "take in the logs of host {} from {}",
                    host.name,
                    from.display()
                )
            })?;
        }
        fs::remove_dir_all(self.clients())
            .with_context(|| format!("remove {}", self.clients().display()))
    }

    /// Points `latest`, beside the run directories of the scenario, at this one.
    pub fn mark_latest(&self) -> Result<()> {
        self.check()?;
        let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Ok(());
        };
        let fresh = parent.join(format!(".latest-{}", name.to_string_lossy()));
        symlink(name, &fresh)
            .and_then(|()| fs::rename(&fresh, parent.join("latest")))
            .with_context(|| format!("point {} at the run", parent.join("latest").display()))
    }

    /// That nobody has put a symbolic link in the place of a folder of ours.
    fn check(&self) -> Result<()> {
        let scenario = self.path.parent().unwrap_or(&self.path);
        [scenario, &self.path].into_iter().try_for_each(is_folder)
    }
}

fn log_name(host: &Host) -> String {
    format!("{}.log", host.role.process())
}

/// A name that leads nowhere else than into its parent.
fn folder_name(name: &str) -> Result<&Path> {
    let path = Path::new(name);
    let mut components = path.components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == path.as_os_str() => Ok(path),
        _ => Err(UsageError(format!("`{name}` is no name for a folder of runs")).into()),
    }
}

fn make_new(path: &Path) -> Result<()> {
    fs::create_dir(path).with_context(|| format!("make the folder {}", path.display()))
}

fn make_or_find(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => is_folder(path),
        made => made.with_context(|| format!("make the folder {}", path.display())),
    }
}

fn is_folder(path: &Path) -> Result<()> {
    let found = fs::symlink_metadata(path).with_context(|| format!("find {}", path.display()))?;
    if found.is_dir() {
        return Ok(());
    }
    Err(UsageError(format!(
        "{} is a symbolic link or a file, and below --out no link is followed: remove it, or name another --out",
        path.display()
    ))
    .into())
}

/// Links the logs in one folder, which a host may write to, into another that has no such file yet.
fn take_in(from: &Path, to: &Path) -> io::Result<()> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(from)?;
    // The folder that was opened, whatever has been put in its place since.
    let opened = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    for entry in fs::read_dir(&opened)?.flatten() {
        let (log, name) = (entry.path(), entry.file_name());
        let is_log = log.extension().is_some_and(|end| end == "log");
        if is_log && fs::symlink_metadata(&log)?.is_file() {
            match fs::hard_link(&log, to.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Makes a folder and its parents.
pub fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("make the folder {}", path.display()))
}

/// Writes a file whole: a new one, or a regular one that is there.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    create_regular(path)
        .and_then(|mut file| file.write_all(content))
        .with_context(|| format!("write {}", path.display()))
}

/// Writes a file that was not there, nor a link in its place.
fn write_new(path: &Path, content: &[u8]) -> Result<()> {
    File::create_new(path)
        .and_then(|mut file| file.write_all(content))
        .with_context(|| format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::exit::{Exit, of_error};

    /// A folder for runs, and a client's host that has one beside it.
    fn place() -> (tempfile::TempDir, Host) {
        let root = tempfile::tempdir().unwrap();
        let host = Host {
            name: "c1".to_owned(),
            address: Ipv4Addr::LOCALHOST,
            role: Role::Client,
            image: String::new(),
            socket: PathBuf::new(),
            folder: root.path().join("hosts-c1"),
            container: String::new(),
            stands_still: Default::default(),
        };
        fs::create_dir(root.path().join("out")).unwrap();
        fs::create_dir(&host.folder).unwrap();
        (root, host)
    }

    fn create(root: &tempfile::TempDir, run: &str, host: &Host) -> Result<RunDirectory> {
        let plan = crate::runner::tests::plan();
        RunDirectory::create(
            &root.path().join("out"),
            &plan,
            run,
            std::slice::from_ref(host),
        )
    }

    #[test]
    fn latest_follows_the_newest_run() {
        let (root, host) = place();
        for run in ["first", "second"] {
            create(&root, run, &host).unwrap().mark_latest().unwrap();
        }
        let latest = fs::read_link(root.path().join("out/no-fault/latest")).unwrap();
        assert_eq!(latest, Path::new("second"));
    }

    #[test]
    fn what_a_host_writes_in_its_folder_is_in_the_runs_directory() {
        let (root, host) = place();
        let directory = create(&root, "run", &host).unwrap();
        let append = |path: PathBuf, text: &str| {
            let mut file = OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        append(directory.events_in(&host), "event\n");
        append(directory.folder(&host).join("client.log"), "said\n");
        append(directory.folder(&host).join("delay-1.log"), "held\n");
        symlink("/etc/hostname", directory.folder(&host).join("planted.log")).unwrap();
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(read(directory.client_events("c1")), "event\n");
        assert_eq!(read(directory.log(&host)), "said\n");
        assert_eq!(
            read(directory.write_client_config(&host, "{}").unwrap()),
            "{}"
        );

        directory.finish(&[host]).unwrap();
        assert_eq!(read(directory.path().join("logs/c1/delay-1.log")), "held\n");
        assert!(!directory.path().join("logs/c1/planted.log").exists());
        assert!(!directory.path().join("clients").exists());
    }

    #[test]
    fn no_link_below_the_folder_for_runs_is_followed() {
        let (root, host) = place();
        let elsewhere = root.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let scenario = root.path().join("out/no-fault");
        symlink(&elsewhere, &scenario).unwrap();
        let error = create(&root, "run", &host).unwrap_err();
        assert_eq!(of_error(&error), Exit::Usage, "{error:#}");
        assert!(
            error
                .to_string()
                .contains("out/no-fault is a symbolic link"),
            "{error:#}"
        );

        // One that comes later is met at the end, before anything is removed or renamed through it.
        fs::remove_file(&scenario).unwrap();
        let directory = create(&root, "run", &host).unwrap();
        fs::rename(&scenario, root.path().join("moved")).unwrap();
        fs::create_dir_all(elsewhere.join("run/clients")).unwrap();
        symlink(&elsewhere, &scenario).unwrap();
        assert!(directory.finish(&[host]).is_err() && directory.mark_latest().is_err());
        assert!(elsewhere.join("run/clients").exists());
        assert!(!elsewhere.join("latest").is_symlink());
    }

    #[test]
    fn a_host_that_puts_a_link_in_its_folders_place_is_refused() {
        let (root, host) = place();
        let directory = create(&root, "run", &host).unwrap();
        let folder = directory.folder(&host);
        fs::rename(&folder, root.path().join("moved")).unwrap();
        symlink("/var/log", &folder).unwrap();
        assert!(directory.finish(&[host]).is_err());
    }

    #[test]
    fn a_scenarios_name_leads_nowhere_else() {
        assert!(folder_name("paused-client").is_ok());
        for name in ["", ".", "..", "../..", "a/b", "/a", "a/", "./a"] {
            assert!(folder_name(name).is_err(), "{name}");
        }
    }
}
