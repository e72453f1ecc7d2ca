//! What the server counts, in Prometheus' text format.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::call::Method;

/// Counters of one method.
#[derive(Default)]
struct OfMethod {
    calls: AtomicU64,
    errors: AtomicU64,
    nanoseconds: AtomicU64,
}

/// Counters of a server.
pub(crate) struct Figures {
    /// One for each method, in the order of the table.
    methods: Vec<(&'static str, OfMethod)>,
    pub(crate) connections: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) busy: AtomicU64,
}

impl Figures {
    pub(crate) fn new<'m>(methods: impl Iterator<Item = &'m Method>) -> Self {
        Self {
            methods: methods
                .map(|method| (method.name, OfMethod::default()))
                .collect(),
            connections: AtomicU64::default(),
            refused: AtomicU64::default(),
            requests: AtomicU64::default(),
            busy: AtomicU64::default(),
        }
    }

    /// Counts an answered call of the method at this place in the table.
    pub(crate) fn answered(&self, method: usize, took: Duration, is_error: bool) {
        let Some((_, figures)) = self.methods.get(method) else {
            return;
        };
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        figures.calls.fetch_add(1, Ordering::Relaxed);
        figures
            .errors
            .fetch_add(u64::from(is_error), Ordering::Relaxed);
        figures
            .nanoseconds
            .fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// All figures, with the bytes that large requests and answers take. Methods that nobody called
    /// are left out.
    pub(crate) fn text(&self, large: usize) -> String {
        let mut text = String::new();
        let get = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let large = AtomicU64::new(large as u64);
        for (name, kind, help, value) in [
            (
                "connections",
                "gauge",
                "Open connections.",
                &self.connections,
            ),
            (
                "large_bytes",
                "gauge",
                "Bytes taken by requests and answers above 32 KiB.",
                &large,
            ),
            (
                "refused_connections_total",
                "counter",
                "Connections refused at the limit.",
                &self.refused,
            ),
            (
                "requests_total",
                "counter",
                "Requests read.",
                &self.requests,
            ),
            (
                "busy_total",
                "counter",
                "Requests refused because memory or threads were taken.",
                &self.busy,
            ),
        ] {
            let value = get(value);
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "# HELP arbor_serve_{name} {help}\n# TYPE arbor_serve_{name} {kind}\narbor_serve_{name} {value}\n"
            );
        }
        let called: Vec<_> = (self.methods.iter())
            .filter(|(_, figures)| get(&figures.calls) > 0)
            .collect();
        type Column = (&'static str, &'static str, fn(&OfMethod) -> f64);
        let columns: [Column; 3] = [
            ("calls_total", "Calls answered.", |figures| {
                figures.calls.load(Ordering::Relaxed) as f64
            }),
            ("errors_total", "Calls answered with an error.", |figures| {
                figures.errors.load(Ordering::Relaxed) as f64
            }),
            (
                "seconds_total",
                "Seconds from reading calls to their answers.",
                |figures| {
                    Duration::from_nanos(figures.nanoseconds.load(Ordering::Relaxed)).as_secs_f64()
                },
            ),
        ];
        for (name, help, value) in columns {
            if called.is_empty() {
                break;
            }
            let _ = write!(
                text,
                "# HELP arbor_serve_{name} {help}\n# TYPE arbor_serve_{name} counter\n"
            );
            for (method, figures) in &called {
                let value = value(figures);
                let _ = writeln!(text, "arbor_serve_{name}{{method=\"{method}\"}} {value}");
            }
        }
        text
    }
}
