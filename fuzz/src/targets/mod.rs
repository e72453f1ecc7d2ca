//! One function for each decoder: takes any bytes, and must return. Fuzzing calls them, and an ordinary test of the
//! command line runs them over seeds and over whatever fuzzing has ever found.

mod ar16mt;
mod chain;
mod commitments;
mod convert;
mod database;
mod eip7864;
mod eip8297;
mod entries;
mod files;
mod mpt;
mod proof_forms;
mod senders;
mod verkle;

pub(crate) use ar16mt::ar16mt_seeds;
pub(crate) use commitments::commitment_seeds;
pub(crate) use convert::convert_seeds;
pub(crate) use database::record_seeds;
pub(crate) use eip7864::eip7864_seeds;
pub(crate) use eip8297::eip8297_seeds;
pub(crate) use mpt::mpt_seeds;
pub(crate) use proof_forms::proof_form_seeds;
pub(crate) use senders::sender_seeds;
pub(crate) use verkle::verkle_seeds;

/// A decoder under its name.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// All of them.
pub(crate) const TARGETS: &[Target] = &[
    ("era1", chain::era1),
    ("export", chain::export),
    ("genesis", chain::genesis),
    ("node_record", mpt::node_record),
    ("rlp_nodes", mpt::rlp_nodes),
    ("mpt_compact", mpt::mpt_compact),
    ("proof", mpt::proof),
    ("witness", chain::witness),
    ("undo", database::undo),
    ("old_nodes", database::old_nodes),
    ("stored", database::stored),
    ("head_file", database::head_file),
    ("report", chain::report),
    ("settings", chain::settings),
    ("point", commitments::point),
    ("scalar", commitments::scalar),
    ("multiproof", commitments::multiproof),
    ("verkle_record", verkle::verkle_record),
    ("verkle_witness", verkle::verkle_witness),
    ("verkle_compact", verkle::verkle_compact),
    ("ar16mt_record", ar16mt::ar16mt_record),
    ("ar16mt_multiproof", ar16mt::ar16mt_multiproof),
    ("ar16mt_proof", ar16mt::ar16mt_proof),
    ("ar16mt_accounts", ar16mt::ar16mt_accounts),
    ("ar16mt_range", ar16mt::ar16mt_range),
    ("ar16mt_logs", ar16mt::ar16mt_logs),
    ("eip7864_record", eip7864::eip7864_record),
    ("eip7864_multiproof", eip7864::eip7864_multiproof),
    ("eip8297_record", eip8297::eip8297_record),
    ("eip8297_multiproof", eip8297::eip8297_multiproof),
    ("eip8297_witness", eip8297::eip8297_witness),
    ("proof_forms", proof_forms::proof_forms),
    ("entries", entries::entries),
    ("senders", senders::senders),
    ("dump", convert::dump),
    ("preimages", convert::preimages),
    ("frames", convert::frames),
];
