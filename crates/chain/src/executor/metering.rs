//! Charges execution for what it touches of a Verkle tree (EIP-4762).
//!
//! Before each instruction runs, it pays for the chunks of code that it is read from, and for the leaves that it is going to touch. Where that
//! costs nothing because all has been paid for, an access of an account or a slot costs 100. What cannot be paid for is not touched, and the frame ends out of gas.
//!
//! Where the text is open or a node's state cannot tell:
//!
//! - A leaf counts as absent, and fills, where its account does not exist or its slot is zero: a view of state does not tell a zero
//!   that was stored from nothing.
//! - Delegated code (EIP-7702) is paid for at the account that has it.
//! - Access lists (EIP-2930) cost what they cost, and make nothing cheaper.
//! - `BLOCKHASH` and the protocol's own calls pay for nothing.

use alloy_eips::eip2935::HISTORY_STORAGE_ADDRESS;
use alloy_eips::eip4788::BEACON_ROOTS_ADDRESS;
use alloy_eips::eip7002::WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS;
use alloy_eips::eip7251::CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS;
use alloy_primitives::{Address, U256};
use arbor_evm384::Interface;
use arbor_state::StateView;
use arbor_verify::verkle::{StemName, chunk_place, slot_place};
use revm::bytecode::opcode::{
    BALANCE, CALL, CALLCODE, DELEGATECALL, EXTCODECOPY, EXTCODEHASH, EXTCODESIZE, JUMP, JUMPI,
    OpCode, SELFDESTRUCT, SLOAD, SSTORE, STATICCALL,
};
use revm::context::CfgEnv;
use revm::context_interface::Cfg;
use revm::context_interface::cfg::gas_params::GasId;
use revm::context_interface::context::ContextError;
use revm::handler::instructions::EthInstructions;
use revm::handler::{EthPrecompiles, EvmTr, FrameData, FrameResult, ItemOrResult};
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_action::FrameInit;
use revm::interpreter::interpreter_types::{
    InputsTr, InterpreterTypes, Jumps, LoopControl, RuntimeFlag, StackTr,
};
use revm::interpreter::{
    Gas, Host, Instruction, InstructionContext, InstructionExecResult, InstructionResult,
    Interpreter, InterpreterAction, InterpreterResult,
};

use super::access_events::{AccessEvents, Event, Fields, LeafName, header};
use super::code_reads::{CodeRead, chunks, code_owner};
use super::context::{BlockContext, BlockEvm};
use arbor_revm_state::ViewError;

/// WARM_STORAGE_READ_COST (EIP-2929): an access of what has been paid for.
const AGAIN: u64 = 100;
/// `CREATE` and `CREATE2`, apart from the leaves written.
const CREATION: u64 = 1000;

/// Contracts of the protocol, whose fields and code every node has at hand.
const SYSTEM_CONTRACTS: [Address; 4] = [
    HISTORY_STORAGE_ADDRESS,
    BEACON_ROOTS_ADDRESS,
    WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS,
    CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS,
];

/// Takes away what the witness's price replaces: access, storage, value and new accounts in calls, and bytes of code.
pub(super) fn set_prices(cfg: &mut CfgEnv) {
    cfg.gas_params.override_gas(
        [
            GasId::cold_account_additional_cost(),
            GasId::cold_storage_additional_cost(),
            GasId::cold_storage_cost(),
            GasId::warm_storage_read_cost(),
            GasId::transfer_value_cost(),
            GasId::new_account_cost(),
            GasId::new_account_cost_for_selfdestruct(),
            GasId::code_deposit_cost(),
        ]
        .map(|id| (id, 0)),
    );
    cfg.gas_params.override_gas([(GasId::create(), CREATION)]);
}

/// Takes away what instructions cost by themselves if their accesses are paid for.
pub(super) fn set_instructions<H: Host>(table: &mut EthInstructions<EthInterpreter, H>) {
    for opcode in [
        SLOAD,
        BALANCE,
        EXTCODESIZE,
        EXTCODEHASH,
        EXTCODECOPY,
        CALL,
        CALLCODE,
        DELEGATECALL,
        STATICCALL,
    ] {
        table.insert_gas(opcode, 0);
    }
    table.insert_instruction(SSTORE, Instruction::new(sstore), 0);
}

/// SSTORE that costs nothing and gives nothing back.
fn sstore<I: InterpreterTypes, H: Host + ?Sized>(
    context: InstructionContext<'_, H, I>,
) -> InstructionExecResult {
    let InstructionContext { interpreter, host } = context;
    if interpreter.runtime_flag.is_static() {
        return Err(InstructionResult::StateChangeDuringStaticCall);
    }
    let Some([slot, value]) = interpreter.stack.popn() else {
        return Err(InstructionResult::StackUnderflow);
    };
    host.sstore(interpreter.input.target_address(), slot, value)
        .map(|_| ())
        .ok_or(InstructionResult::FatalExternalError)
}

/// Takes an event's price from the gas left.
fn charge(
    events: &mut AccessEvents,
    gas: &mut Gas,
    leaf: LeafName,
    event: Event,
) -> Result<u64, InstructionResult> {
    let price = events.price(leaf, event);
    if !gas.record_regular_cost(price) {
        return Err(InstructionResult::OutOfGas);
    }
    events.note(leaf, event);
    Ok(price)
}

fn charge_chunks(
    events: &mut AccessEvents,
    gas: &mut Gas,
    address: Address,
    chunks: std::ops::Range<u32>,
    event: Event,
) -> Result<(), InstructionResult> {
    for chunk in chunks {
        let (index, suffix) = chunk_place(chunk);
        charge(events, gas, (StemName { address, index }, suffix), event)?;
    }
    Ok(())
}

/// What an instruction's accesses are charged with.
struct Metered<'m, 'a, S: StateView + ?Sized> {
    events: &'m mut AccessEvents,
    context: &'m mut BlockContext<'a, S>,
    precompiles: &'m EthPrecompiles,
    interpreter: &'m mut Interpreter<EthInterpreter>,
    evm384: Option<Interface>,
}

impl<S: StateView + ?Sized> Metered<'_, '_, S> {
    fn charge(&mut self, leaf: LeafName, event: Event) -> Result<u64, InstructionResult> {
        charge(self.events, &mut self.interpreter.gas, leaf, event)
    }

    fn access(&mut self, address: Address, suffixes: &[u8]) -> Result<u64, InstructionResult> {
        let mut paid = 0;
        for suffix in suffixes {
            paid += self.charge(header(address, *suffix), Event::Access)?;
        }
        Ok(paid)
    }

    /// What an access costs at least.
    fn at_least(&mut self, paid: u64) -> Result<(), InstructionResult> {
        match paid > 0 || self.interpreter.gas.record_regular_cost(AGAIN) {
            true => Ok(()),
            false => Err(InstructionResult::OutOfGas),
        }
    }

    /// Whether every node has its fields at hand.
    fn is_known(&self, address: Address) -> bool {
        self.precompiles.contains(&address) || SYSTEM_CONTRACTS.contains(&address)
    }

    fn exists(&mut self, address: Address) -> Result<bool, InstructionResult> {
        let account = self
            .context
            .load_account_info_skip_cold_load(address, false, false);
        account
            .map(|account| !account.is_empty)
            .map_err(|_| InstructionResult::FatalExternalError)
    }

    /// Value goes from one account to another.
    fn transfer(&mut self, from: Address, to: Address) -> Result<u64, InstructionResult> {
        let fields = Fields::of(self.events.text);
        let write = |absent| Event::Write { absent };
        let mut paid = self.charge(header(from, fields.balance), write(false))?;
        let absent = !self.exists(to)?;
        paid += self.charge(header(to, fields.balance), write(absent))?;
        for suffix in fields.new_account.iter().filter(|_| absent) {
            paid += self.charge(header(to, *suffix), write(true))?;
        }
        Ok(paid)
    }

    /// Charges what the next instruction touches beside code.
    fn instruction(&mut self, opcode: u8) -> Result<(), InstructionResult> {
        let inputs = OpCode::new(opcode).map_or(0, |opcode| usize::from(opcode.inputs()));
        let changes = matches!(opcode, SSTORE | SELFDESTRUCT);
        if self.interpreter.stack.len() < inputs
            || (changes && self.interpreter.runtime_flag.is_static())
        {
            // It is going to fail.
            return Ok(());
        }
        let fields = Fields::of(self.events.text);
        let operand = |this: &Self, from_top| -> U256 {
            this.interpreter.stack.peek(from_top).unwrap_or_default()
        };
        let account = |this: &Self, from_top| Address::from_word(operand(this, from_top).into());
        let own = self.interpreter.input.target_address();
        let slot = |slot| {
            let (index, suffix) = slot_place(slot);
            let address = own;
            (StemName { address, index }, suffix)
        };
        match opcode {
            SLOAD => {
                let paid = self.charge(slot(operand(self, 0)), Event::Access)?;
                self.at_least(paid)
            }
            SSTORE => {
                let number = operand(self, 0);
                let value = self.context.sload(own, number);
                let value = value.ok_or(InstructionResult::FatalExternalError)?.data;
                let absent = value.is_zero();
                let paid = self.charge(slot(number), Event::Write { absent })?;
                self.at_least(paid)
            }
            BALANCE => {
                let paid = self.access(account(self, 0), &[fields.balance])?;
                self.at_least(paid)
            }
            EXTCODESIZE | EXTCODECOPY | EXTCODEHASH => {
                let (address, leaf) = match opcode {
                    EXTCODEHASH => (account(self, 0), fields.code_hash),
                    _ => (account(self, 0), Some(fields.code_size)),
                };
                let leaf = leaf.filter(|_| !self.is_known(address));
                let paid = self.access(address, leaf.as_slice())?;
                self.at_least(paid)
            }
            CALL | CALLCODE | DELEGATECALL | STATICCALL => {
                let to = account(self, 1);
                // CALLCODE's value stays where it is.
                let has_value = opcode == CALL && !operand(self, 2).is_zero();
                if has_value && self.interpreter.runtime_flag.is_static() {
                    return Ok(());
                }
                let mut paid = 0;
                if has_value {
                    paid += self.transfer(own, to)?;
                }
                if !self.is_known(to) {
                    paid += self.access(to, fields.called)?;
                }
                self.at_least(paid)
            }
            SELFDESTRUCT => self.selfdestruct(own, account(self, 0)),
            _ => Ok(()),
        }
    }

    fn selfdestruct(&mut self, own: Address, heir: Address) -> Result<(), InstructionResult> {
        let fields = Fields::of(self.events.text);
        self.access(own, &[fields.balance])?;
        let balance = self.context.balance(own);
        let has_value = !balance
            .ok_or(InstructionResult::FatalExternalError)?
            .data
            .is_zero();
        if self.is_known(heir) && !has_value {
            return Ok(());
        }
        if heir != own {
            self.access(heir, fields.called)?;
            self.access(heir, &[fields.balance])?;
        }
        match has_value {
            true => self.transfer(own, heir).map(|_| ()),
            false => Ok(()),
        }
    }
}

/// A new contract's fields and code are written, which its creation has succeeded but for.
fn finish_creation(
    events: &mut AccessEvents,
    address: Address,
    result: &mut InterpreterResult,
    largest: usize,
) {
    let code = &result.output;
    // What may be no code fails without being paid for.
    if !result.result.is_ok() || code.len() > largest || code.first() == Some(&0xef) {
        return;
    }
    let gas = &mut result.gas;
    let paid = (|| {
        for suffix in Fields::of(events.text).creation_ends {
            let write = Event::Write { absent: false };
            charge(events, gas, header(address, *suffix), write)?;
        }
        let write = Event::Write { absent: true };
        let chunks = chunks(0..code.len(), code.len());
        charge_chunks(events, gas, address, chunks, write)
    })();
    if let Err(error) = paid {
        gas.spend_all();
        result.result = error;
    }
}

impl<S: StateView + ?Sized> BlockEvm<'_, S> {
    /// Charges a creation, whose frame is the uppermost one, before its init code runs.
    pub(super) fn charge_creation(&mut self) {
        let Some(events) = &mut self.access_events else {
            return;
        };
        let frame = self.evm.frame_stack.get();
        let FrameData::Create(created) = &frame.data else {
            return;
        };
        let address = created.created_address;
        let accounts = &self.evm.ctx.journaled_state.inner.state;
        let absent = accounts
            .get(&address)
            .is_some_and(|account| account.is_loaded_as_not_existing());
        let fields = Fields::of(events.text);
        let has_value = !frame.interpreter.input.call_value().is_zero();
        let balance = has_value.then_some(fields.balance);
        for suffix in fields.creation_begins.iter().copied().chain(balance) {
            let (leaf, write) = (header(address, suffix), Event::Write { absent });
            if let Err(error) = charge(events, &mut frame.interpreter.gas, leaf, write) {
                frame.interpreter.halt(error);
                return;
            }
        }
    }

    /// Runs the uppermost frame until it ends or calls, as revm does, and charges it for what it touches.
    pub(super) fn frame_run_metered(
        &mut self,
    ) -> Result<ItemOrResult<FrameInit, FrameResult>, ContextError<ViewError>> {
        let evm384 = self.interface();
        let Some(events) = &mut self.access_events else {
            return self.evm.frame_run();
        };
        let frame = self.evm.frame_stack.get();
        let context = &mut self.evm.ctx;
        let instructions = &self.evm.instruction;
        let (table, gas) = (instructions.instruction_table(), instructions.gas_table());
        let owner = code_owner(&frame.interpreter, context).map(|(owner, _)| owner);
        let mut last = None;
        while frame.interpreter.bytecode.action().is_none() {
            let mut metered = Metered {
                events,
                context,
                precompiles: &self.evm.precompiles,
                interpreter: &mut frame.interpreter,
                evm384,
            };
            let step = metered
                .before(owner, &mut last, gas)
                .and_then(|()| frame.interpreter.step(table, gas, context));
            if let Err(error) = step {
                if frame.interpreter.bytecode.action().is_none() {
                    frame.interpreter.halt(error);
                }
                break;
            }
        }
        let mut action = frame.interpreter.take_next_action();
        if let (InterpreterAction::Return(result), FrameData::Create(created)) =
            (&mut action, &frame.data)
        {
            let largest = context.cfg.max_code_size();
            finish_creation(events, created.created_address, result, largest);
        }
        frame
            .process_next_action(context, action)
            .inspect(|done: &ItemOrResult<_, _>| {
                if done.is_result() {
                    frame.set_finished(true);
                }
            })
    }
}

impl<S: StateView + ?Sized> Metered<'_, '_, S> {
    /// Charges what the next instruction touches: its own code first, then the rest, then code that it copies or jumps to.
    fn before(
        &mut self,
        owner: Option<Address>,
        last: &mut Option<std::ops::Range<u32>>,
        gas_table: &[u16; 256],
    ) -> Result<(), InstructionResult> {
        let size = self.interpreter.bytecode.len();
        let opcode = self.interpreter.bytecode.opcode();
        let CodeRead { own, more, other } = CodeRead::next(self.interpreter, self.evm384);
        let own = chunks(own, size);
        if let Some(owner) = owner
            && last.as_ref() != Some(&own)
        {
            let gas = &mut self.interpreter.gas;
            charge_chunks(self.events, gas, owner, own.clone(), Event::Access)?;
            *last = Some(own);
        }
        self.instruction(opcode)?;
        let is_jump = matches!(opcode, JUMP | JUMPI);
        let affordable =
            u64::from(gas_table[usize::from(opcode)]) <= self.interpreter.gas.remaining();
        if let Some(owner) = owner
            && (!is_jump || affordable)
        {
            let gas = &mut self.interpreter.gas;
            charge_chunks(self.events, gas, owner, chunks(more, size), Event::Access)?;
        }
        if let Some((address, range)) = other
            && !self.is_known(address)
        {
            let account = self
                .context
                .load_account_info_skip_cold_load(address, true, false);
            let account = account.map_err(|_| InstructionResult::FatalExternalError)?;
            let size = account.code.as_ref().map_or(0, |code| code.len());
            let gas = &mut self.interpreter.gas;
            charge_chunks(
                self.events,
                gas,
                address,
                chunks(range, size),
                Event::Access,
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    const PAGE: &str = include_str!("../../../../docs/design/gas-metering.md");

    /// The code of this file, without these tests.
    fn code() -> &'static str {
        let file = include_str!("metering.rs");
        file.split("#[cfg(test)]").next().unwrap_or_default()
    }

    /// The names in quotes in the first cells of the page's table that begins so.
    fn names(head: &str) -> Vec<&'static str> {
        let mut lines = PAGE.lines();
        assert!(lines.any(|line| line.starts_with(head)), "no table {head}");
        let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|row| row.split('|').nth(1));
        cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect()
    }

    #[test]
    fn the_page_has_what_is_assumed_of_revm() {
        let listed = names("| price (`GasId`)");
        let used = code().split("GasId::").skip(1);
        let mut used: Vec<&str> = used.filter_map(|rest| rest.split('(').next()).collect();
        assert_eq!(used.len(), 9, "{used:?}");
        used.retain(|name| !listed.contains(name));
        assert!(used.is_empty(), "not on the page: {used:?}");
        let mut gone = [listed, names("| call or type")].concat();
        gone.retain(|name| !code().contains(name.rsplit('.').next().unwrap_or_default()));
        assert!(gone.is_empty(), "on the page, but not used: {gone:?}");
    }

    /// Another version of revm: check each row of the page in its source, then raise the version there.
    #[test]
    fn revm_is_the_version_on_the_page() {
        let lock = include_str!("../../../../Cargo.lock");
        let (_, rest) = lock
            .split_once("name = \"revm\"\nversion = \"")
            .expect("a version");
        let major = rest.split('.').next().expect("a number");
        let head = format!("## What is assumed of revm {major}");
        assert!(PAGE.lines().any(|line| line == head), "no heading {head}");
    }
}
