//! What happens to a database when the process is killed, the disk is full or fails, or bits flip.

mod backup;
mod chain;
mod convert;
mod disk;
mod flips;
mod kills;
mod load;
mod moves;
mod old_nodes;
#[cfg(target_os = "linux")]
mod power;
#[cfg(target_os = "linux")]
mod recorded;
mod recovery;
mod temporary;
#[cfg(target_os = "linux")]
mod unsynced;
