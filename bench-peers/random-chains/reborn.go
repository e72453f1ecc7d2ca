package main

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
)

// A contract is reborn if it destroys itself and is created again at the same address by a factory. These contracts
// are the sharpest tests of what a state forgets.

// phoenixKinds is the number of kinds of phoenix: 1 also stores the value sent, 2 and 3 make a child, 3 calls it.
const phoenixKinds = 4

// phoenix returns the init code of a contract that counts its calls, and destroys itself if it is given an address.
func phoenix(kind int) []byte {
	childRuntime := new(assembler).push(7).push(0).op(vm.SSTORE, vm.CALLER, vm.SELFDESTRUCT).bytes()
	child := deploying(childRuntime, func(a *assembler) { a.op(vm.NUMBER).push(uint64(kind)).op(vm.SSTORE) })
	runtime := new(assembler).op(vm.CALLDATASIZE)
	runtime.unless(func() {
		runtime.push(0).op(vm.SLOAD).push(1).op(vm.ADD).push(0).op(vm.SSTORE)
		runtime.op(vm.NUMBER, vm.NUMBER).push(3).op(vm.AND, vm.SSTORE)
		if kind >= 2 {
			runtime.copyToMemory(child).push(uint64(len(child))).push(0).push(0).op(vm.CREATE).push(9).op(vm.SSTORE)
		}
		if kind == 3 {
			for range 5 {
				runtime.push(0)
			}
			runtime.push(9).op(vm.SLOAD).push(60_000).op(vm.CALL, vm.POP)
		}
		runtime.op(vm.STOP)
	})
	runtime.push(0).op(vm.CALLDATALOAD, vm.SELFDESTRUCT)
	return deploying(runtime.bytes(), func(a *assembler) {
		a.push(uint64(kind+1)).push(1).op(vm.SSTORE, vm.NUMBER).push(2).op(vm.SSTORE)
		a.push(0).op(vm.SLOAD).push(3).op(vm.SSTORE) // not zero if storage of an earlier life is left
		if kind == 1 {
			a.op(vm.CALLVALUE).push(4).op(vm.SSTORE)
		}
	})
}

// templateCount is the number of contracts whose code a metamorph copies.
const templateCount = 4

// metamorph returns init code that returns the code of one of the templates, which the block's number selects: the
// address is the same for all of them.
func metamorph(firstTemplate common.Address) []byte {
	a := new(assembler).op(vm.NUMBER).push(templateCount - 1).op(vm.AND).pushAddress(firstTemplate).op(vm.ADD)
	a.op(vm.DUP1, vm.EXTCODESIZE, vm.DUP1).push(0).push(0).op(vm.DUP5, vm.EXTCODECOPY)
	a.op(vm.NUMBER).push(templateCount - 1).op(vm.AND).push(1).op(vm.SSTORE)
	return a.push(0).op(vm.RETURN).bytes()
}

// factory describes a contract that creates others: the input is a salt of 32 bytes, and the init code.
type factory struct {
	create2 bool
	// twice: it has its creation destroy itself at once, and creates it again.
	twice bool
}

func (f factory) code() []byte {
	a := new(assembler)
	rounds := 1
	if f.twice {
		rounds = 2
	}
	for round := range rounds {
		a.push(32).op(vm.CALLDATASIZE, vm.SUB).push(32).push(0).op(vm.CALLDATACOPY)
		if f.create2 {
			a.push(0).op(vm.CALLDATALOAD)
		}
		a.push(32).op(vm.CALLDATASIZE, vm.SUB).push(0)
		if round == 0 {
			a.op(vm.CALLVALUE)
		} else {
			a.push(0)
		}
		if f.create2 {
			a.op(vm.CREATE2)
		} else {
			a.op(vm.CREATE)
		}
		a.op(vm.DUP1).push(uint64(round)).op(vm.SSTORE)
		if f.twice {
			a.op(vm.ADDRESS).push(0).op(vm.MSTORE)
			a.push(0).push(0).push(32).push(0).push(0).op(vm.DUP6).push(100_000).op(vm.CALL, vm.POP)
		}
		a.op(vm.POP)
	}
	return a.op(vm.STOP).bytes()
}
