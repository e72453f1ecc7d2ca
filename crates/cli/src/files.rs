//! Files that a user names for a command to write: what may be there already, and how it is written.
//!
//! A regular file is replaced as a whole. Everything else is written to as it is: a device, a FIFO, and what a symbolic link leads to. Where the
//! name leads to standard output, as `-` does, or to standard error, the text follows what was printed there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use arbor_database::is_own_name;
use arbor_metrics::Envelope;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Tries whether a report can be written: to be asked before hours of work. `db` is the folder of the command's database, whose own files no
/// report may replace.
///
/// # Errors
/// A folder, a socket, what may not be written, or a file of the database.
pub(crate) fn check_report(file: Option<&Path>, db: Option<&Path>) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    not_of_database("--report", file, db)?;
    check(file)
        .with_context(|| file.display().to_string())
        .context("the report cannot be written")
}

/// Writes a report, if one is asked for.
pub(crate) fn write_report(file: Option<&Path>, envelope: &Envelope) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    write(file, envelope.to_text()?.as_bytes())
        .with_context(|| file.display().to_string())
        .context("writing the report")
}

/// Whether a file has this extension, below .gz or not.
pub(crate) fn has_extension(file: &Path, extension: &str) -> bool {
    let inner = match is_packed(file) {
        true => file.with_extension(""),
        false => file.to_owned(),
    };
    inner.extension().is_some_and(|found| found == extension)
}

/// Whether a file's name says that it is a gzip.
pub(crate) fn is_packed(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "gz")
}

/// Refuses to write what a flag names where it is a database's own.
pub(crate) fn not_of_database(flag: &str, file: &Path, db: Option<&Path>) -> Result<()> {
    let Some(db) = db else { return Ok(()) };
    let (place, folder) = (resolved(file), resolved(db));
    let Ok(inside) = place.strip_prefix(&folder) else {
        return Ok(());
    };
    let own = match inside.components().next() {
        None => true,
        Some(first) => first.as_os_str().to_str().is_some_and(is_own_name),
    };
    if own {
        bail!(
            "{flag} {} is the database's own, which would be overwritten: give another name",
            file.display()
        );
    }
    Ok(())
}

/// Refuses outputs of a command that are files it reads, or of which two are one. What is read may be folders, whose files are meant.
pub(crate) fn apart<'p>(
    written: impl IntoIterator<Item = (&'static str, &'p Path)>,
    read: impl IntoIterator<Item = &'p Path>,
) -> Result<()> {
    let mut taken: Vec<(PathBuf, Option<&str>)> = Vec::new();
    for path in read {
        match fs::read_dir(path) {
            Ok(files) => {
                taken.extend(files.flatten().map(|file| (resolved(&file.path()), None)));
            }
            Err(_) => taken.push((resolved(path), None)),
        }
    }
    for (flag, path) in written {
        let place = resolved(path);
        if path == Path::new("-") {
            continue;
        }
        // What is no file (a terminal, /dev/null) takes all that is written to it.
        if place.exists() && !place.is_file() {
            continue;
        }
        match taken.iter().find(|(other, _)| *other == place) {
            Some((_, None)) => bail!(
                "{flag} {} is read, and would be overwritten: give another name",
                path.display()
            ),
            Some((_, Some(other))) => {
                bail!("{flag} and {other} are one file, {}", path.display())
            }
            None => taken.push((place, Some(flag))),
        }
    }
    Ok(())
}

/// Where a path leads; of what is not there yet, where it would be.
fn resolved(path: &Path) -> PathBuf {
    if let Ok(found) = fs::canonicalize(path) {
        return found;
    }
    let above = |path: &Path| match path.parent() {
        Some(folder) if folder == Path::new("") => PathBuf::from("."),
        Some(folder) => folder.to_owned(),
        None => path.to_owned(),
    };
    // A link to what is not there, or a new name in a folder, which may be new as well.
    let aim = match fs::read_link(path) {
        Ok(aim) => above(path).join(aim),
        Err(_) => path.to_owned(),
    };
    let folder = above(&aim);
    match aim.file_name() {
        Some(name) if folder != aim => resolved(&folder).join(name),
        _ => aim,
    }
}

/// What a name stands for.
enum Place {
    /// A regular file, or none yet: it is replaced as a whole.
    Plain,
    /// A stream of this process.
    Output,
    Errors,
    /// Anything else: opened as it is.
    Other,
}

impl Place {
    fn of(path: &Path) -> Self {
        if path == Path::new("-") || is_stream(path, "/dev/stdout") {
            return Self::Output;
        }
        if is_stream(path, "/dev/stderr") {
            return Self::Errors;
        }
        match fs::symlink_metadata(path) {
            Ok(found) if !found.is_file() => Self::Other,
            _ => Self::Plain,
        }
    }
}

/// Whether a path leads to the same file as one of the process's streams.
#[cfg(unix)]
fn is_stream(path: &Path, stream: &str) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |path: &Path| {
        fs::metadata(path)
            .ok()
            .map(|found| (found.dev(), found.ino()))
    };
    place(path).is_some_and(|found| place(Path::new(stream)) == Some(found))
}

#[cfg(not(unix))]
fn is_stream(_: &Path, _: &str) -> bool {
    false
}

/// Whether a name leads to standard output.
pub(crate) fn is_output(path: &Path) -> bool {
    matches!(Place::of(path), Place::Output)
}

/// Writes bytes to what a name leads to: see above.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_by(path, &mut |out| out.write_all(bytes))
}

/// Writes bytes like [`write()`], gzipped if the name ends in .gz; returns the bytes of the file.
pub(crate) fn write_packed(path: &Path, bytes: &[u8]) -> io::Result<u64> {
    write_packed_by(path, &mut |out| out.write_all(bytes))
}

/// Writes like [`write_by`], gzipped if the name ends in .gz; returns the bytes of the file.
pub(crate) fn write_packed_by(
    path: &Path,
    put: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<u64> {
    let mut bytes = 0;
    write_by(path, &mut |out| {
        let mut out = Counting { out, bytes: 0 };
        if is_packed(path) {
            let mut packed = GzEncoder::new(&mut out, Compression::default());
            put(&mut packed)?;
            packed.finish()?;
        } else {
            put(&mut out)?;
        }
        bytes = out.bytes;
        Ok(())
    })?;
    Ok(bytes)
}

/// Counts the bytes that pass.
struct Counting<'a> {
    out: &'a mut dyn Write,
    bytes: u64,
}

impl Write for Counting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// As [`write()`], for what is made as it is written.
pub(crate) fn write_by(
    path: &Path,
    put: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffered = |out: &mut dyn Write| {
        let mut out = BufWriter::new(out);
        put(&mut out).and_then(|()| out.flush())
    };
    match Place::of(path) {
        Place::Plain => {
            // Written beside its place and renamed, so that a reader never sees half of it.
            let unfinished = unfinished(path);
            let written = File::create(&unfinished)
                .and_then(|mut file| buffered(&mut file).and_then(|()| file.sync_all()))
                .and_then(|()| fs::rename(&unfinished, path))
                .and_then(|()| arbor_store::sync_name(path));
            if written.is_err() {
                // The first error is the one to tell; there may be nothing to remove.
                let _ = fs::remove_file(&unfinished);
            }
            written
        }
        // A reader that went away is no error, as for all that is printed.
        Place::Output => match buffered(&mut io::stdout().lock()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        },
        Place::Errors => buffered(&mut io::stderr().lock()),
        Place::Other => {
            // Linux refuses to open another user's FIFO in a folder such as /tmp, if it might have to be made.
            let made = !path.exists();
            let mut options = OpenOptions::new();
            let options = options.write(true).truncate(true).create(made);
            buffered(&mut options.open(path)?)
        }
    }
}

pub(crate) fn check(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    match Place::of(path) {
        Place::Output | Place::Errors => Ok(()),
        Place::Plain => {
            let unfinished = unfinished(path);
            fs::write(&unfinished, "").and_then(|()| fs::remove_file(&unfinished))
        }
        Place::Other if !path.exists() || path.is_file() => check_opens(path),
        Place::Other => check_allowed(path),
    }
}

/// Opens a regular file to write at its end, or makes one and takes it away again, also where a symbolic link leads to it.
pub(crate) fn check_opens(path: &Path) -> io::Result<()> {
    let made = !path.exists();
    OpenOptions::new().append(true).create(made).open(path)?;
    if made {
        fs::remove_file(fs::canonicalize(path)?)?;
    }
    Ok(())
}

/// Whether a device or a FIFO may be written. It is not opened: the reader of a FIFO would take that for the end, and a device may act on it.
#[cfg(unix)]
fn check_allowed(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    if fs::metadata(path)?.file_type().is_socket() {
        return Err(io::Error::other("a socket, which cannot be opened"));
    }
    Ok(rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?)
}

#[cfg(not(unix))]
fn check_allowed(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The file beside `path` that is written first.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    name.into()
}

/// Returns the bytes that are free on the disk of a folder, and the folder that was asked for: the nearest that exists.
pub(crate) fn free_space(dir: &Path) -> Result<(&Path, u64)> {
    let existing = dir.ancestors().find(|path| path.exists());
    let existing = existing
        .filter(|path| *path != Path::new(""))
        .unwrap_or(Path::new("."));
    let disk = rustix::fs::statvfs(existing)
        .with_context(|| format!("asking for the free space of {}", existing.display()))?;
    Ok((existing, disk.f_bavail.saturating_mul(disk.f_frsize)))
}
