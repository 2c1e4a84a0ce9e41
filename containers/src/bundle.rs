//! A program that runs in any container: a folder with the program, its shared objects and its own loader, whatever the
//! C library of the image is.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::{Error, is_limit_of_files};

/// What the program is called in the folder.
const PROGRAM: &str = "fencepost";

/// How much of a program is read to find its loader's name, in bytes.
const BEGIN: u64 = 1 << 20;

/// The folder, and how to start what is in it.
#[derive(Clone, Debug)]
pub struct Bundle {
    folder: PathBuf,
    /// The name of the loader's file in the folder; nothing for a program that needs none.
    loader: Option<String>,
}

impl Bundle {
    /// Copies a program and all that it is linked with into a folder, which is made.
    ///
    /// `exe` may be `/proc/self/exe`, even when that has been replaced on disk since it was started.
    ///
    /// # Errors
    /// [`Error::Bundle`] where a shared object is missing or the program is none for this machine; [`Error::Io`];
    /// [`Error::DiskFull`].
    pub fn make(exe: &Path, folder: &Path) -> Result<Bundle, Error> {
        fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
        let program = folder.join(PROGRAM);
        copy(exe, &program)?;
        let unusable = |reason: String| Error::Bundle {
            exe: exe.to_path_buf(),
            reason,
        };
        let begin = begin_of(&program).map_err(|error| Error::io(&program, error))?;
        let Some(interpreter) =
            interpreter(&begin).map_err(|reason| unusable(reason.to_owned()))?
        else {
            return Ok(Bundle {
                folder: folder.to_path_buf(),
                loader: None,
            });
        };
        let listed = ask_loader(&interpreter, &program).map_err(|error| {
            if is_limit_of_files(&error) {
                return Error::io(&interpreter, error);
            }
            let loader = interpreter.display();
            unusable(format!("its loader {loader} cannot be run: {error}"))
        })?;
        let objects = shared_objects(&listed).map_err(unusable)?;
        for object in objects.iter().chain([&interpreter]) {
            copy(object, &folder.join(file_name(object)))?;
        }
        Ok(Bundle {
            folder: folder.to_path_buf(),
            loader: Some(file_name(&interpreter)),
        })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The words with which a command that runs the program begins, where the folder is mounted at `place`.
    pub fn argv(&self, place: &str) -> Vec<String> {
        let program = format!("{place}/{PROGRAM}");
        match &self.loader {
            Some(loader) => vec![
                format!("{place}/{loader}"),
                "--library-path".to_owned(),
                place.to_owned(),
                program,
            ],
            None => vec![program],
        }
    }
}

/// The first part of a program, which holds its header, and its loader's name, which linkers put right behind that.
fn begin_of(program: &Path) -> io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    File::open(program)?.take(BEGIN).read_to_end(&mut begin)?;
    Ok(begin)
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// Copies a file that everybody may then run.
fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    fs::copy(from, to).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Error::io(from, error),
        _ => Error::io(to, error),
    })?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).map_err(|error| Error::io(to, error))
}

/// The loader that a 64-bit little-endian ELF program asks for (System V ABI, "Program Header", type PT_INTERP);
/// nothing for a static one.
fn interpreter(elf: &[u8]) -> Result<Option<PathBuf>, &'static str> {
    const PT_INTERP: u64 = 3;
    if elf.get(..6) != Some(&b"\x7fELF\x02\x01"[..]) {
        return Err("it is no 64-bit little-endian ELF program");
    }
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let field = elf.get(at..at.checked_add(bytes)?)?;
        Some(
            field
                .iter()
                .rev()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
        )
    };
    let find = || -> Option<Option<&[u8]>> {
        let (table, size, count) = (
            number(0x20, 8)? as usize,
            number(0x36, 2)? as usize,
            number(0x38, 2)? as usize,
        );
        for entry in 0..count {
            let header = table.checked_add(entry * size)?;
            if number(header, 4)? == PT_INTERP {
                let (offset, length) = (
                    number(header + 0x08, 8)? as usize,
                    number(header + 0x20, 8)? as usize,
                );
                return Some(Some(elf.get(offset..offset.checked_add(length)?)?));
            }
        }
        Some(None)
    };
    match find() {
        None => Err("its ELF header is damaged"),
        Some(None) => Ok(None),
        Some(Some(name)) => {
            let name = String::from_utf8_lossy(name);
            Ok(Some(PathBuf::from(name.trim_end_matches('\0'))))
        }
    }
}

/// Asks a program's loader for what it is linked with.
fn ask_loader(interpreter: &Path, program: &Path) -> io::Result<Output> {
    Command::new(interpreter)
        .arg("--list")
        .arg(program)
        .env_remove("LD_PRELOAD")
        .output()
}

/// All shared objects of a program, out of what its loader answered.
fn shared_objects(asked: &Output) -> Result<Vec<PathBuf>, String> {
    let (list, complaint) = (
        String::from_utf8_lossy(&asked.stdout),
        String::from_utf8_lossy(&asked.stderr),
    );
    if !asked.status.success() {
        return Err(format!("its loader does not load it: {}", complaint.trim()));
    }
    listed(&list)
}

/// The paths in what a loader lists: `name => /path (address)`; the loader itself and the vDSO have no arrow.
fn listed(list: &str) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    for (name, found) in list.lines().filter_map(|line| line.split_once(" => ")) {
        match found.rsplit_once(" (") {
            Some((path, _address)) if path.starts_with('/') => paths.push(PathBuf::from(path)),
            _ => return Err(format!("the shared object {} is not found", name.trim())),
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundled_program_runs_with_nothing_but_its_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let bundle = Bundle::make(Path::new("/proc/self/exe"), &folder.path().join("program"))
            .expect("a bundle");
        let argv = bundle.argv(&bundle.folder().to_string_lossy());
        assert!(argv.len() == 4 && argv[1] == "--library-path", "{argv:?}");
        let output = Command::new(&argv[0])
            .args(&argv[1..])
            .args(["--list", "bundle::"])
            .env("LD_DEBUG", "libs")
            .output()
            .expect("it starts");
        let listed = String::from_utf8_lossy(&output.stdout);
        assert!(
            listed.contains("bundle::tests::a_bundled_program_runs"),
            "{listed}"
        );
        let debug = String::from_utf8_lossy(&output.stderr);
        let outside: Vec<&str> = debug
            .lines()
            .filter_map(|line| line.split_once("calling init: "))
            .map(|(_, path)| path)
            .filter(|path| {
                path.starts_with('/') && !path.starts_with(&*folder.path().to_string_lossy())
            })
            .collect();
        assert!(
            outside.is_empty(),
            "loaded from outside the folder: {outside:?}"
        );
    }

    #[test]
    fn a_static_program_needs_no_loader() {
        let mut header = vec![0; 64];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        assert_eq!(interpreter(&header), Ok(None));
        let bundle = Bundle {
            folder: PathBuf::from("/x"),
            loader: None,
        };
        assert_eq!(bundle.argv("/fencepost"), ["/fencepost/fencepost"]);
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("script");
        fs::write(&script, "#!/bin/sh\n").expect("written");
        let error = Bundle::make(&script, &folder.path().join("program")).expect_err("a script");
        assert!(
            error
                .to_string()
                .contains("it is no 64-bit little-endian ELF program"),
            "{error}"
        );
    }

    #[test]
    fn a_damaged_header_is_refused_and_never_panics() {
        let whole = fs::read("/proc/self/exe").expect("this program");
        for at in 0x20..0x40 {
            let mut damaged = whole[..4096].to_vec();
            damaged[at] = 0xff;
            let _ = interpreter(&damaged);
        }
        assert!(interpreter(&whole[..0x30]).is_err());
    }

    #[test]
    fn a_missing_shared_object_is_named() {
        let list = "\tlinux-vdso.so.1 (0x1)\n\tlibgone.so.1 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n";
        assert_eq!(
            listed(list),
            Err("the shared object libgone.so.1 is not found".to_owned())
        );
    }

    #[test]
    fn the_listed_paths_are_read() {
        let list = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/a b/libc.so.6 (0x2)\n\t/lib64/ld.so (0x3)\n";
        assert_eq!(listed(list), Ok(vec![PathBuf::from("/lib/a b/libc.so.6")]));
    }
}
