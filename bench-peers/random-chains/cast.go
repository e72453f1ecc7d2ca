package main

import (
	"crypto/ecdsa"
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// The numbers of accounts of each kind.
const (
	keyCount      = 9
	senderCount   = 5 // the first keys; the others mostly authorise delegations
	contractCount = 14
	emptyCount    = 4
	factoryCount  = 3
	absentCount   = 3
	createdCount  = 3 // senders whose first creations are known
)

// reborn is a contract that a factory can create again and again.
type reborn struct {
	address  common.Address
	factory  common.Address
	salt     uint64
	initCode []byte
}

// input returns what has the factory create the contract.
func (r reborn) input() []byte { return append(word(r.salt), r.initCode...) }

// cast has the accounts that take part in a chain.
type cast struct {
	keys      []*ecdsa.PrivateKey
	owners    []common.Address // of the keys
	contracts []common.Address
	empties   []common.Address
	factories []common.Address
	templates []common.Address
	initCodes [][]byte
	reborn    []reborn
	coinbases []common.Address
	deposits  common.Address
}

// addresses returns addresses that depend on the seed, a kind and a number.
func addresses(seed int64, kind byte, count int) []common.Address {
	all := make([]common.Address, count)
	for i := range all {
		all[i] = common.BytesToAddress(digest(seed, kind, i)[12:])
	}
	return all
}

func digest(seed int64, kind byte, number int) []byte {
	return crypto.Keccak256(binary.BigEndian.AppendUint64([]byte{kind, byte(number)}, uint64(seed)))
}

// drawCast chooses the accounts, and names them to the programmer.
func drawCast(seed int64, p *programmer) *cast {
	c := &cast{
		contracts: addresses(seed, 'c', contractCount),
		empties:   addresses(seed, 'e', emptyCount),
		factories: addresses(seed, 'f', factoryCount),
		templates: addresses(seed, 't', 1),
		deposits:  addresses(seed, 'd', 1)[0],
	}
	for i := range keyCount {
		key, err := crypto.ToECDSA(digest(seed, 'k', i))
		must(err)
		c.keys = append(c.keys, key)
		c.owners = append(c.owners, crypto.PubkeyToAddress(key.PublicKey))
	}
	first := c.templates[0]
	first[common.AddressLength-1] &= 0xf0 // a metamorph adds a number below 4
	c.templates = nil
	for i := range templateCount {
		next := first
		next[common.AddressLength-1] += byte(i)
		c.templates = append(c.templates, next)
	}
	p.template = first

	known := func(more ...common.Address) { p.known = append(p.known, more...) }
	known(c.owners...)
	for n := 1; n <= lastPrecompile; n++ {
		known(precompile(n))
	}
	known(precompile(p256Verify), common.Address{}, params.SystemAddress)
	if p.newest >= cancun {
		known(params.BeaconRootsAddress, params.HistoryStorageAddress, params.WithdrawalQueueAddress, params.ConsolidationQueueAddress)
	}
	known(addresses(seed, 'a', absentCount)...)
	known(c.contracts...)
	known(c.empties...)
	known(c.factories...)
	known(c.templates...)
	c.drawReborn(p)
	for i, r := range c.reborn {
		known(r.address)
		if i < 6 {
			known(crypto.CreateAddress(r.address, 1)) // its child
		}
	}
	for _, sender := range c.owners[:createdCount] {
		known(crypto.CreateAddress(sender, 0), crypto.CreateAddress(sender, 1))
	}
	fresh := addresses(seed, 'b', 2)
	known(fresh[0])
	c.coinbases = append(fresh, common.Address{}, c.owners[0], c.owners[4], c.owners[8], c.contracts[1], c.contracts[3], c.contracts[5],
		c.empties[0], c.empties[3], precompile(2), precompile(9), c.reborn[0].address, c.reborn[1].address, c.factories[0])
	return c
}

// drawReborn chooses init codes, and computes where the factories create them.
func (c *cast) drawReborn(p *programmer) {
	for kind := range phoenixKinds {
		c.initCodes = append(c.initCodes, phoenix(kind))
	}
	c.initCodes = append(c.initCodes, metamorph(p.template), p.initCode(0), p.initCode(0))
	for _, code := range c.initCodes {
		add := func(factory common.Address, salt uint64) {
			address := crypto.CreateAddress2(factory, common.BytesToHash(word(salt)), crypto.Keccak256(code))
			c.reborn = append(c.reborn, reborn{address, factory, salt, code})
		}
		for _, f := range c.factories {
			add(f, 0)
		}
		add(c.factories[0], 1)
	}
}

// delegation returns the code of an account that delegates to another.
func delegation(to common.Address) []byte { return types.AddressToDelegation(to) }
