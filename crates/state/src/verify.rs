//! Checking a whole database: every node rebuilt from the flat state and compared, every retained version
//! rebuilt from its undo, every other record held against its neighbours.

use alloy_primitives::B256;
use arbor_state_tree::{Check, MetaCheck, VerifyProgress, VerifyReport};

use crate::{State, StateError, StateSnapshot, roots};

impl State {
    /// Checks the whole database, as [`StateSnapshot::verify`] does, without a look at the headers.
    pub fn verify(&mut self) -> Result<VerifyReport, StateError> {
        self.snapshot()?.verify(&|_| {}, &mut |_| Ok(()))
    }
}

impl StateSnapshot {
    /// Rebuilds every trie from the flat tables and compares every node, root and code with what is stored; rebuilds every
    /// retained version from its undo records and compares the root; and holds the records of versions against each other.
    ///
    /// What scans give is looked up by its key, too, as execution would: about one record of each 4 KiB, at one version always the same
    /// ones. So it is with the nodes of Verkle and AR16MT, and of those that only look-ups miss one in some 4 KiB is noticed; nodes of a Merkle-Patricia account
    /// trie, and of storage with very many slots, are each looked up.
    ///
    /// Uses the threads of the caller's rayon pool. Keys are shared by ranges: accounts by their first byte, and the slots of an
    /// account that has very many; history is a task beside them. Memory grows with the threads, and with what changed in the
    /// retained versions; under a Verkle tree there are its setting `leaf_bytes` besides, and under Verkle and AR16MT some 150 bytes for each
    /// account, whose Merkle-Patricia order is another.
    ///
    /// `progress` is called now and then, from any of the threads; `meta` for the record of every version, ascending.
    ///
    /// # Errors
    /// Only what stops the check: a store that cannot be read. Everything wrong in what was read is
    /// in the report.
    pub fn verify(
        &self,
        progress: &(dyn Fn(VerifyProgress) + Sync),
        meta: MetaCheck<'_>,
    ) -> Result<VerifyReport, StateError> {
        let head = self.reader();
        let tree = &**head.tree();
        let check = Check::new(head.view(), tree.kind().tables, progress);
        let (state, records) = rayon::join(
            || {
                let flat_root = tree.check(&check)?;
                check.codes()?;
                if roots::are_kept(tree.kind()) {
                    roots::check(&check)?;
                }
                Ok::<B256, StateError>(flat_root)
            },
            || {
                check.history(tree);
                self.versions
                    .verify_records(meta, &mut |fault| check.tell_fault(fault))
            },
        );
        Ok(VerifyReport {
            flat_root: state?,
            records: records?,
            ..check.into_report()
        })
    }
}
