//! Text to code.

use std::collections::HashMap;

use revm::bytecode::opcode::{self, OpCode};

use crate::{Immediate, Interface, Opcode};

/// Operands of an operation under v7, where they are packed into a word, the first most significant.
const PACKED: &[Immediate] = Interface::Immediate.opcodes()[0].immediates;

/// Where text is wrong, and how.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct AssemblyError {
    /// Line, from 1.
    pub line: usize,
    /// Character within the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub fault: Fault,
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
}

/// A word of text and where it begins.
#[derive(Clone, Copy, Debug)]
struct Token<'t> {
    text: &'t str,
    line: usize,
    column: usize,
}

impl Token<'_> {
    fn fault(&self, fault: Fault) -> AssemblyError {
        AssemblyError {
            line: self.line,
            column: self.column,
            fault,
        }
    }
}

/// Code from text, its operations in the form of an interface.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn assemble(interface: Interface, text: &str) -> Result<Vec<u8>, AssemblyError> {
    let mut assembler = Assembler {
        interface,
        ..Assembler::default()
    };
    for (index, line) in text.lines().enumerate() {
        let tokens = tokens(line, index + 1);
        match tokens.as_slice() {
            [name, equals, value] if equals.text == "=" => assembler.define(*name, *value)?,
            tokens => assembler.instructions(tokens)?,
        }
    }
    assembler.finish()
}

fn tokens(line: &str, number: usize) -> Vec<Token<'_>> {
    let code = line.split(';').next().unwrap_or_default();
    let mut tokens = Vec::new();
    let mut start = None;
    for (at, character) in code.char_indices().chain([(code.len(), ' ')]) {
        match (start, character.is_whitespace()) {
            (None, false) => start = Some(at),
            (Some(begin), true) => {
                tokens.push(Token {
                    text: &code[begin..at],
                    line: number,
                    column: code[..begin].chars().count() + 1,
                });
                start = None;
            }
            _ => {}
        }
    }
    tokens
}

#[derive(Default)]
struct Assembler<'t> {
    interface: Interface,
    code: Vec<u8>,
    constants: HashMap<&'t str, Vec<u8>>,
    labels: HashMap<&'t str, usize>,
    /// Where two bytes wait for a label.
    references: Vec<(usize, &'t str, Token<'t>)>,
}

impl<'t> Assembler<'t> {
    fn define(&mut self, name: Token<'t>, value: Token<'t>) -> Result<(), AssemblyError> {
        check_name(name.text, name)?;
        let number = self.number(value)?;
        match self.constants.insert(name.text, number) {
            None => Ok(()),
            Some(_) => Err(name.fault(Fault::Twice(name.text.to_owned()))),
        }
    }

    fn instructions(&mut self, mut tokens: &[Token<'t>]) -> Result<(), AssemblyError> {
        while let [first, rest @ ..] = tokens {
            let taken = self.instruction(*first, rest)?;
            tokens = &rest[taken..];
        }
        Ok(())
    }

    /// Assembles an instruction and says how many tokens behind its first belong to it.
    fn instruction(
        &mut self,
        first: Token<'t>,
        rest: &[Token<'t>],
    ) -> Result<usize, AssemblyError> {
        if let Some(name) = first.text.strip_suffix(':') {
            check_name(name, first)?;
            if self.labels.insert(name, self.code.len()).is_some() {
                return Err(first.fault(Fault::Twice(name.to_owned())));
            }
            self.code.push(opcode::JUMPDEST);
            return Ok(0);
        }
        if let Some(name) = first.text.strip_prefix('@') {
            self.code.push(opcode::PUSH2);
            self.references.push((self.code.len(), name, first));
            self.code.extend_from_slice(&[0, 0]);
            return Ok(0);
        }
        let mnemonic = first.text.to_ascii_uppercase();
        let missing = |what: &str| first.fault(Fault::Missing(mnemonic.clone(), what.to_owned()));
        let named = |opcode: &&Opcode| opcode.mnemonic == mnemonic;
        if let Some(opcode) = self.interface.opcodes().iter().find(named) {
            return self.extension(first, opcode, rest);
        }
        match mnemonic.as_str() {
            "PUSH" => {
                let numbers = rest.iter().take_while(|token| self.is_number(token));
                let numbers: Vec<Token<'t>> = numbers.copied().collect();
                if numbers.is_empty() {
                    return Err(missing("a number"));
                }
                for token in &numbers {
                    let number = self.number_of(*token, 32)?;
                    self.push(&number);
                }
                Ok(numbers.len())
            }
            "DATA" => {
                let token = rest
                    .first()
                    .ok_or_else(|| missing("bytes: 0x and hex digits"))?;
                let bytes = hexadecimal(token.text)
                    .ok_or_else(|| token.fault(Fault::NoNumber(token.text.to_owned())))?;
                self.code.extend_from_slice(&bytes);
                Ok(1)
            }
            _ => self.plain(first, &mnemonic, rest),
        }
    }

    fn plain(
        &mut self,
        first: Token<'t>,
        mnemonic: &str,
        rest: &[Token<'t>],
    ) -> Result<usize, AssemblyError> {
        let opcode = (0..=u8::MAX)
            .filter_map(OpCode::new)
            .find(|opcode| opcode.as_str() == mnemonic)
            .ok_or_else(|| first.fault(Fault::NoInstruction(first.text.to_owned())))?;
        self.code.push(opcode.get());
        let length = usize::from(opcode.info().immediate_size());
        if length == 0 {
            return Ok(0);
        }
        let missing = || first.fault(Fault::Missing(mnemonic.to_owned(), "a number".to_owned()));
        let token = *rest.first().ok_or_else(missing)?;
        let number = self.number_of(token, length)?;
        self.code
            .extend(std::iter::repeat_n(0, length - number.len()));
        self.code.extend_from_slice(&number);
        Ok(1)
    }

    /// An opcode of the interface: its operands become immediate data, or under v7 a push before it.
    fn extension(
        &mut self,
        first: Token<'t>,
        opcode: &Opcode,
        rest: &[Token<'t>],
    ) -> Result<usize, AssemblyError> {
        let operands = match self.interface {
            Interface::V7 => PACKED,
            _ => opcode.immediates,
        };
        if rest.len() < operands.len() {
            let names: Vec<&str> = operands.iter().map(|operand| operand.name).collect();
            let what = format!("{} numbers: {}", names.len(), names.join(", "));
            return Err(first.fault(Fault::Missing(opcode.mnemonic.to_owned(), what)));
        }
        let mut digits = Vec::new();
        for (operand, token) in operands.iter().zip(rest) {
            let number = self.number_of(*token, operand.bytes)?;
            let zeros = std::iter::repeat_n(0, operand.bytes - number.len());
            digits.push(zeros.chain(number).collect::<Vec<u8>>());
        }
        if self.interface == Interface::V7 {
            self.push(&without_zeros(&digits.concat()));
            self.code.push(opcode.byte);
        } else {
            self.code.push(opcode.byte);
            self.code
                .extend(digits.iter().flat_map(|digits| digits.iter().rev()));
        }
        Ok(operands.len())
    }

    fn push(&mut self, digits: &[u8]) {
        self.code.push(opcode::PUSH0 + digits.len() as u8);
        self.code.extend_from_slice(digits);
    }

    fn is_number(&self, token: &Token<'_>) -> bool {
        self.constants.contains_key(token.text)
            || token.text.starts_with(|first: char| first.is_ascii_digit())
    }

    /// A number of at most so many bytes, without leading zeros.
    fn number_of(&self, token: Token<'_>, bytes: usize) -> Result<Vec<u8>, AssemblyError> {
        let number = self.number(token)?;
        if number.len() > bytes {
            return Err(token.fault(Fault::TooLarge(token.text.to_owned(), bytes)));
        }
        Ok(number)
    }

    fn number(&self, token: Token<'_>) -> Result<Vec<u8>, AssemblyError> {
        let known = self.constants.get(token.text).cloned();
        known
            .or_else(|| {
                let bytes = hexadecimal(token.text)?;
                Some(without_zeros(&bytes))
            })
            .or_else(|| {
                let digits = token.text.bytes().all(|digit| digit.is_ascii_digit());
                let number: u128 = token.text.parse().ok().filter(|_| digits)?;
                Some(without_zeros(&number.to_be_bytes()))
            })
            .ok_or_else(|| token.fault(Fault::NoNumber(token.text.to_owned())))
    }

    fn finish(mut self) -> Result<Vec<u8>, AssemblyError> {
        for (at, name, token) in self.references {
            let position = self.labels.get(name);
            let position = position.ok_or_else(|| token.fault(Fault::NoLabel(name.to_owned())))?;
            let position = u16::try_from(*position)
                .map_err(|_| token.fault(Fault::FarLabel(name.to_owned())))?;
            self.code[at..at + 2].copy_from_slice(&position.to_be_bytes());
        }
        Ok(self.code)
    }
}

fn check_name(name: &str, token: Token<'_>) -> Result<(), AssemblyError> {
    let first = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if first
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    {
        Ok(())
    } else {
        Err(token.fault(Fault::NoName(name.to_owned())))
    }
}

fn without_zeros(bytes: &[u8]) -> Vec<u8> {
    let digits = bytes.iter().skip_while(|&&byte| byte == 0);
    digits.copied().collect()
}

/// The bytes of `0x` and hex digits; of an odd number of digits the first has a byte of its own.
fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x")?.as_bytes();
    let (head, pairs) = digits.split_at(digits.len() % 2);
    let value = |digit: &u8| char::from(*digit).to_digit(16).map(|value| value as u8);
    let head = head.first().map(value);
    let pairs = pairs
        .chunks_exact(2)
        .map(|pair| Some(value(&pair[0])? << 4 | value(&pair[1])?));
    head.into_iter().chain(pairs).collect()
}
