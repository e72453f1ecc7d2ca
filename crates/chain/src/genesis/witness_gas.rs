//! Which text of EIP-4762 a chain charges gas by.

use arbor_verify::verkle::HeaderLayout;

/// A text of EIP-4762: execution pays for what it adds to its block's witness of a Verkle tree, in place of what access and storage
/// cost else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WitnessGas {
    /// The text since accounts have a leaf of basic data and one of the code hash.
    Eip4762,
    /// As the testnets kaustinen-4 to kaustinen-6 charged it: accounts have five leaves, filling an absent leaf costs nothing more than
    /// changing one, and `EXTCODEHASH` touches nothing.
    Kaustinen6,
}

impl WitnessGas {
    /// All texts.
    pub const ALL: [Self; 2] = [Self::Eip4762, Self::Kaustinen6];

    /// The name on the command line, in reports and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eip4762 => "eip4762",
            Self::Kaustinen6 => "kaustinen-6",
        }
    }

    /// Returns the text with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|text| text.name() == name)
    }

    /// How it takes accounts' fields to lie.
    pub const fn layout(self) -> HeaderLayout {
        match self {
            Self::Eip4762 => HeaderLayout::BasicData,
            Self::Kaustinen6 => HeaderLayout::FiveLeaves,
        }
    }
}
