//! The files that a run leaves beside its history.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The name of a run's history.
const HISTORY: &str = "history.jsonl";

/// The name of a run's plan, which is there before anything is recorded.
pub const PLAN: &str = "plan.toml";

/// A verdict has a few thousand bytes, and a plan of thousands of faults a few million; whatever is larger is something else.
const LARGEST: u64 = 16 << 20;

/// Where such a file lies, if it is there.
pub fn find(history: &Path, file: &str) -> Option<PathBuf> {
    let name = history.file_name()?.to_str()?;
    let path = history.with_file_name(file);
    (is_history_of_run(name) && path.symlink_metadata().is_ok()).then_some(path)
}

/// Whether a file of this name is the history that a run recorded itself, compressed or not.
pub fn is_history_of_run(name: &str) -> bool {
    name.strip_suffix(".zst").unwrap_or(name) == HISTORY
}

/// Reads one, and what it says by `read`.
pub fn read<T>(path: &Path, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    let content = || -> Result<Vec<u8>> {
        let metadata = path.symlink_metadata()?;
        if !metadata.is_file() || metadata.len() > LARGEST {
            bail!("it is no file of its size");
        }
        Ok(std::fs::read(path)?)
    };
    content()
        .and_then(|content| read(&content))
        .with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_s_own_history_has_files_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let verdict = folder.path().join("verdict.json");
        let of = |history: &str| find(&folder.path().join(history), "verdict.json");
        assert_eq!(of("history.jsonl"), None);
        std::fs::write(&verdict, "{}").unwrap();
        assert_eq!(of("mine.jsonl"), None);
        for name in ["history.jsonl", "history.jsonl.zst"] {
            assert_eq!(of(name), Some(verdict.clone()));
        }
    }
}
