package main

import (
	"encoding/binary"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// lastPrecompile is the highest of the addresses from 1 on that any fork uses for precompiles.
const lastPrecompile = 0x11

// p256Verify is the address of the precompile that Osaka adds.
const p256Verify = 0x100

func precompile(n int) common.Address { return common.BytesToAddress([]byte{byte(n >> 8), byte(n)}) }

func word(n uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 24), n) }

func addressWord(a common.Address) []byte { return common.LeftPadBytes(a[:], 32) }

// precompileInput returns an input for a precompile, mostly of a form that it accepts.
func precompileInput(d dice, n int) []byte {
	if d.oneIn(5) {
		length := pick(d, 0, 1, 64, 96, 128, 160, 192, 213, 256, 288, 384, 512)
		if d.oneIn(2) {
			return make([]byte, length)
		}
		return d.bytes(length)
	}
	switch n {
	case 0x01: // ECRECOVER
		digest := d.bytes(32)
		key, _ := crypto.ToECDSA(crypto.Keccak256(digest))
		signature, _ := crypto.Sign(digest, key)
		return slices.Concat(digest, word(uint64(signature[64])+27), signature[:64], d.bytes(d.IntN(3)))
	case 0x05:
		return modexpInput(d)
	case 0x06, 0x07, 0x08: // the curve alt_bn128
		zero, on, off := make([]byte, 64), append(word(1), word(2)...), append(word(1), word(3)...)
		if n == 0x08 {
			return slices.Concat(pick(d, zero, on, off), make([]byte, 128), pick(d, zero, on), make([]byte, 128), make([]byte, d.IntN(2)))
		}
		random := d.bytes(64)
		return slices.Concat(pick(d, zero, on, off, random), pick(d, zero, on, off, random), d.bytes(7*d.IntN(2)))
	case 0x09: // BLAKE2F: rounds, state, message, offset, final
		input := d.bytes(213)
		copy(input, []byte{0, 0, byte(d.IntN(3)), byte(d.IntN(256))})
		input[212] = byte(d.IntN(8) / 3)
		return input
	case 0x0a: // KZG point evaluation
		return d.bytes(192)
	case 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11: // the curve BLS12-381
		unit := []int{256, 160, 512, 288, 384, 64, 128}[n-0x0b]
		input := make([]byte, unit*(1+d.IntN(3)/2))
		switch d.IntN(4) {
		case 0:
			input[len(input)-1] = 1
		case 1:
			input[63] = byte(d.IntN(5))
		}
		return input
	}
	return d.bytes(d.IntN(200))
}

func modexpInput(d dice) []byte {
	length := func() []byte {
		switch d.IntN(12) {
		case 0:
			return word(0)
		case 1:
			return word(uint64(1000 + d.IntN(300)))
		case 2:
			return word(1 << 40)
		}
		return word(uint64(1 + d.IntN(70)))
	}
	body := d.bytes(d.IntN(220))
	if d.oneIn(3) {
		clear(body[len(body)/3:])
	}
	base := length()
	if d.oneIn(8) {
		base = d.bytes(32)
	}
	return slices.Concat(base, length(), length(), body)
}
