//! Chains and what belongs to them: blocks in two forms, geneses, witnesses, settings of generated ones; and the reports of commands.

use std::ops::ControlFlow;

use arbor_chain::genesis::Genesis;
use arbor_chain::source::era1::Era1File;
use arbor_chain::source::open_sources;
use arbor_chain::witness::{MptWitness, read_witnesses};
use arbor_generator::{GeneratorSettings, Mix};
use arbor_metrics::Envelope;

use super::files::with_file;

/// An era1 file, its blocks and receipts.
pub(super) fn era1(bytes: &[u8]) {
    with_file("a.era1", bytes, |path| {
        let Ok(mut file) = Era1File::open(path) else {
            return;
        };
        let _ = file.ends();
        while let Ok(Some(block)) = file.next_raw() {
            if let Ok(block) = block.decode()
                && let Some(receipts) = &block.receipts
            {
                let _ = receipts.decode();
            }
        }
    });
}

/// An export, plain or gzipped: a sequence of RLP blocks.
pub(super) fn export(bytes: &[u8]) {
    with_file("chain.rlp", bytes, |path| {
        let Ok(mut input) = open_sources(&[path.to_owned()]) else {
            return;
        };
        while let Ok(Some(block)) = input.next_raw() {
            let _ = block.decode();
        }
    });
}

/// A genesis in geth's JSON form.
pub(super) fn genesis(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Genesis::from_json(text);
    }
}

/// A block with its witness; or witnesses of blocks of a Verkle tree, as far as they are read.
pub(super) fn witness(bytes: &[u8]) {
    with_file("w.json", bytes, |path| {
        if let Ok(witness) = MptWitness::from_file(path) {
            let _ = witness.decode();
            let _ = witness.reach();
            let _ = witness.spec();
        }
        let mut count = 0;
        let read = read_witnesses(path, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        assert!(count > 0 || read.is_err(), "a file of nothing");
    });
}

/// Settings of a generated chain, and the mix of its transactions.
pub(super) fn settings(bytes: &[u8]) {
    if let Ok(settings) = serde_json::from_slice::<GeneratorSettings>(bytes) {
        let _ = settings.validate();
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(mix) = text.parse::<Mix>()
    {
        assert_eq!(
            mix.to_string().parse(),
            Ok(mix),
            "a mix is not read as it is written"
        );
    }
}

/// A report of a command.
pub(super) fn report(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Envelope::from_text(text);
    }
}
