//! The envelope around the result of every command.

use crate::{machine::Machine, process::ProcessUsage, timestamp::rfc3339};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::{Duration, Instant, SystemTime};

/// Name and version of the envelope's format, in its field `schema`.
///
/// Fields may be added under the same name; one that changes its meaning or goes away makes it `/2`.
pub const SCHEMA: &str = "arboretum/1";

/// A result with all that is needed to judge and repeat it; the JSON of `--report FILE`.
///
/// The format is described field by field in `docs/design/report-format.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// Always [`SCHEMA`] in what this version writes.
    pub schema: String,
    /// The subcommand, for example `replay`.
    pub command: String,
    /// What was run.
    pub versions: Versions,
    /// Where it was run.
    pub machine: Machine,
    /// Options in force, defaults included, by long flag, `_` for `-`; sizes in bytes, their names ending in `_bytes`.
    pub settings: Map<String, Value>,
    /// What the command found; its shape is the command's own.
    pub results: Value,
    /// When the command began: RFC 3339, UTC.
    pub started: String,
    /// Seconds from begin to end by the monotonic clock.
    pub wall_seconds: f64,
    /// Resources the process used from begin to end; `peak_rss_bytes` is the largest of its life.
    pub process: ProcessUsage,
}

/// Versions of the program and of the compiler that made it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Versions {
    /// Package version of `arbor`.
    pub arbor: String,
    /// Commit it was built from, with `-dirty` appended if the tree had changes; `None` outside a git checkout.
    pub commit: Option<String>,
    /// The compiler, as `rustc --version` prints it; `None` if the build did not record it.
    pub rustc: Option<String>,
}

/// A command under way: started before its work, finished into an [`Envelope`] after it.
///
/// ```
/// use arbor_metrics::{Measurement, Versions};
///
/// let versions = Versions { arbor: "0.1.0".into(), ..Versions::default() };
/// let mut run = Measurement::start("replay", versions);
/// run.setting("threads", 2);
/// let envelope = run.finish(serde_json::json!({ "blocks": 12 }));
/// assert_eq!(envelope.results["blocks"], 12);
/// assert_eq!(envelope.settings["threads"], 2);
/// ```
#[derive(Debug)]
pub struct Measurement {
    command: String,
    versions: Versions,
    settings: Map<String, Value>,
    started: SystemTime,
    clock: Instant,
    usage: ProcessUsage,
}

impl Measurement {
    /// Starts the clock of a command.
    pub fn start(command: impl Into<String>, versions: Versions) -> Self {
        Self {
            command: command.into(),
            versions,
            settings: Map::new(),
            started: SystemTime::now(),
            clock: Instant::now(),
            usage: ProcessUsage::now(),
        }
    }

    /// Records an option in force; a second value under one name replaces the first.
    pub fn setting(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.settings.insert(name.into(), value.into());
    }

    /// Returns the time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Stops the clock and reads the process's counters.
    ///
    /// Call it after the database is closed, so that the last flush is in the figures.
    pub fn finish(self, results: Value) -> Envelope {
        Envelope {
            schema: SCHEMA.to_owned(),
            command: self.command,
            versions: self.versions,
            machine: Machine::detect(),
            settings: self.settings,
            results,
            started: rfc3339(self.started),
            wall_seconds: self.clock.elapsed().as_secs_f64(),
            process: ProcessUsage::now().since(&self.usage),
        }
    }
}

impl Envelope {
    /// Returns the envelope as indented JSON with a closing newline, as
    /// [`from_text`](Self::from_text) reads it.
    ///
    /// # Errors
    /// None that is known: what a command found is JSON already.
    pub fn to_text(&self) -> serde_json::Result<String> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// Reads an envelope from its text.
    ///
    /// # Errors
    /// The reason why the text is no envelope of this schema.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let invalid = |error: serde_json::Error| error.to_string();
        let value: Value = serde_json::from_str(text).map_err(invalid)?;
        match value.get("schema").and_then(Value::as_str) {
            Some(SCHEMA) => serde_json::from_value(value).map_err(invalid),
            Some(other) => Err(format!("schema {other}, expected {SCHEMA}")),
            None => Err(format!("no schema, expected {SCHEMA}")),
        }
    }
}
