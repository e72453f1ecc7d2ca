//! Checking a whole database: every node rebuilt from the flat state and compared, every retained version
//! rebuilt from its undo records, every other record compared with its neighbours. Machines can share the work by ranges of keys.

use alloy_primitives::B256;
use arbor_state_tree::{
    Check, CheckedPart, MetaCheck, PartOf, Rewind, VerifyProgress, VerifyReport,
};

use crate::{State, StateError, StateSnapshot, VerifiedPart, VerifiedParts, roots};

impl State {
    /// Checks the whole database, as [`StateSnapshot::verify`] does, without a look at the headers.
    ///
    /// # Errors
    /// Those of [`snapshot`](Self::snapshot) and of [`StateSnapshot::verify`]: what stops the check.
    pub fn verify(&mut self) -> Result<VerifyReport, StateError> {
        self.snapshot()?.verify(&|_| {}, &mut |_| Ok(()))
    }
}

impl StateSnapshot {
    /// Rebuilds every trie from the flat tables and compares every node, root and code with what is stored; rebuilds every
    /// retained version from its undo records and compares the root; and compares the records of versions with each other.
    ///
    /// About one record of each 4 KiB that a scan gives is looked up by its key, too, as execution would look it up; at one
    /// version always the same ones. The same is true of the nodes of Verkle and AR16MT, so that of nodes that only look-ups
    /// miss, one in about 4 KiB is noticed. Nodes of a Merkle-Patricia account trie, and of storage with very many slots, are
    /// each looked up.
    ///
    /// Uses the threads of the caller's rayon pool. The ranges of keys are their first bytes, and the slots of an
    /// account that has very many; history is a task beside them. Memory grows with the threads, and with what changed in the
    /// retained versions. Under all trees but Merkle-Patricia there are besides the tree's setting `leaf_bytes` of leaves, and
    /// [`sort_bytes`](arbor_state_tree::StateTree::sort_bytes) of accounts, which are in another order than those of the Merkle-Patricia
    /// trie.
    ///
    /// `progress` is called from time to time, from any of the threads; `meta` for the record of every version, ascending.
    ///
    /// # Errors
    /// Only what stops the check: a store that cannot be read. Everything wrong in what was read is
    /// in the report.
    pub fn verify(
        &self,
        progress: &(dyn Fn(VerifyProgress) + Sync),
        meta: MetaCheck<'_>,
    ) -> Result<VerifyReport, StateError> {
        let part = PartOf::whole();
        let check = self.check(part, progress);
        self.join(check, meta, |check| Ok(vec![self.check_part(check, part)?]))
    }

    /// Checks the part of the database whose keys begin with some bytes: records, codes, and the nodes below. The history of
    /// versions is left to the [join](Self::verify_join).
    ///
    /// # Errors
    /// Those of [`verify`](Self::verify).
    pub fn verify_part(
        &self,
        part: PartOf,
        progress: &(dyn Fn(VerifyProgress) + Sync),
    ) -> Result<VerifiedPart, StateError> {
        let check = self.check(part, progress);
        let tree = self.check_part(&check, part)?;
        let report = check.into_report();
        Ok(VerifiedPart {
            accounts: report.accounts,
            slots: report.slots,
            codes: report.codes,
            nodes: report.nodes,
            fault_count: report.fault_count,
            faults: report.faults,
            tree,
            ..self.part_of(part)?
        })
    }

    /// Checks what all parts together must give: the nodes above them, the root, that there are no other nodes, and the
    /// Merkle-Patricia root; and the history of versions. The report is that of [`verify`](Self::verify).
    ///
    /// # Errors
    /// Those of [`verify`](Self::verify).
    pub fn verify_join(
        &self,
        parts: VerifiedParts,
        progress: &(dyn Fn(VerifyProgress) + Sync),
        meta: MetaCheck<'_>,
    ) -> Result<VerifyReport, StateError> {
        let check = self.check(PartOf::whole(), progress);
        for part in &parts.0 {
            check.add(&part.report(), part.part.first_bytes().len());
        }
        let parts = parts.0.into_iter().map(|part| part.tree).collect();
        self.join(check, meta, |_| Ok(parts))
    }

    /// How history is checked that is more than fits into memory, if there is a way.
    pub(crate) fn rewind(&self) -> Option<&dyn Rewind> {
        let rewinds = self.rewinds.as_deref()?;
        Some(rewinds)
    }

    fn check<'a>(
        &'a self,
        part: PartOf,
        progress: &'a (dyn Fn(VerifyProgress) + Sync),
    ) -> Check<'a> {
        let head = self.reader();
        let tables = head.tree().kind().tables;
        let check = Check::new(head.view(), tables, part.first_bytes().len(), progress);
        check.with_rewind(self.rewind())
    }

    fn check_part(&self, check: &Check<'_>, part: PartOf) -> Result<CheckedPart, StateError> {
        let firsts = part.first_bytes();
        let found = self.tree.check_part(check, &firsts)?;
        check.codes(&firsts)?;
        Ok(found)
    }

    /// Checks all parts together, and history beside them.
    fn join(
        &self,
        check: Check<'_>,
        meta: MetaCheck<'_>,
        parts: impl FnOnce(&Check<'_>) -> Result<Vec<CheckedPart>, StateError> + Send,
    ) -> Result<VerifyReport, StateError> {
        let tree = &*self.tree;
        let (state, records) = rayon::join(
            || {
                let flat_root = tree.check_join(&check, parts(&check)?)?;
                if roots::are_kept(tree.kind()) {
                    roots::check(&check, tree.moves().is_some())?;
                }
                Ok::<B256, StateError>(flat_root)
            },
            || {
                check.history(tree)?;
                let records = self
                    .versions
                    .verify_records(meta, &mut |fault| check.tell_fault(fault));
                Ok::<_, StateError>(records?)
            },
        );
        Ok(VerifyReport {
            flat_root: state?,
            records: records?,
            ..check.into_report()
        })
    }
}
