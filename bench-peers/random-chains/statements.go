package main

import "github.com/ethereum/go-ethereum/core/vm"

// operand emits code that pushes a word.
func (p *programmer) operand(a *assembler) {
	p.oneOf(
		weighted{3, func() { a.push(0) }},
		weighted{2, func() { a.push(p.slot()) }},
		weighted{1, func() {
			a.op(pick(p.dice, vm.CALLER, vm.NUMBER, vm.GAS, vm.ADDRESS, vm.ORIGIN, vm.CALLVALUE, vm.GASPRICE, vm.COINBASE,
				vm.TIMESTAMP, vm.DIFFICULTY, vm.GASLIMIT, vm.CODESIZE, vm.CALLDATASIZE, vm.MSIZE, vm.PC))
		}},
		weighted{1, func() {
			if p.newest < london && !p.percent(3) {
				a.op(vm.GAS)
				return
			}
			a.op(pick(p.dice, vm.RETURNDATASIZE, vm.SELFBALANCE, vm.CHAINID, vm.BASEFEE, vm.PUSH0, vm.BLOBBASEFEE))
		}},
		weighted{1, func() { a.push(p.slot()).op(vm.SLOAD) }},
		weighted{1, func() { a.pushAddress(p.address()).op(vm.BALANCE) }},
		weighted{1, func() { a.pushAddress(p.address()).op(vm.EXTCODESIZE) }},
		weighted{1, func() {
			if p.newest < constantinople {
				a.op(vm.GAS)
				return
			}
			a.pushAddress(p.address()).op(vm.EXTCODEHASH)
		}},
		weighted{1, func() { a.push(uint64(p.IntN(300))).op(vm.NUMBER, vm.SUB, vm.BLOCKHASH) }},
		weighted{1, func() { a.pushBytes(p.bytes(32)) }},
		weighted{1, func() { a.push(p.slot()).op(vm.CALLDATALOAD) }},
	)
}

// use emits code that stores, logs or drops the top of the stack.
func (p *programmer) use(a *assembler) {
	p.oneOf(
		weighted{1, func() { a.op(vm.POP) }},
		weighted{1, func() { a.push(0).op(vm.MSTORE).push(32).push(0).op(vm.LOG0) }},
		weighted{3, func() { a.push(p.slot()).op(vm.SSTORE) }},
	)
}

// destination emits code that pushes an address.
func (p *programmer) destination(a *assembler) {
	p.oneOf(
		weighted{1, func() { a.op(vm.ADDRESS) }},
		weighted{1, func() { a.op(vm.CALLER) }},
		weighted{1, func() { a.push(0).op(vm.CALLDATALOAD) }},
		weighted{1, func() { a.push(uint64(pick(p.dice, 1, 2, 3, 4, 4, 4, 1+p.IntN(lastPrecompile+1)))) }},
		weighted{1, func() { a.op(vm.COINBASE) }},
		weighted{5, func() { a.pushAddress(p.address()) }},
	)
}

func (p *programmer) call(a *assembler) {
	kind := pick(p.dice, vm.CALL, vm.CALL, vm.CALL, vm.CALLCODE, vm.DELEGATECALL, vm.STATICCALL)
	if kind == vm.DELEGATECALL && p.newest < homestead || kind == vm.STATICCALL && p.newest < byzantium {
		kind = vm.CALL
	}
	input := pick(p.dice, uint64(0), 0, 0, 32, 64, 128, 192, 288, 1000)
	if input > 0 && p.percent(70) {
		a.pushAddress(p.address()).push(0).op(vm.MSTORE)
	}
	a.push(pick(p.dice, uint64(0), 0, 32, 64, 200)).push(uint64(p.IntN(64))).push(input).push(0)
	if kind == vm.CALL || kind == vm.CALLCODE {
		p.oneOf(
			weighted{1, func() { a.push(1) }},
			weighted{1, func() { a.push(uint64(p.IntN(100_000))) }},
			weighted{1, func() { a.op(vm.CALLVALUE) }},
			weighted{1, func() { a.op(vm.ADDRESS, vm.BALANCE) }},
			weighted{2, func() { a.push(0) }},
		)
	}
	p.destination(a)
	p.oneOf(
		weighted{1, func() { a.push(uint64(p.IntN(30_000))) }},
		weighted{1, func() { a.push(0) }},
		weighted{1, func() { a.push(200_000) }},
		weighted{9, func() {
			if p.newest < tangerineWhistle { // more gas than there is ends the caller
				a.push(50_000)
				return
			}
			a.op(vm.GAS)
		}},
	)
	a.op(kind)
	p.use(a)
	if p.newest >= byzantium && p.percent(30) {
		a.push(uint64(p.IntN(40))).push(0).push(0).op(vm.RETURNDATACOPY)
	}
}

// create emits code that creates a contract and mostly calls it.
func (p *programmer) create(a *assembler, depth int) {
	code := p.initCode(depth + 1)
	a.copyToMemory(code)
	create2 := p.newest >= constantinople && p.percent(60)
	if create2 {
		a.push(uint64(p.IntN(2)))
	}
	a.push(uint64(len(code))).push(0)
	p.oneOf(
		weighted{1, func() { a.op(vm.CALLVALUE) }},
		weighted{1, func() { a.push(p.slot()) }},
		weighted{2, func() { a.push(0) }},
	)
	if create2 {
		a.op(vm.CREATE2)
	} else {
		a.op(vm.CREATE)
	}
	if !p.oneIn(4) {
		a.push(0).push(0).push(uint64(32 * p.IntN(2))).push(0).push(uint64(p.IntN(2))).op(vm.DUP6)
		a.push(100_000).op(vm.CALL, vm.POP)
	}
	p.use(a)
}

func (p *programmer) log(a *assembler) {
	topics := p.IntN(5)
	for range topics {
		p.operand(a)
	}
	a.push(uint64(p.IntN(100))).push(uint64(p.IntN(40))).op(vm.LOG0 + vm.OpCode(topics))
}

// foreignCode hashes a piece of another account's code.
func (p *programmer) foreignCode(a *assembler) {
	a.push(uint64(p.IntN(80))).push(uint64(p.IntN(40))).push(uint64(p.IntN(40))).pushAddress(p.address()).op(vm.EXTCODECOPY)
	a.push(64).push(0).op(vm.KECCAK256)
	p.use(a)
}

func (p *programmer) calculation(a *assembler) {
	p.operand(a)
	p.operand(a)
	ops := []vm.OpCode{vm.ADD, vm.MUL, vm.SUB, vm.DIV, vm.SDIV, vm.MOD, vm.SMOD, vm.EXP, vm.SIGNEXTEND, vm.LT, vm.SGT, vm.BYTE, vm.XOR, vm.EQ}
	if p.newest >= constantinople {
		ops = append(ops, vm.SHL, vm.SHR, vm.SAR)
	}
	a.op(pick(p.dice, ops...))
	p.use(a)
}

// hash hashes memory of any length, sometimes more than there is gas for.
func (p *programmer) hash(a *assembler) {
	if p.percent(60) {
		p.operand(a)
		a.push(uint64(p.IntN(70))).op(pick(p.dice, vm.MSTORE, vm.MSTORE, vm.MSTORE8))
	}
	length := pick(p.dice, uint64(0), 1, 31, 32, 33, 63, 64, 65, 96, 136, 137)
	offset := pick(p.dice, uint64(0), 0, 0, 1, 31, 32, 64)
	if p.oneIn(10) {
		length = pick(p.dice, uint64(0), 32, 1000, 1<<20, 1<<33, 1<<64-1)
		offset = pick(p.dice, uint64(0), 1, 5000, 1<<32, 1<<64-1)
	}
	a.push(length).push(offset).op(vm.KECCAK256)
	if p.percent(30) {
		a.op(vm.SLOAD)
	}
	if p.percent(30) {
		p.operand(a)
		a.op(vm.SWAP1, vm.SSTORE)
		return
	}
	p.use(a)
}

// branch emits statements that run by the state, the input or the block's number.
func (p *programmer) branch(a *assembler, depth int) {
	switch p.IntN(3) {
	case 0:
		a.push(p.slot()).op(vm.SLOAD)
	case 1:
		a.op(vm.CALLDATASIZE)
	case 2:
		a.op(vm.NUMBER).push(1).op(vm.AND)
	}
	if p.oneIn(2) {
		a.op(vm.ISZERO)
	}
	a.unless(func() {
		p.statement(a, depth+1)
		if p.percent(60) {
			p.statement(a, depth+1)
		}
	})
}

func (p *programmer) cancunInstructions(a *assembler) {
	if p.newest < cancun {
		return
	}
	a.push(uint64(p.IntN(100))).push(uint64(p.IntN(100))).push(uint64(p.IntN(100))).op(vm.MCOPY)
	if p.newest >= osaka && p.oneIn(2) {
		p.operand(a)
		a.op(vm.CLZ)
		p.use(a)
	}
	a.push(uint64(p.IntN(2))).op(vm.BLOBHASH)
	p.use(a)
}

func (p *programmer) transient(a *assembler) {
	if p.newest < cancun {
		return
	}
	p.operand(a)
	a.push(p.slot()).op(vm.TSTORE).push(p.slot()).op(vm.TLOAD)
	p.use(a)
}

func (p *programmer) precompileCall(a *assembler) {
	n := 1 + p.IntN(lastPrecompile)
	input := precompileInput(p.dice, n)
	a.copyToMemory(input).push(uint64(p.IntN(100))).push(0).push(uint64(len(input))).push(0)
	value := uint64(0)
	if p.oneIn(10) {
		value = 1
	}
	a.push(value).push(uint64(n)).push(pick(p.dice, uint64(100_000), 3000, 600, 20_000, 200_000)).op(vm.CALL)
	a.push(0).op(vm.MLOAD)
	p.use(a)
	p.use(a)
}

// recursion has the contract call itself with most of its gas, until none is left.
func (p *programmer) recursion(a *assembler) {
	a.push(p.slot()).op(vm.SLOAD).push(1).op(vm.ADD).push(p.slot()).op(vm.SSTORE)
	for range 5 {
		a.push(0)
	}
	a.op(vm.ADDRESS).push(uint64(300+p.IntN(30_000))).op(vm.GAS, vm.SUB, vm.CALL)
	p.use(a)
}

// largeInitCode creates a contract with init code of zeros, about as long as EIP-3860 allows.
func (p *programmer) largeInitCode(a *assembler) {
	length := pick(p.dice, uint64(49_151), 49_152, 49_153, 1000)
	if p.newest >= constantinople && p.oneIn(2) {
		a.push(3).push(length).push(0).push(0).op(vm.CREATE2)
	} else {
		a.push(length).push(0).push(0).op(vm.CREATE)
	}
	p.use(a)
}
