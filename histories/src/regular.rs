//! Opens files that somebody named, to read or to write: regular ones only, and without waiting for anybody.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a file to read. Named pipes, devices, sockets and folders are refused, since they may block, never end, or act
/// when they are read. It is the open file that is looked at: its name may mean another one a moment later.
///
/// # Errors
/// What the system says, or which kind of file it is instead.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Opening a named pipe would wait for its writer, and opening a terminal could make it ours.
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// Opens a file to write it anew, and makes it where there is none. What [`open_regular`] refuses is refused here, too.
///
/// # Errors
/// What the system says, or which kind of file it is instead.
pub fn create_regular(path: &Path) -> io::Result<File> {
    // What is no regular file may not be opened so, which its kind explains better.
    if let Ok(there) = path.metadata() {
        regular(there.file_type())?;
    }
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(flags.bits())
        .open(path)?;
    regular(file.metadata()?.file_type())?;
    file.set_len(0)?;
    Ok(file)
}

/// Refuses what is no regular file.
fn regular(kind: FileType) -> io::Result<()> {
    let (error, what) = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => (ErrorKind::IsADirectory, "a folder"),
        _ if kind.is_fifo() => (ErrorKind::InvalidInput, "a named pipe"),
        _ if kind.is_socket() => (ErrorKind::InvalidInput, "a socket"),
        _ => (ErrorKind::InvalidInput, "a device"),
    };
    let what = format!("it is {what}, not a regular file");
    Err(io::Error::new(error, what))
}

/// The text of a regular file of `bytes_max` bytes at most, UTF-8.
///
/// # Errors
/// Those of [`open_regular`], or that it is longer, or no UTF-8.
pub fn read_small(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    open_regular(path)?
        .take(bytes_max + 1)
        .read_to_end(&mut bytes)?;
    let invalid = |what: String| io::Error::new(ErrorKind::InvalidData, what);
    if bytes.len() as u64 > bytes_max {
        return Err(invalid(format!(
            "it is longer than {bytes_max} bytes, the most that is read"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() + 1;
        invalid(format!("it is not UTF-8 (byte {at})"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use std::fs;

    #[test]
    fn only_regular_files_are_opened_and_none_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        for (path, what) in [
            (pipe.as_path(), "a named pipe"),
            (folder.path(), "a folder"),
            (Path::new("/dev/zero"), "a device"),
        ] {
            for opened in [open_regular(path), create_regular(path)] {
                let said = opened.unwrap_err().to_string();
                assert_eq!(said, format!("it is {what}, not a regular file"));
            }
        }
        let file = folder.path().join("file");
        fs::write(&file, "text").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(open_regular(&link).is_ok());
    }

    #[test]
    fn a_small_file_is_no_longer_than_it_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "zwölf").unwrap();
        assert_eq!(read_small(&path, 6).unwrap(), "zwölf");
        let said = read_small(&path, 3).unwrap_err().to_string();
        assert_eq!(said, "it is longer than 3 bytes, the most that is read");
        fs::write(&path, b"a\xff").unwrap();
        let said = read_small(&path, 6).unwrap_err().to_string();
        assert_eq!(said, "it is not UTF-8 (byte 2)");
    }
}
