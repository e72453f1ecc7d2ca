package main

import (
	"encoding/binary"

	"github.com/crate-crypto/go-ipa/bandersnatch/fr"
	"golang.org/x/crypto/sha3"
)

// The inputs of arbor-lab's `inputs.rs`, byte for byte.

func keccak(message []byte) (digest [32]byte) {
	hash := sha3.NewLegacyKeccak256()
	hash.Write(message)
	hash.Sum(digest[:0])
	return digest
}

func digest(kind string, number uint64) [32]byte {
	return keccak(binary.BigEndian.AppendUint64([]byte(kind), number))
}

func fromLE(bytes []byte) (scalar fr.Element) {
	scalar.SetBytesLE(bytes)
	return scalar
}

func scalar(number uint64) fr.Element {
	bytes := digest("scalar", number)
	return fromLE(bytes[:])
}

type value struct {
	suffix int
	bytes  [32]byte
}

// leafValues are `count` values at suffixes 0, 256/count, ...
func leafValues(leaf uint64, count int) []value {
	values := make([]value, count)
	for i := range values {
		suffix := i * (256 / count)
		values[i] = value{suffix, digest("value", leaf*256+uint64(suffix))}
	}
	return values
}

// valueScalars are a value's two halves, the lower one with 2^128 added.
func valueScalars(bytes [32]byte) (low, high fr.Element) {
	var marked [17]byte
	copy(marked[:], bytes[:16])
	marked[16] = 1
	return fromLE(marked[:]), fromLE(bytes[16:])
}

func stem(number uint64) fr.Element {
	bytes := digest("stem", number)
	return fromLE(bytes[:31])
}

func address(number uint64) (address [32]byte) {
	address = digest("address", number)
	clear(address[:12])
	return address
}

// slotIndex is (256^31 + slot) / 256, least significant byte first.
func slotIndex(number uint64) (index [32]byte) {
	slot := digest("slot", number)
	for i := range 31 {
		index[i] = slot[30-i]
	}
	index[30]++
	if index[30] == 0 {
		index[31] = 1
	}
	return index
}
