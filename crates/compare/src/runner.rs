//! Runs the chain under one side, in a process of its own.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use arbor_metrics::{Envelope, Machine};
use serde_json::{Value, json};

use crate::error::of_file;
use crate::run::Run;
use crate::{Cache, CompareError, Folder, Plan, Side, cache};

/// How a run ended that was not interrupted.
pub(crate) enum Ended {
    Done(Box<Run>),
    /// What failed; the log has more.
    Failed(String),
    /// Somebody asked its process to stop.
    Stopped,
}

/// Copies the folder of a database to another one, which is not there yet.
pub type CopyDatabase<'a> = dyn Fn(&Path, &Path) -> std::io::Result<()> + 'a;

/// Starts processes for runs.
pub(crate) struct Runner<'a> {
    pub(crate) program: &'a Path,
    pub(crate) plan: &'a Plan,
    pub(crate) folder: &'a Folder,
    pub(crate) copy: &'a CopyDatabase<'a>,
    /// Takes a line about what goes on.
    pub(crate) tell: &'a dyn Fn(&str),
}

/// The environment variable that names the process which started a run. A run ends with that process.
pub const PARENT_VARIABLE: &str = "ARBOR_PARENT";

impl Runner<'_> {
    /// Replays the chain under a side, checks the database, and surveys it if it is the side's first.
    pub(crate) fn run(&self, side: &Side, repetition: usize) -> Result<Ended, CompareError> {
        self.folder.clear_work()?;
        let work = self.folder.work();
        fs::create_dir_all(&work).map_err(of_file(&work))?;
        let log_path = self.folder.of_run(side, repetition, "log");
        let log = File::create(&log_path).map_err(of_file(&log_path))?;
        // The processes inherit the lock: whoever goes on after a kill waits for them.
        log.lock().map_err(of_file(&log_path))?;
        let mut steps = Steps {
            runner: self,
            side,
            log,
            log_path,
            commands: Vec::new(),
        };
        let ended = self.steps(&mut steps, side, repetition);
        self.folder.clear_work()?;
        ended
    }

    fn steps(
        &self,
        steps: &mut Steps<'_>,
        side: &Side,
        repetition: usize,
    ) -> Result<Ended, CompareError> {
        let work = self.folder.work();
        let db = work.join("db");
        self.copy_start(side, &db)?;
        let cache = self.prepare_cache(&db)?;
        let measured = self.replay_words(side, self.plan.to, self.measuring_words());
        if let Some(ended) = steps.step(&measured)? {
            return Ok(ended);
        }
        let report_file = work.join("report.json");
        let report = read_envelope(&report_file)?;
        if let Some(moves) = &side.moves
            && report.results["move"]["units"].as_u64().unwrap_or_default() == 0
        {
            return Ok(Ended::Failed(format!(
                "nothing was moved: the blocks end before block {}",
                moves.at
            )));
        }
        let roots_file = work.join("roots");
        let roots = fs::read(&roots_file).map_err(of_file(&roots_file))?;
        // Later runs of a side must have the roots of its first.
        if repetition == 1 && self.plan.verify {
            (self.tell)(&format!("{}: checking its whole database", side.name));
            if let Some(ended) = steps.step(&self.verify_words())? {
                return Ok(ended);
            }
        }
        let (mut survey, mut inspection, mut growth) = (None, None, Vec::new());
        if repetition == 1 && self.plan.survey {
            (self.tell)(&format!(
                "{}: measuring tables, proofs, updates and witnesses",
                side.name
            ));
            // A side that moves has another tree at each point, and witnesses at some of them alone.
            if side.moves.is_none() {
                if let Some(ended) = steps.step(&self.survey_words())? {
                    return Ok(ended);
                }
                survey = Some(read_envelope(&work.join("survey.json"))?.results);
            }
            let found = match self.inspect(steps)? {
                Ok(found) => found,
                Err(ended) => return Ok(ended),
            };
            if let Some(ended) = self.grow(steps, (side, &report), &mut growth)? {
                return Ok(ended);
            }
            if self.plan.growth > 0 {
                growth.push(tables_of(&found));
            }
            inspection = Some(found);
        }
        let rows = self.folder.of_run(side, repetition, "csv");
        fs::rename(work.join("blocks.csv"), &rows).map_err(of_file(&rows))?;
        // Before the record that says that the run is done.
        let synced = File::open(&rows).and_then(|rows| rows.sync_all());
        synced.map_err(of_file(&rows))?;
        let run = Run {
            side: side.name.clone(),
            repetition,
            commands: std::mem::take(&mut steps.commands),
            cache,
            roots: format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&roots)),
            report,
            survey,
            inspection,
            growth,
        };
        let record = self.folder.of_run(side, repetition, "json");
        self.folder.write_json(&record, &run)?;
        Ok(Ended::Done(Box::new(run)))
    }

    /// Copies the database that a side's runs begin with, if there is one.
    fn copy_start(&self, side: &Side, db: &Path) -> Result<(), CompareError> {
        match &side.start {
            Some(start) => (self.copy)(Path::new(start), db).map_err(of_file(Path::new(start))),
            None => Ok(()),
        }
    }

    /// Puts the operating system's cache into the state that the plan asks for, and describes it.
    fn prepare_cache(&self, db: &Path) -> Result<String, CompareError> {
        if self.plan.cache == Cache::Warm {
            let read = match db.exists() {
                true => cache::read(db).map_err(of_file(db))?,
                false => 0,
            };
            return Ok(match read {
                0 => "warm: as the runs before left it".to_owned(),
                bytes => format!(
                    "warm: the {bytes} bytes of the start database were read once, everything else is as the runs before left it"
                ),
            });
        }
        let mut paths: Vec<&Path> = self.plan.paths.iter().map(|path| &**path).collect();
        if db.exists() {
            paths.push(db);
        }
        let files = cache::forget(&paths).map_err(of_file(db))?;
        let copy = if db.exists() {
            " and of the copied start database"
        } else {
            ""
        };
        Ok(format!(
            "cold: posix_fadvise(DONTNEED) of {files} files, those of the chain{copy}"
        ))
    }

    /// Inspects the database of a run.
    fn inspect(&self, steps: &mut Steps<'_>) -> Result<Result<Value, Ended>, CompareError> {
        let file = self.folder.work().join("inspection.json");
        if let Some(ended) = steps.step_into(&self.inspect_words(), Some(&file))? {
            return Ok(Err(ended));
        }
        let text = fs::read_to_string(&file).map_err(of_file(&file))?;
        serde_json::from_str(&text)
            .map(Ok)
            .map_err(|error| CompareError::Damaged {
                path: file,
                why: error.to_string(),
            })
    }

    /// Replays the chain once more, from block to block of those after which the database is inspected. The last
    /// block is left out: the database of the measured replay was inspected after it.
    fn grow(
        &self,
        steps: &mut Steps<'_>,
        (side, report): (&Side, &Envelope),
        growth: &mut Vec<Value>,
    ) -> Result<Option<Ended>, CompareError> {
        let total = &report.results["total"];
        let number = |name: &str| total[name].as_u64().unwrap_or_default();
        let stages = stages(number("first_block"), number("blocks"), self.plan.growth);
        if stages.is_empty() {
            return Ok(None);
        }
        let db = self.folder.work().join("db");
        fs::remove_dir_all(&db).map_err(of_file(&db))?;
        self.copy_start(side, &db)?;
        for block in stages {
            if let Some(ended) = steps.step(&self.replay_words(side, Some(block), Vec::new()))? {
                return Ok(Some(ended));
            }
            match self.inspect(steps)? {
                Ok(found) => growth.push(tables_of(&found)),
                Err(ended) => return Ok(Some(ended)),
            }
        }
        Ok(None)
    }

    /// A replay into the database of a run, with `more` flags.
    fn replay_words(&self, side: &Side, to: Option<u64>, more: Vec<OsString>) -> Vec<OsString> {
        let plan = self.plan;
        let work = self.folder.work();
        let mut words: Vec<OsString> = vec!["replay".into()];
        let mut flag = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                words.extend([format!("--{name}").into(), value.into()]);
            }
        };

        flag("tree", Some(side.tree.clone()));
        let settings = side.settings.join(",");
        flag("tree-settings", (!settings.is_empty()).then_some(settings));
        flag("genesis", plan.genesis.clone());
        flag("memory", Some(plan.memory_bytes.to_string()));
        let write_back = match side.write_through {
            true => Some(0),
            false => plan.write_back_bytes,
        };
        flag("write-back", write_back.map(|bytes| bytes.to_string()));
        flag("retain", Some(plan.retain.clone()));
        let threads = if side.in_turn { 1 } else { plan.threads };
        flag("threads", Some(threads.to_string()));
        flag("to", to.map(|to| to.to_string()));
        if let Some(moves) = &side.moves {
            flag("convert-to", Some(moves.to.clone()));
            flag("at", Some(moves.at.to_string()));
            flag("stride", Some(moves.stride.to_string()));
        }
        words.extend(["--db".into(), work.join("db").into()]);
        words.extend(more);
        words.extend(plan.paths.iter().map(OsString::from));
        words
    }

    /// The flags of a measured replay.
    fn measuring_words(&self) -> Vec<OsString> {
        let work = self.folder.work();
        let mut words: Vec<OsString> = Vec::new();
        if let Some(limits) = &self.plan.throttle {
            words.extend(["--throttle".into(), limits.into()]);
        }
        for (flag, file) in [
            ("--report", "report.json"),
            ("--blocks", "blocks.csv"),
            ("--roots", "roots"),
        ] {
            words.extend([flag.into(), work.join(file).into()]);
        }
        words
    }

    fn verify_words(&self) -> Vec<OsString> {
        let db = self.folder.work().join("db");
        let (threads, memory) = (self.plan.threads.to_string(), verify_memory().to_string());
        let words = ["--threads", &threads, "--memory", &memory].map(OsString::from);
        let mut verify: Vec<OsString> = vec!["verify".into(), "--db".into(), db.into()];
        verify.extend(words);
        verify
    }

    fn survey_words(&self) -> Vec<OsString> {
        let (plan, work) = (self.plan, self.folder.work());
        let mut words: Vec<OsString> = vec!["bench".into(), "database".into()];
        let flags: [(&str, OsString); 5] = [
            ("--db", work.join("db").into()),
            ("--memory", plan.memory_bytes.to_string().into()),
            ("--threads", plan.threads.to_string().into()),
            ("--witnesses", plan.witnesses.to_string().into()),
            ("--report", work.join("survey.json").into()),
        ];
        words.extend(
            flags
                .into_iter()
                .flat_map(|(flag, value)| [flag.into(), value]),
        );
        words.extend(plan.paths.iter().map(OsString::from));
        words
    }

    fn inspect_words(&self) -> Vec<OsString> {
        let db = self.folder.work().join("db");
        let mut words: Vec<OsString> = vec!["inspect".into(), "--db".into(), db.into()];
        let memory = self.plan.memory_bytes.to_string();
        words.extend(["--memory", &memory, "--json"].map(OsString::from));
        words
    }
}

/// The exit code of a process of this program that was asked to stop.
const INTERRUPTED: i32 = 130;

/// The processes of a run, one after another, with one log.
struct Steps<'a> {
    runner: &'a Runner<'a>,
    side: &'a Side,
    log: File,
    log_path: PathBuf,
    commands: Vec<String>,
}

impl Steps<'_> {
    /// Runs a command; `None` if it succeeded.
    fn step(&mut self, words: &[OsString]) -> Result<Option<Ended>, CompareError> {
        self.step_into(words, None)
    }

    /// Runs a command whose standard output goes to a file instead of the log.
    fn step_into(
        &mut self,
        words: &[OsString],
        output: Option<&Path>,
    ) -> Result<Option<Ended>, CompareError> {
        let program = self.runner.program;
        let line = command_line(self.side, words);
        let failed = of_file(program);
        let log = |log: &File| log.try_clone().map(Stdio::from);
        let output = match output {
            Some(path) => File::create(path).map_err(of_file(path))?.into(),
            None => log(&self.log).map_err(&failed)?,
        };
        let mut command = Command::new(program);
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(log(&self.log).map_err(&failed)?);
        if self.side.portable {
            command.env("ARBOR_BACKEND", "portable");
        }
        writeln!(self.log, "$ {line}").map_err(&failed)?;
        apart(&mut command);
        let mut child = command.spawn().map_err(&failed)?;
        self.commands.push(line);
        let status = child.wait().map_err(&failed)?;
        Ok(match status.code() {
            // Somebody asked that process alone to stop.
            Some(INTERRUPTED) => Some(Ended::Stopped),
            Some(0) => None,
            _ => Some(Ended::Failed(format!(
                "arbor {} ended with {status}{}{}",
                words[0].display(),
                self.last_error().unwrap_or_default(),
                match &self.side.start {
                    Some(start) => format!("; its database was a copy of {start}"),
                    None => String::new(),
                }
            ))),
        })
    }

    /// Returns the error that the last command wrote to the log, after a colon.
    fn last_error(&self) -> Option<String> {
        let mut log = File::open(&self.log_path).ok()?;
        let end = log.seek(SeekFrom::End(0)).ok()?;
        log.seek(SeekFrom::Start(end.saturating_sub(END_OF_LOG)))
            .ok()?;
        let mut text = Vec::new();
        log.read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        let error = text
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("error: "))?;
        Some(format!(": {error}"))
    }
}

/// Puts a process into a group of its own: Ctrl-C at a terminal goes to all processes of a group, and a run that is
/// under way is to come to its end. The process is told who started it, and ends with that one.
pub fn apart(command: &mut Command) {
    command.env(PARENT_VARIABLE, std::process::id().to_string());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// Bytes at the end of a log in which its last error is looked for.
const END_OF_LOG: u64 = 8 << 10;

/// A command as a shell takes it.
fn command_line(side: &Side, words: &[OsString]) -> String {
    let quoted = words.iter().map(|word| {
        let word = word.to_string_lossy();
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,:=+".contains(letter);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word.into_owned(),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    });
    let words: Vec<String> = quoted.collect();
    let environment = if side.portable {
        "ARBOR_BACKEND=portable "
    } else {
        ""
    };
    format!("{environment}arbor {}", words.join(" "))
}

/// Reads the report of a command.
fn read_envelope(path: &Path) -> Result<Envelope, CompareError> {
    let text = fs::read_to_string(path).map_err(of_file(path))?;
    Envelope::from_text(&text).map_err(|why| CompareError::Damaged {
        path: path.to_owned(),
        why,
    })
}

/// Returns the block and the tables of an inspection.
fn tables_of(inspection: &Value) -> Value {
    json!({ "block": inspection["block"], "tables": inspection["tables"] })
}

/// Returns blocks that part a chain into `parts` parts of equal length, ascending, without the chain's last block.
fn stages(first: u64, blocks: u64, parts: u64) -> Vec<u64> {
    let ends = (1..parts).map(|part| {
        let blocks = u128::from(blocks) * u128::from(part) / u128::from(parts);
        u64::try_from(blocks).unwrap_or(u64::MAX)
    });
    let mut ends: Vec<u64> = ends.filter(|blocks| *blocks > 0).collect();
    ends.dedup();
    ends.into_iter().map(|blocks| first + blocks - 1).collect()
}

/// `--memory` of a check of the whole database, which is not measured: half of the machine's, since with less it reads a
/// large state several times.
fn verify_memory() -> u64 {
    const LEAST: u64 = 2 << 30;
    let memory = Machine::detect().memory_bytes.unwrap_or_default();
    LEAST.max(memory / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_part_a_chain() {
        assert_eq!(stages(1, 200, 4), [50, 100, 150]);
        assert_eq!(stages(101, 10, 3), [103, 106]);
        assert_eq!(stages(1, 2, 8), [1]);
        for none in [stages(1, 200, 0), stages(1, 200, 1), stages(1, 1, 8)] {
            assert!(none.is_empty(), "{none:?}");
        }
    }

    #[test]
    fn command_lines_can_be_pasted() {
        let mut side = Side::parse("oak").expect("a side");
        let words = ["replay", "--db", "it's here", ""].map(OsString::from);
        assert_eq!(
            command_line(&side, &words),
            r"arbor replay --db 'it'\''s here' ''"
        );
        side.portable = true;
        let words = ["verify".into()];
        assert_eq!(
            command_line(&side, &words),
            "ARBOR_BACKEND=portable arbor verify"
        );
    }
}
