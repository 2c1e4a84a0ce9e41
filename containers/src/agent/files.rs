//! Files and folders that belong to whoever owns the folder they are made in, though the agent runs as root.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::Path;

/// Makes a folder and those that lead to it.
pub fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        make_folder(parent)?;
    }
    match fs::create_dir(path) {
        Ok(()) => adopt(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens a file to append to it, in a folder that is there.
pub fn append_to(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    adopt(path)?;
    Ok(file)
}

/// Puts a file in place by an atomic rename, world-readable; its folders are made.
pub fn put(path: &Path, content: &str) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not the path of a file",
        ));
    };
    make_folder(folder)?;
    let fresh = folder.join(format!(
        ".{}.{}",
        name.to_string_lossy(),
        super::monotonic_ns()
    ));
    let put = write_new(&fresh, content).and_then(|()| fs::rename(&fresh, path));
    if put.is_err() {
        // The error that is told is why it could not be put; that a remnant stays is nothing to it.
        let _ = fs::remove_file(&fresh);
    }
    put
}

fn write_new(path: &Path, content: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o644)
        .open(path)?;
    file.write_all(content.as_bytes())?;
    adopt(path)
}

/// Gives a file or folder to the owner of the folder that it lies in. Only root may; anybody else keeps it.
fn adopt(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    let owner = fs::metadata(folder)?;
    match chown(path, Some(owner.uid()), Some(owner.gid())) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_put_is_readable_and_belongs_to_the_owner_of_the_folder() {
        let root = tempfile::tempdir().unwrap();
        if chown(root.path(), Some(1234), Some(2345)).is_err() {
            println!("skipped: only root can give files away");
            return;
        }
        let path = root.path().join("a/b/file");
        put(&path, "one").unwrap();
        put(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        for made in [&path, &root.path().join("a"), &root.path().join("a/b")] {
            let found = fs::metadata(made).unwrap();
            assert_eq!((found.uid(), found.gid()), (1234, 2345), "{made:?}");
        }
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o644
        );
        let left = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(left, 1, "nothing temporary stays");
    }
}
