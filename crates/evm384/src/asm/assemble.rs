//! Text to code.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use revm::bytecode::opcode::{self, OpCode};
use revm::primitives::U256;

use super::source::{AssemblyError, Fault, Place, Token, tokens};
use crate::{Immediate, Interface, OPERAND_BYTES, Opcode};

/// Operands of an operation under v7, where they are packed into a word, the first most significant.
const PACKED: &[Immediate] = Interface::Immediate.opcodes()[0].immediates;

/// Files within files, and macros within macros.
const MAX_DEPTH: usize = 32;
/// Bytes of code, and words that macros become.
const MAX_CODE: usize = 1 << 18;
/// How many times files may be included, all in all.
const MAX_FILES: usize = 1 << 10;
/// How many bytes of arguments macros may put in, all in all.
const MAX_ARGUMENTS: usize = 1 << 24;

/// Code with what its text says about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assembly {
    /// The code.
    pub code: Vec<u8>,
    /// Where the instruction that begins at a position comes from, in ascending order.
    pub map: Vec<Mapped>,
    /// Parts of memory with names.
    pub slots: Vec<NamedSlots>,
    /// The first stands for text outside macros.
    expansions: Vec<Expansion>,
}

impl Assembly {
    /// The macros that an instruction is from and where they are used, innermost first.
    #[must_use]
    pub fn expansions(&self, instruction: &Mapped) -> Vec<(String, Place)> {
        self.trace(instruction.expansion)
    }

    fn trace(&self, mut scope: usize) -> Vec<(String, Place)> {
        let mut trace = Vec::new();
        while scope != 0 {
            let expansion = &self.expansions[scope];
            trace.push((expansion.name.clone(), expansion.used.clone()));
            scope = expansion.within;
        }
        trace
    }
}

/// The origin of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Where it begins in the code.
    pub position: usize,
    /// Where it is written.
    pub place: Place,
    expansion: usize,
}

/// `slot NAME = OFFSET [COUNT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSlots {
    /// The name.
    pub name: String,
    /// Byte offset of the first.
    pub offset: u32,
    /// How many slots of 48 bytes.
    pub count: u32,
}

/// Code from text that includes nothing, its operations in the form of an interface.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn assemble(interface: Interface, text: &str) -> Result<Vec<u8>, AssemblyError> {
    let read = |_: &str| Err("there are no files here".to_owned());
    let mut assembler = Assembler::new(interface, &read);
    assembler.text("", text)?;
    Ok(assembler.finish()?.code)
}

/// Code from a file and those that it includes, whose names are relative to it; `read` gives their text, or says why not.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn assemble_file(
    interface: Interface,
    file: &str,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Assembly, AssemblyError> {
    let mut assembler = Assembler::new(interface, read);
    let token = Token {
        text: file.to_owned(),
        place: Place::default(),
        scope: 0,
    };
    assembler.include(file.to_owned(), &token)?;
    assembler.finish()
}

#[derive(Clone, Debug)]
struct Macro {
    parameters: Vec<String>,
    body: Vec<Token>,
}

/// What a macro has become in one place; its labels are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Expansion {
    name: String,
    used: Place,
    within: usize,
    labels: HashSet<String>,
}

struct Assembler<'r> {
    interface: Interface,
    read: &'r dyn Fn(&str) -> Result<String, String>,
    /// Files that are being read, the innermost last.
    files: Vec<String>,
    assembly: Assembly,
    constants: HashMap<String, U256>,
    /// Where slots lie: offsets of the first byte and of the one behind the last, and their name.
    taken: BTreeMap<u64, (u64, String)>,
    macros: HashMap<String, Macro>,
    labels: HashMap<(usize, String), usize>,
    /// Where two bytes wait for a label.
    references: Vec<(usize, usize, Token)>,
    /// Words that macros may still become.
    words: usize,
    /// Files included so far.
    includes: usize,
    /// Bytes of arguments that macros have put in so far.
    argument_bytes: usize,
}

impl<'r> Assembler<'r> {
    fn new(interface: Interface, read: &'r dyn Fn(&str) -> Result<String, String>) -> Self {
        let outside = Expansion {
            name: String::new(),
            used: Place::default(),
            within: 0,
            labels: HashSet::new(),
        };
        Self {
            interface,
            read,
            files: Vec::new(),
            assembly: Assembly {
                expansions: vec![outside],
                ..Assembly::default()
            },
            constants: HashMap::new(),
            taken: BTreeMap::new(),
            macros: HashMap::new(),
            labels: HashMap::new(),
            references: Vec::new(),
            words: MAX_CODE,
            includes: 0,
            argument_bytes: 0,
        }
    }

    fn error(&self, token: &Token, fault: Fault) -> AssemblyError {
        AssemblyError {
            place: token.place.clone(),
            fault,
            expansions: self.assembly.trace(token.scope),
        }
    }

    fn include(&mut self, file: String, token: &Token) -> Result<(), AssemblyError> {
        if self.files.contains(&file) {
            let way = [self.files.join(" -> "), file].join(" -> ");
            return Err(self.error(token, Fault::Cycle(way)));
        }
        if self.files.len() >= MAX_DEPTH {
            return Err(self.error(token, Fault::TooDeep(MAX_DEPTH)));
        }
        self.includes += 1;
        if self.includes > MAX_FILES {
            return Err(self.error(token, Fault::TooManyFiles(MAX_FILES)));
        }
        let text = (self.read)(&file)
            .map_err(|why| self.error(token, Fault::Unreadable(file.clone(), why)))?;
        self.files.push(file.clone());
        self.text(&file, &text)?;
        self.files.pop();
        Ok(())
    }

    fn text(&mut self, file: &str, text: &str) -> Result<(), AssemblyError> {
        let shared = Arc::from(file);
        let mut open: Option<(Token, Macro)> = None;
        for (index, line) in text.lines().enumerate() {
            let tokens = tokens(&shared, line, index + 1);
            let words: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
            match (&mut open, words.as_slice()) {
                (_, ["macro", ..]) => {
                    if let Some((name, _)) = &open {
                        return Err(self.error(name, Fault::Unpaired(name.text.clone())));
                    }
                    open = Some(self.head(&tokens)?);
                }
                (None, ["end", ..]) => {
                    return Err(self.error(&tokens[0], Fault::Unpaired("end".to_owned())));
                }
                (Some(_), ["end"]) => {
                    if let Some((name, body)) = open.take()
                        && self.macros.insert(name.text.clone(), body).is_some()
                    {
                        return Err(self.error(&name, Fault::Twice(name.text.clone())));
                    }
                }
                (Some((_, body)), _) => body.body.extend(tokens),
                (None, ["include", name]) => {
                    let name = name.trim_matches('"');
                    let folder = file.rfind('/').map_or("", |slash| &file[..=slash]);
                    self.include(format!("{folder}{name}"), &tokens[1])?;
                }
                (None, [_, "=", _]) => self.define(&tokens[0], &tokens[2]).map(drop)?,
                (None, ["slot", _, "=", _, rest @ ..]) if rest.len() < 2 => self.slot(&tokens)?,
                (None, _) => self.instructions(&tokens, 0)?,
            }
        }
        match open {
            None => Ok(()),
            Some((name, _)) => Err(self.error(&name, Fault::Unpaired(name.text.clone()))),
        }
    }

    /// `macro NAME PARAMETER...`
    fn head(&self, tokens: &[Token]) -> Result<(Token, Macro), AssemblyError> {
        let [first, name, parameters @ ..] = tokens else {
            let missing = Fault::Missing("macro".to_owned(), "a name".to_owned());
            return Err(self.error(&tokens[0], missing));
        };
        debug_assert_eq!(first.text, "macro");
        for token in [name].into_iter().chain(parameters) {
            self.check_name(&token.text, token)?;
        }
        for (index, token) in parameters.iter().enumerate() {
            let mut earlier = parameters[..index].iter();
            if earlier.any(|other| other.text == token.text) {
                return Err(self.error(token, Fault::Twice(token.text.clone())));
            }
        }
        let parameters = parameters.iter().map(|token| token.text.clone());
        let body = Macro {
            parameters: parameters.collect(),
            body: Vec::new(),
        };
        Ok((name.clone(), body))
    }

    fn define(&mut self, name: &Token, value: &Token) -> Result<U256, AssemblyError> {
        self.check_name(&name.text, name)?;
        if self.is_instruction(&name.text.to_ascii_uppercase()) {
            return Err(self.error(name, Fault::Instruction(name.text.clone())));
        }
        let number = self.number(value, 32)?;
        match self.constants.insert(name.text.clone(), number) {
            None => Ok(number),
            Some(_) => Err(self.error(name, Fault::Twice(name.text.clone()))),
        }
    }

    fn slot(&mut self, tokens: &[Token]) -> Result<(), AssemblyError> {
        self.number(&tokens[3], 4)?;
        let offset = self.define(&tokens[1], &tokens[3])?.to::<u32>();
        let count = match tokens.get(4) {
            Some(count) => self.number(count, 2)?.to::<u32>(),
            None => 1,
        };
        let slots = NamedSlots {
            name: tokens[1].text.clone(),
            offset,
            count,
        };
        let begin = u64::from(offset);
        let end = begin + u64::from(count) * OPERAND_BYTES as u64;
        // As those before overlap nobody, the last of them to begin before the end reaches furthest.
        if let Some((_, (until, other))) = self.taken.range(..end).next_back()
            && *until > begin
        {
            let fault = Fault::Overlap(slots.name, other.clone());
            return Err(self.error(&tokens[1], fault));
        }
        if end > begin {
            self.taken.insert(begin, (end, slots.name.clone()));
        }
        self.assembly.slots.push(slots);
        Ok(())
    }

    /// Whether a word in capitals is one that code is written with.
    fn is_instruction(&self, mnemonic: &str) -> bool {
        let extensions = self.interface.opcodes();
        ["PUSH", "DATA"].contains(&mnemonic)
            || extensions.iter().any(|opcode| opcode.mnemonic == mnemonic)
            || plain_opcode(mnemonic).is_some()
    }

    fn instructions(&mut self, mut tokens: &[Token], depth: usize) -> Result<(), AssemblyError> {
        while let [first, rest @ ..] = tokens {
            if self.assembly.code.len() > MAX_CODE {
                return Err(self.error(first, Fault::TooLong(MAX_CODE)));
            }
            let taken = match self.macros.get(&first.text) {
                Some(found) => {
                    let found = found.clone();
                    self.expand(first, &found, rest, depth)?
                }
                None => {
                    let position = self.assembly.code.len();
                    let taken = self.instruction(first, rest)?;
                    self.assembly.map.push(Mapped {
                        position,
                        place: first.place.clone(),
                        expansion: first.scope,
                    });
                    taken
                }
            };
            tokens = &rest[taken..];
        }
        Ok(())
    }

    /// A macro's body with arguments in the places of its parameters; says how many there were.
    fn expand(
        &mut self,
        first: &Token,
        found: &Macro,
        rest: &[Token],
        depth: usize,
    ) -> Result<usize, AssemblyError> {
        let count = found.parameters.len();
        let Some(arguments) = rest.get(..count) else {
            let what = format!("{count} arguments: {}", found.parameters.join(", "));
            return Err(self.error(first, Fault::Missing(first.text.clone(), what)));
        };
        if depth >= MAX_DEPTH {
            return Err(self.error(first, Fault::TooDeep(MAX_DEPTH)));
        }
        self.words = match self.words.checked_sub(found.body.len() + 1) {
            Some(words) => words,
            None => return Err(self.error(first, Fault::TooLong(MAX_CODE))),
        };
        let scope = self.assembly.expansions.len();
        let labels = found
            .body
            .iter()
            .filter_map(|token| token.text.strip_suffix(':'));
        self.assembly.expansions.push(Expansion {
            name: first.text.clone(),
            used: first.place.clone(),
            within: first.scope,
            labels: labels.map(str::to_owned).collect(),
        });
        for token in &found.body {
            let bare = token.text.trim_start_matches('@');
            let parameter = found.parameters.iter().position(|name| name == bare);
            self.argument_bytes += parameter.map_or(0, |index| arguments[index].text.len());
        }
        if self.argument_bytes > MAX_ARGUMENTS {
            return Err(self.error(first, Fault::TooLong(MAX_ARGUMENTS)));
        }
        let substituted = found.body.iter().map(|token| {
            let bare = token.text.trim_start_matches('@');
            let parameter = found.parameters.iter().position(|name| name == bare);
            match parameter.map(|index| &arguments[index]) {
                Some(argument) => Token {
                    text: format!(
                        "{}{}",
                        &token.text[..token.text.len() - bare.len()],
                        argument.text
                    ),
                    ..argument.clone()
                },
                None => Token {
                    scope,
                    ..token.clone()
                },
            }
        });
        let body: Vec<Token> = substituted.collect();
        self.instructions(&body, depth + 1)?;
        Ok(count)
    }

    /// The scope that a label belongs to when a token in `scope` names it: the innermost expansion that has it, or none.
    fn scope_of(&self, name: &str, mut scope: usize) -> usize {
        while scope != 0 && !self.assembly.expansions[scope].labels.contains(name) {
            scope = self.assembly.expansions[scope].within;
        }
        scope
    }

    /// Assembles an instruction and says how many tokens behind its first belong to it.
    fn instruction(&mut self, first: &Token, rest: &[Token]) -> Result<usize, AssemblyError> {
        let position = self.assembly.code.len();
        if let Some(name) = first.text.strip_suffix(':') {
            self.check_name(name, first)?;
            let key = (self.scope_of(name, first.scope), name.to_owned());
            if self.labels.insert(key, position).is_some() {
                return Err(self.error(first, Fault::Twice(name.to_owned())));
            }
            self.assembly.code.push(opcode::JUMPDEST);
            return Ok(0);
        }
        if let Some(name) = first.text.strip_prefix('@') {
            let scope = self.scope_of(name, first.scope);
            self.references.push((position + 1, scope, first.clone()));
            self.assembly.code.extend_from_slice(&[opcode::PUSH2, 0, 0]);
            return Ok(0);
        }
        let mnemonic = first.text.to_ascii_uppercase();
        let missing =
            |what: &str| self.error(first, Fault::Missing(mnemonic.clone(), what.to_owned()));
        let named = |opcode: &&Opcode| opcode.mnemonic == mnemonic;
        if let Some(opcode) = self.interface.opcodes().iter().find(named) {
            return self.extension(first, opcode, rest);
        }
        match mnemonic.as_str() {
            "PUSH" => {
                let numbers = rest.iter().take_while(|token| self.is_number(token));
                let count = numbers.count();
                if count == 0 {
                    return Err(missing("a number"));
                }
                for token in &rest[..count] {
                    let number = self.number(token, 32)?;
                    self.push(number);
                }
                Ok(count)
            }
            "DATA" => {
                let token = rest
                    .first()
                    .ok_or_else(|| missing("bytes: 0x and hex digits"))?;
                let bytes = hexadecimal(&token.text)
                    .ok_or_else(|| self.error(token, Fault::NoNumber(token.text.clone())))?;
                self.assembly.code.extend_from_slice(&bytes);
                Ok(1)
            }
            _ => self.plain(first, &mnemonic, rest),
        }
    }

    /// An opcode of the interface: its operands become immediate data, or under v7 a push before it.
    fn extension(
        &mut self,
        first: &Token,
        opcode: &Opcode,
        rest: &[Token],
    ) -> Result<usize, AssemblyError> {
        let operands = match self.interface {
            Interface::V7 => PACKED,
            _ => opcode.immediates,
        };
        if rest.len() < operands.len() {
            let names: Vec<&str> = operands.iter().map(|operand| operand.name).collect();
            let what = format!("{} numbers: {}", names.len(), names.join(", "));
            return Err(self.error(first, Fault::Missing(opcode.mnemonic.to_owned(), what)));
        }
        let mut packed = U256::ZERO;
        let mut immediate = Vec::new();
        for (operand, token) in operands.iter().zip(rest) {
            let number = self.number(token, operand.bytes)?;
            packed = packed << (8 * operand.bytes) | number;
            immediate.extend_from_slice(&number.to_le_bytes::<32>()[..operand.bytes]);
        }
        if self.interface == Interface::V7 {
            self.push(packed);
            immediate.clear();
        }
        self.assembly.code.push(opcode.byte);
        self.assembly.code.append(&mut immediate);
        Ok(operands.len())
    }

    fn plain(
        &mut self,
        first: &Token,
        mnemonic: &str,
        rest: &[Token],
    ) -> Result<usize, AssemblyError> {
        let opcode = plain_opcode(mnemonic)
            .ok_or_else(|| self.error(first, Fault::NoInstruction(first.text.clone())))?;
        let length = usize::from(opcode.info().immediate_size());
        self.assembly.code.push(opcode.get());
        if length == 0 {
            return Ok(0);
        }
        let missing = Fault::Missing(mnemonic.to_owned(), "a number".to_owned());
        let token = rest.first().ok_or_else(|| self.error(first, missing))?;
        let number = self.number(token, length)?;
        let bytes = number.to_be_bytes::<32>();
        self.assembly.code.extend_from_slice(&bytes[32 - length..]);
        Ok(1)
    }

    /// The shortest push.
    fn push(&mut self, number: U256) {
        let bytes = number.to_be_bytes::<32>();
        let digits = &bytes[32 - number.byte_len()..];
        self.assembly.code.push(opcode::PUSH0 + digits.len() as u8);
        self.assembly.code.extend_from_slice(digits);
    }

    fn is_number(&self, token: &Token) -> bool {
        let first = token.text.split(['+', '-', '*']).next().unwrap_or_default();
        self.constants.contains_key(first)
            || first.starts_with(|first: char| first.is_ascii_digit())
    }

    /// A number of at most so many bytes: digits, constants, and sums, differences and products of them without spaces.
    fn number(&self, token: &Token, bytes: usize) -> Result<U256, AssemblyError> {
        let no_number = || self.error(token, Fault::NoNumber(token.text.clone()));
        let too_large = || self.error(token, Fault::TooLarge(token.text.clone(), bytes));
        let negative = || self.error(token, Fault::Negative(token.text.clone()));
        let mut sum = U256::ZERO;
        for term in token.text.split('+') {
            for (index, product) in term.split('-').enumerate() {
                let mut value = U256::ONE;
                for factor in product.split('*') {
                    let factor = self.factor(factor).ok_or_else(no_number)?;
                    value = value.checked_mul(factor).ok_or_else(too_large)?;
                }
                // What comes before the first minus is added.
                sum = match index {
                    0 => sum.checked_add(value).ok_or_else(too_large)?,
                    _ => sum.checked_sub(value).ok_or_else(negative)?,
                };
            }
        }
        if sum.byte_len() > bytes {
            return Err(too_large());
        }
        Ok(sum)
    }

    fn factor(&self, text: &str) -> Option<U256> {
        let known = self.constants.get(text).copied();
        known.or_else(|| match text.strip_prefix("0x") {
            Some(digits)
                if (1..=64).contains(&digits.len())
                    && digits.bytes().all(|d| d.is_ascii_hexdigit()) =>
            {
                U256::from_str_radix(digits, 16).ok()
            }
            Some(_) => None,
            None => {
                let digits = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
                digits.then(|| U256::from_str_radix(text, 10).ok())?
            }
        })
    }

    fn check_name(&self, name: &str, token: &Token) -> Result<(), AssemblyError> {
        let first = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if first && name.bytes().all(letters) {
            Ok(())
        } else {
            Err(self.error(token, Fault::NoName(name.to_owned())))
        }
    }

    fn finish(mut self) -> Result<Assembly, AssemblyError> {
        for (at, scope, token) in std::mem::take(&mut self.references) {
            let name = token.text.trim_start_matches('@').to_owned();
            let Some(&position) = self.labels.get(&(scope, name.clone())) else {
                return Err(self.error(&token, Fault::NoLabel(name)));
            };
            let Ok(position) = u16::try_from(position) else {
                return Err(self.error(&token, Fault::FarLabel(name)));
            };
            self.assembly.code[at..at + 2].copy_from_slice(&position.to_be_bytes());
        }
        Ok(self.assembly)
    }
}

/// One of the EVM's own.
fn plain_opcode(mnemonic: &str) -> Option<OpCode> {
    let mut opcodes = (0..=u8::MAX).filter_map(OpCode::new);
    opcodes.find(|opcode| opcode.as_str() == mnemonic)
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
