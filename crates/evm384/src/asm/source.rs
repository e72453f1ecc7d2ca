//! Text in files: tokens with their places, and what can be wrong with them.

use std::fmt;
use std::sync::Arc;

/// Where something stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Name of the file, empty for text that is in none.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: usize,
    /// Character within the line, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}, ", self.file)?;
        }
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Where text is wrong, and how.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct AssemblyError {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub fault: Fault,
    /// Where the macros stand whose expansion that was, innermost first.
    pub expansions: Vec<(String, Place)>,
}

impl fmt::Display for AssemblyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The file that all begins with is named nowhere.
        if self.place.line > 0 {
            write!(f, "{}: ", self.place)?;
        }
        write!(f, "{}", self.fault)?;
        for (name, place) in &self.expansions {
            write!(f, "; in macro '{name}', used in {place}")?;
        }
        Ok(())
    }
}

/// What can be wrong with text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Neither an instruction nor anything else known.
    #[error("'{0}' is no instruction")]
    NoInstruction(String),
    /// Something must follow.
    #[error("{0} takes {1}")]
    Missing(String, String),
    /// Neither digits nor the name of a constant.
    #[error("'{0}' is neither a number nor a constant defined above")]
    NoNumber(String),
    /// More bits than there is room for.
    #[error("{0} does not fit into {1} bytes")]
    TooLarge(String, usize),
    /// A difference below zero.
    #[error("{0} is negative")]
    Negative(String),
    /// A constant that could not be told from an instruction.
    #[error("'{0}' is an instruction")]
    Instruction(String),
    /// Slots that lie where others do.
    #[error("'{0}' overlaps '{1}'")]
    Overlap(String, String),
    /// A name with two meanings.
    #[error("'{0}' is defined twice")]
    Twice(String),
    /// A label that nobody placed.
    #[error("there is no label '{0}'")]
    NoLabel(String),
    /// Not a name: letters, digits and `_`, no digit first.
    #[error("'{0}' is no name")]
    NoName(String),
    /// A label beyond what a PUSH2 reaches.
    #[error("label '{0}' lies beyond 65535")]
    FarLabel(String),
    /// A macro without its end, or an end without one.
    #[error("'{0}' has no counterpart")]
    Unpaired(String),
    /// A file that includes itself, by this way.
    #[error("files include each other: {0}")]
    Cycle(String),
    /// A file that cannot be read.
    #[error("'{0}' cannot be read: {1}")]
    Unreadable(String, String),
    /// Macros or files within each other deeper than is useful.
    #[error("nested deeper than {0}")]
    TooDeep(usize),
    /// Files included more often than is useful.
    #[error("files are included more than {0} times")]
    TooManyFiles(usize),
    /// More code than any contract has.
    #[error("more than {0} bytes of code")]
    TooLong(usize),
}

/// A word of text.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) place: Place,
    /// The expansion that it is written in; 0 where it is in none.
    pub(super) scope: usize,
}

/// The words of a line, without comments.
pub(super) fn tokens(file: &Arc<str>, line: &str, number: usize) -> Vec<Token> {
    let code = line.split(';').next().unwrap_or_default();
    let mut tokens = Vec::new();
    let mut start = None;
    // Counted along the way: counting from the beginning for each word takes quadratic time.
    let characters = code.char_indices().chain([(code.len(), ' ')]);
    for (column, (at, character)) in (1..).zip(characters) {
        match (start, character.is_whitespace()) {
            (None, false) => start = Some((at, column)),
            (Some((begin, column)), true) => {
                tokens.push(Token {
                    text: code[begin..at].to_owned(),
                    place: Place {
                        file: Arc::clone(file),
                        line: number,
                        column,
                    },
                    scope: 0,
                });
                start = None;
            }
            _ => {}
        }
    }
    tokens
}
