//! A run's directory: `<out>/<scenario>/<run id>/`, all of which belongs to whoever started the run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use histories::Plan;

/// Where a run keeps its plan, its history, its verdict and its logs.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    /// Makes the directory of a run, with the folders and files that processes in containers then append to.
    ///
    /// The files are made here so that they belong to the user, though containers write them as root.
    pub fn create(out: &Path, plan: &Plan, run: &str, hosts: &[&str]) -> Result<RunDirectory> {
        let directory = RunDirectory {
            path: out.join(&plan.scenario).join(run),
        };
        for folder in [directory.path.clone(), directory.clients()] {
            make_folder(&folder)?;
        }
        for host in hosts {
            make_folder(&directory.logs(host))?;
        }
        let text = toml::to_string(plan).context("write the plan as TOML")?;
        write(&directory.path.join("plan.toml"), text.as_bytes())?;
        Ok(directory)
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `history.jsonl`.
    pub fn history(&self) -> PathBuf {
        self.path.join("history.jsonl")
    }

    /// `verdict.json`.
    pub fn verdict(&self) -> PathBuf {
        self.path.join("verdict.json")
    }

    /// `logs/<host>`.
    pub fn logs(&self, host: &str) -> PathBuf {
        self.path.join("logs").join(host)
    }

    /// The file that a client appends its events to. It goes when the history is sealed.
    pub fn client_events(&self, client: &str) -> PathBuf {
        self.clients().join(format!("{client}.jsonl"))
    }

    /// The file that tells a client what to do. It goes when the history is sealed.
    pub fn client_config(&self, client: &str) -> PathBuf {
        self.clients().join(format!("{client}.json"))
    }

    fn clients(&self) -> PathBuf {
        self.path.join("clients")
    }

    /// Removes what only a run in progress needs.
    pub fn forget_clients(&self) -> Result<()> {
        fs::remove_dir_all(self.clients())
            .with_context(|| format!("remove {}", self.clients().display()))
    }

    /// Points `latest`, beside the run directories of the scenario, at this one.
    pub fn mark_latest(&self) -> Result<()> {
        let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Ok(());
        };
        let fresh = parent.join(format!(".latest-{}", name.to_string_lossy()));
        symlink(name, &fresh)
            .and_then(|()| fs::rename(&fresh, parent.join("latest")))
            .with_context(|| format!("point {} at the run", parent.join("latest").display()))
    }
}

/// Makes a folder and its parents.
pub fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("make the folder {}", path.display()))
}

/// Writes a file whole.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).with_context(|| format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_follows_the_newest_run() {
        let out = tempfile::tempdir().unwrap();
        let plan = crate::runner::tests::plan();
        for run in ["first", "second"] {
            let directory = RunDirectory::create(out.path(), &plan, run, &["s1"]).unwrap();
            assert!(directory.logs("s1").is_dir());
            directory.mark_latest().unwrap();
        }
        let latest = fs::read_link(out.path().join(&plan.scenario).join("latest")).unwrap();
        assert_eq!(latest, Path::new("second"));
    }
}
