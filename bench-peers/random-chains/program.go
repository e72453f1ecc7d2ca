package main

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
)

// programmer writes random contracts. They use few slots and name few addresses, so that they meet.
type programmer struct {
	dice
	// known has every address that is worth naming.
	known []common.Address
	// template is the first of the contracts whose code metamorphs copy.
	template common.Address
	// newest is the last fork of the chain: instructions that no block knows would end most programs.
	newest fork
	// delegationShapes allows code that looks like a delegation of EIP-7702.
	delegationShapes bool
}

func (p *programmer) address() common.Address { return pick(p.dice, p.known...) }

// maxDepth bounds how deep programs that create programs are nested.
const maxDepth = 3

// runtime returns the code of a contract.
func (p *programmer) runtime(depth int) []byte {
	a := new(assembler)
	statements := 1 + p.IntN(8)
	if depth > 1 {
		statements = 1 + p.IntN(3)
	}
	for range statements {
		p.statement(a, depth)
	}
	p.ending(a)
	return a.bytes()
}

// statement emits code that leaves the stack as it was.
func (p *programmer) statement(a *assembler, depth int) {
	p.oneOf(
		weighted{9, func() { p.operand(a); a.push(p.slot()).op(vm.SSTORE) }},
		weighted{2, func() {
			a.push(p.slot()).op(vm.SLOAD).push(1).op(vm.ADD).push(p.slot()).op(vm.SSTORE)
		}},
		weighted{6, func() { p.call(a) }},
		weighted{2, func() {
			if depth < maxDepth {
				p.create(a, depth)
			}
		}},
		weighted{1, func() { p.log(a) }},
		weighted{1, func() { p.foreignCode(a) }},
		weighted{1, func() { p.operand(a); p.use(a) }},
		weighted{1, func() { p.calculation(a) }},
		weighted{2, func() { p.hash(a) }},
		weighted{3, func() { p.branch(a, depth) }},
		weighted{1, func() { p.cancunInstructions(a) }},
		weighted{1, func() { p.transient(a) }},
		weighted{1, func() { p.precompileCall(a) }},
		weighted{1, func() {
			if p.percent(40) {
				p.recursion(a)
			}
		}},
		weighted{1, func() { p.largeInitCode(a) }},
		weighted{1, func() { // ends in the middle, by the state
			if p.percent(40) {
				a.push(p.slot()).op(vm.SLOAD)
				a.unless(func() { p.ending(a) })
			}
		}},
		weighted{1, func() {
			a.push(p.slot()).op(vm.SLOAD)
			a.unless(func() { p.destination(a); a.op(vm.SELFDESTRUCT) })
		}},
		weighted{1, func() { a.op(vm.GAS); p.use(a) }},
	)
}

// ending emits code that ends a program.
func (p *programmer) ending(a *assembler) {
	p.oneOf(
		weighted{3, func() { p.destination(a); a.op(vm.SELFDESTRUCT) }},
		weighted{2, func() {
			if p.newest < byzantium {
				a.op(vm.INVALID)
				return
			}
			a.push(uint64(p.IntN(64))).push(0).op(vm.REVERT)
		}},
		weighted{1, func() { a.op(vm.INVALID) }},
		weighted{1, func() { // runs until the gas is used up
			if p.oneIn(10) {
				start := uint64(len(a.code))
				a.op(vm.JUMPDEST).push(start).op(vm.JUMP)
			}
		}},
		weighted{2, func() {
			a.push(pick(p.dice, uint64(0), 1, 32, 100, 5000, 60_000)).push(0).op(vm.RETURN)
		}},
		weighted{5, func() { a.op(vm.STOP) }},
	)
}

// initCode returns init code of any kind.
func (p *programmer) initCode(depth int) []byte {
	before := func(a *assembler) {
		for range p.IntN(4) {
			p.statement(a, depth+1)
		}
	}
	after := func(emit func(*assembler)) []byte {
		a := new(assembler)
		before(a)
		emit(a)
		return a.bytes()
	}
	var code []byte
	p.oneOf(
		weighted{1, func() { code = after(func(a *assembler) { a.op(vm.STOP) }) }},
		weighted{1, func() { code = after(func(a *assembler) { p.destination(a); a.op(vm.SELFDESTRUCT) }) }},
		weighted{1, func() { code = after(p.ending) }},
		weighted{1, func() { // zeros, up to and beyond the greatest length of code
			length := pick(p.dice, uint64(100), 2000, 24_575, 24_576, 24_577, 30_000)
			if depth > 0 {
				length = pick(p.dice, uint64(100), 500, 24_576)
			}
			code = after(func(a *assembler) { a.push(length).push(0).op(vm.RETURN) })
		}},
		weighted{1, func() { code = deploying(p.oddCode(), before) }},
		weighted{3, func() { code = phoenix(p.IntN(phoenixKinds)) }},
		weighted{1, func() { code = metamorph(p.template) }},
		weighted{1, func() { // the init code is the runtime code
			code = after(func(a *assembler) {
				a.op(vm.CODESIZE).push(0).push(0).op(vm.CODECOPY, vm.CODESIZE).push(0).op(vm.RETURN)
			})
		}},
		weighted{6, func() { code = deploying(p.runtime(depth), before) }},
	)
	return code
}

// oddCode returns code that begins with 0xEF or nearly is a delegation.
func (p *programmer) oddCode() []byte {
	target := p.address()
	delegation := append([]byte{0xef, 0x01, 0x00}, target[:]...)
	shapes := [][]byte{{0xef}, {0xef, 0}, {0xef, 1, 0}, append([]byte{0xef, 0x01, 0x01}, target[:]...), delegation[:22], append(delegation[:23:23], 0), {0}}
	if p.delegationShapes {
		shapes = append(shapes, delegation, delegation)
	}
	return pick(p.dice, shapes...)
}
