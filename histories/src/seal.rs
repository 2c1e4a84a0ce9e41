//! Closing a history: its events put in order, with the footer that says that none is missing.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{ReadError, SealError, WriteError};
use crate::{Ending, Place, Reader, Writer};

/// Sorts the events of an unsealed history by time (ties keep their order in the file) and gives it its footer. A
/// history that has one already is left alone. Returns how the file ended before, and so what was dropped: after
/// [`Cut::NoFooter`](crate::Cut::NoFooter) nothing.
///
/// The new file is written beside the old one (`history.jsonl.sealing`), synced, and renamed onto it, so that at any
/// moment there is the one or the other, whole. Lines stay as they are to the byte, unknown fields included. The file is
/// held in memory, once.
///
/// Only the history's own run may seal it, and only when nothing appends any more.
///
/// # Errors
/// When the history cannot be read, or a line of it is broken, or the sealed one cannot be written.
pub fn seal(path: impl AsRef<Path>) -> Result<Ending, SealError> {
    let path = resolved(path.as_ref())?;
    let mut reader = Reader::open(&path)?;
    let header = reader.last_line().to_vec();
    let (lines, times) = lines_and_times(&mut reader)?;
    let ending = reader
        .ending()
        .expect("a reader without another event has an ending");
    if matches!(ending, Ending::Truncated { .. }) {
        replace(&path, &header, &lines, times)?;
    }
    Ok(ending)
}

/// When an event was recorded, and where its line lies in the text of all.
type Time = (u64, std::ops::Range<usize>);

fn lines_and_times(reader: &mut Reader) -> Result<(Vec<u8>, Vec<Time>), ReadError> {
    let (mut lines, mut times) = (Vec::new(), Vec::new());
    while let Some(t) = reader.next()?.map(|event| event.t) {
        let start = lines.len();
        lines.extend_from_slice(reader.last_line());
        times.push((t, start..lines.len()));
    }
    Ok((lines, times))
}

fn replace(
    path: &Path,
    header: &[u8],
    lines: &[u8],
    mut times: Vec<Time>,
) -> Result<(), WriteError> {
    times.sort_by_key(|(t, _)| *t);
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".sealing");
    let beside = path.with_file_name(name);
    let written = write_sealed(path, &beside, header, lines, &times);
    if written.is_err() {
        // What is there is of no use to anybody; that it may not go away either changes nothing about the error.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write_sealed(
    path: &Path,
    beside: &Path,
    header: &[u8],
    lines: &[u8],
    times: &[Time],
) -> Result<(), WriteError> {
    let failed = |path: &Path| {
        let path = Some(path.to_owned());
        |source| WriteError::Io { path, source }
    };
    let file = File::create(beside).map_err(failed(beside))?;
    let permissions = fs::metadata(path).map_err(failed(path))?.permissions();
    file.set_permissions(permissions).map_err(failed(beside))?;
    let mut writer = Writer::begin(
        file,
        Some(beside.to_owned()),
        Writer::compresses(path),
        header,
    )?;
    for (_, line) in times {
        writer.write_line(&lines[line.clone()])?;
    }
    let file = writer.finish()?;
    file.sync_all().map_err(failed(beside))?;
    fs::rename(beside, path).map_err(failed(path))?;
    // The rename itself lasts only when the folder is synced too.
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(failed(folder))
}

/// The file itself, where `path` is a link to it: renaming onto the link would leave the file as it was.
fn resolved(path: &Path) -> Result<PathBuf, ReadError> {
    fs::canonicalize(path).map_err(|source: io::Error| {
        let place = Place {
            path: Some(path.to_owned()),
            ..Place::default()
        };
        ReadError::Io { place, source }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::Cut;

    const LINES: [&str; 4] = [
        r#"{"t":3,"process":"c1","op":7,"type":"invoke","f":"read","new":"kept"}"#,
        r#"{"t":1,"process":"c2","op":8,"type":"invoke","f":"work"}"#,
        r#"{"t":3, "process":"c1","op":7,"type":"ok","f":"read"}"#,
        r#"{"t":2,"process":"c2","op":8,"type":"ok","f":"work"}"#,
    ];

    fn header() -> &'static str {
        include_str!("../corpus/v1/paused-client.jsonl")
            .lines()
            .next()
            .unwrap()
    }

    /// The footer of a closed text, in which the digest fits.
    fn footer(closed: &str) -> String {
        let mut reader = Reader::new(closed.as_bytes()).unwrap();
        while reader.next().unwrap().is_some() {}
        assert_eq!(reader.seal(), Some(crate::Seal::Sealed));
        let footer = closed.lines().last().unwrap();
        assert!(footer.starts_with(r#"{"events":4,"sha256":""#), "{footer}");
        format!(
            "{footer}
"
        )
    }

    fn text(order: [usize; 4], end: &str) -> String {
        let lines: String = order
            .iter()
            .map(|line| format!("{}\n", LINES[*line]))
            .collect();
        format!("{}\n{lines}{end}", header())
    }

    #[test]
    fn sorts_and_closes_once_and_keeps_every_byte_of_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        fs::write(&path, text([0, 1, 2, 3], "")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let link = folder.path().join("latest");
        std::os::unix::fs::symlink(&path, &link).unwrap();

        assert_eq!(
            seal(&link).unwrap(),
            Ending::Truncated {
                events: 4,
                why: Cut::NoFooter
            }
        );
        let sealed = fs::read_to_string(&path).unwrap();
        assert_eq!(sealed, text([1, 3, 0, 2], &footer(&sealed)));
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert!(link.is_symlink());

        let before = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(seal(&path).unwrap(), Ending::Complete { events: 4 });
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            2,
            "nothing is left beside it"
        );
    }

    #[test]
    fn a_compressed_history_stays_compressed_and_a_cut_line_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl.zst");
        fs::write(
            &path,
            zstd::encode_all(text([0, 1, 2, 3], "{\"t\":").as_bytes(), 1).unwrap(),
        )
        .unwrap();
        assert_eq!(
            seal(&path).unwrap(),
            Ending::Truncated {
                events: 4,
                why: Cut::PartialLine
            }
        );
        let sealed = zstd::decode_all(&*fs::read(&path).unwrap()).unwrap();
        let sealed = String::from_utf8(sealed).unwrap();
        assert_eq!(sealed, text([1, 3, 0, 2], &footer(&sealed)));
    }

    #[test]
    fn what_cannot_be_read_is_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        let broken = text([0, 1, 2, 3], "garbage\n");
        fs::write(&path, &broken).unwrap();
        assert!(
            matches!(seal(&path), Err(SealError::Read(ReadError::Broken { place, .. })) if place.line == 6)
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), broken);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(matches!(
            seal("/nowhere"),
            Err(SealError::Read(ReadError::Io { .. }))
        ));
    }
}
