//! `arbor man`: the man pages.

use std::fs;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::args::{Arbor, Man};
use crate::output;

pub(crate) fn run(args: &Man) -> Result<()> {
    let out = args.out.as_path();
    fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    // The lines below the version would break the page's title.
    let arbor = Arbor::command().version(env!("CARGO_PKG_VERSION"));
    clap_mangen::generate_to(arbor, out)
        .with_context(|| format!("writing to {}", out.display()))?;
    let pages = fs::read_dir(out).with_context(|| format!("listing {}", out.display()))?;
    let is_page = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(".1");
    let pages = pages.flatten().filter(|page| is_page(&page.file_name()));
    output::line(&format!(
        "{} has {} man pages; `man -l {}` shows the first",
        out.display(),
        pages.count(),
        out.join("arbor.1").display()
    ))
}
