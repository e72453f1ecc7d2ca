package main

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
)

// assembler collects EVM code. Data follows the code; the code pushes the data's offset, which is known at the end.
type assembler struct {
	code       []byte
	segments   [][]byte
	references []reference
}

// reference is a place in the code at which the offset of a segment is to be written.
type reference struct{ at, segment int }

func (a *assembler) op(ops ...vm.OpCode) *assembler {
	for _, o := range ops {
		a.code = append(a.code, byte(o))
	}
	return a
}

// push pushes a number with the shortest PUSH that every fork has.
func (a *assembler) push(number uint64) *assembler {
	bytes := binary.BigEndian.AppendUint64(nil, number)
	for len(bytes) > 1 && bytes[0] == 0 {
		bytes = bytes[1:]
	}
	return a.pushBytes(bytes)
}

func (a *assembler) pushBytes(bytes []byte) *assembler {
	a.op(vm.PUSH1 + vm.OpCode(len(bytes)-1))
	a.code = append(a.code, bytes...)
	return a
}

func (a *assembler) pushAddress(address common.Address) *assembler { return a.pushBytes(address[:]) }

// pushOffset pushes the offset of data, which is placed behind the code.
func (a *assembler) pushOffset(data []byte) *assembler {
	a.op(vm.PUSH2)
	a.references = append(a.references, reference{len(a.code), len(a.segments)})
	a.segments = append(a.segments, data)
	a.code = append(a.code, 0, 0)
	return a
}

// copyToMemory copies data to the start of memory.
func (a *assembler) copyToMemory(data []byte) *assembler {
	return a.push(uint64(len(data))).pushOffset(data).push(0).op(vm.CODECOPY)
}

// unless emits code that is jumped over if the top of the stack is not zero.
func (a *assembler) unless(emit func()) {
	a.op(vm.PUSH2)
	at := len(a.code)
	a.code = append(a.code, 0, 0)
	a.op(vm.JUMPI)
	emit()
	binary.BigEndian.PutUint16(a.code[at:], uint16(len(a.code)))
	a.op(vm.JUMPDEST)
}

// bytes returns the code with its data.
func (a *assembler) bytes() []byte {
	code := append([]byte(nil), a.code...)
	if len(a.segments) == 0 {
		return code
	}
	code = append(code, byte(vm.STOP))
	for i, segment := range a.segments {
		for _, r := range a.references {
			if r.segment == i {
				binary.BigEndian.PutUint16(code[r.at:], uint16(len(code)))
			}
		}
		code = append(code, segment...)
	}
	return code
}

// deploying returns init code that returns the runtime code, after what `before` emits.
func deploying(runtime []byte, before func(*assembler)) []byte {
	a := new(assembler)
	if before != nil {
		before(a)
	}
	return a.copyToMemory(runtime).push(uint64(len(runtime))).push(0).op(vm.RETURN).bytes()
}
