//! The forks, in the order in which they build on each other.

use revm::primitives::hardfork::SpecId;

/// A change of rules. Ordered: a later one includes the earlier ones (but the `Bpo` forks change blob parameters only).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the facts")]
pub enum Fork {
    Frontier,
    Homestead,
    TangerineWhistle,
    SpuriousDragon,
    Byzantium,
    Constantinople,
    Petersburg,
    Istanbul,
    MuirGlacier,
    Berlin,
    London,
    ArrowGlacier,
    GrayGlacier,
    Paris,
    Shanghai,
    Cancun,
    Prague,
    Osaka,
    Bpo1,
    Bpo2,
    Bpo3,
    Bpo4,
    Bpo5,
    Amsterdam,
}

impl Fork {
    /// The rules that revm runs for it. Constantinople is run as Petersburg, the executor adds EIP-1283.
    pub const fn spec_id(self) -> SpecId {
        match self {
            Self::Frontier => SpecId::FRONTIER,
            Self::Homestead => SpecId::HOMESTEAD,
            Self::TangerineWhistle => SpecId::TANGERINE,
            Self::SpuriousDragon => SpecId::SPURIOUS_DRAGON,
            Self::Byzantium => SpecId::BYZANTIUM,
            Self::Constantinople | Self::Petersburg => SpecId::PETERSBURG,
            Self::Istanbul | Self::MuirGlacier => SpecId::ISTANBUL,
            Self::Berlin => SpecId::BERLIN,
            Self::London | Self::ArrowGlacier | Self::GrayGlacier => SpecId::LONDON,
            Self::Paris => SpecId::MERGE,
            Self::Shanghai => SpecId::SHANGHAI,
            Self::Cancun => SpecId::CANCUN,
            Self::Prague => SpecId::PRAGUE,
            Self::Osaka | Self::Bpo1 | Self::Bpo2 | Self::Bpo3 | Self::Bpo4 | Self::Bpo5 => {
                SpecId::OSAKA
            }
            Self::Amsterdam => SpecId::AMSTERDAM,
        }
    }

    /// Whether it changes only blob parameters (EIP-7892).
    pub const fn is_blob_parameters_only(self) -> bool {
        matches!(
            self,
            Self::Bpo1 | Self::Bpo2 | Self::Bpo3 | Self::Bpo4 | Self::Bpo5
        )
    }
}

/// When a fork starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// At a block number.
    Block(u64),
    /// With the first proof-of-stake block.
    Merge,
    /// At the first proof-of-stake block with this timestamp (seconds) or a later one.
    Time(u64),
}

impl std::fmt::Display for Activation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Block(number) => write!(f, "block {number}"),
            Self::Merge => write!(f, "the merge"),
            Self::Time(time) => write!(f, "time {time}"),
        }
    }
}
