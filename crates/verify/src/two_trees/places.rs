//! Which of two trees has the names of a proof.

/// Which of two trees has the names of a proof.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TwoPlaces {
    /// The tree that the state comes from.
    pub source: String,
    /// The tree that it goes to; `None` before the first block of the move.
    pub target: Option<String>,
    /// The places, in the order of the accounts that the proof shows.
    pub accounts: Vec<PlacesOfAccount>,
}

/// Which tree has an account, and which its slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacesOfAccount {
    /// Which has the account itself.
    pub account: Place,
    /// Which has each slot, in the order of the slots.
    pub slots: Vec<Place>,
}

/// Which tree has what a name is now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The source: the name was not moved yet, nor written since the move began.
    Source,
    /// The target: it was moved or written.
    Target,
    /// Neither: the log says that it is gone, or no tree has it.
    Neither,
}

impl TwoPlaces {
    /// Returns the name of the tree at a place; `None` for neither.
    pub fn tree(&self, place: Place) -> Option<&str> {
        match place {
            Place::Source => Some(&self.source),
            Place::Target => self.target.as_deref(),
            Place::Neither => None,
        }
    }
}
