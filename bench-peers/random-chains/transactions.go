package main

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// draft is a transaction in the making.
type draft struct {
	kind        string
	sender      int // number of a key
	nonce       uint64
	to          *common.Address
	value       *uint256.Int
	data        []byte
	accessList  types.AccessList
	authorised  []types.SetCodeAuthorization
	gas         uint64
	transaction *types.Transaction
}

func (d *draft) call(kind string, to common.Address, data []byte) {
	d.kind, d.to, d.data = kind, &to, data
}

// draft draws the next transaction; if there is none, it returns the reason.
func (c *content) draft() (draft, string) {
	d := draft{sender: c.IntN(senderCount), value: new(uint256.Int)}
	if c.oneIn(8) {
		d.sender = c.IntN(keyCount)
	}
	d.nonce = c.states.GetNonce(c.owners[d.sender])
	if c.percent(35) {
		d.value.SetUint64(pick(c.dice, uint64(1), 2, 1000, 1<<40, 1<<60))
	}
	if c.theme != nil && c.percent(75) {
		c.drawThemed(&d)
	} else {
		c.drawPurpose(&d)
	}
	txType := c.drawType(&d)
	if txType > types.LegacyTxType && c.percent(60) {
		d.accessList = c.drawAccessList()
	}
	if txType == types.SetCodeTxType {
		c.drawAuthorisations(&d)
	}
	if reason := c.drawGas(&d); reason != "" {
		return d, reason
	}
	c.sign(&d, c.envelope(&d, txType))
	return d, ""
}

// drawThemed draws a transaction around the contract that the block is about.
func (c *content) drawThemed(d *draft) {
	c.oneOf(
		weighted{2, func() { d.call("factory", c.theme.factory, c.theme.input()) }},
		weighted{2, func() { d.call("reborn", c.theme.address, addressWord(c.address())) }},
		weighted{1, func() { d.call("reborn", c.theme.address, nil) }},
		weighted{1, func() { d.call("transfer", c.theme.address, make([]byte, 5)) }},
		weighted{1, func() { d.call("reborn", crypto.CreateAddress(c.theme.address, 1), nil) }},
	)
}

func (c *content) drawPurpose(d *draft) {
	c.oneOf(
		weighted{3, func() { d.call("transfer", c.address(), nil) }},
		weighted{3, func() {
			d.kind = "create"
			if !c.oneIn(20) {
				d.data = c.initCode(0)
			}
		}},
		weighted{6, func() {
			to := c.address()
			if c.percent(70) {
				to = c.addressWithCode(c.known, 20)
			}
			d.call("call", to, pick(c.dice, nil, nil, c.bytes(c.IntN(150)), addressWord(c.address()), addressWord(c.address())))
		}},
		weighted{4, func() {
			r := reborn{salt: uint64(c.IntN(2)), initCode: pick(c.dice, c.initCodes...)}
			d.call("factory", pick(c.dice, c.factories...), r.input())
		}},
		weighted{3, func() {
			var all []common.Address
			for _, r := range c.reborn {
				all = append(all, r.address)
			}
			to := c.addressWithCode(all, 8)
			d.call("reborn", to, nil)
			if c.percent(60) {
				d.data = addressWord(c.address())
				if c.oneIn(5) {
					d.data = addressWord(to)
				}
			}
		}},
		weighted{1, func() {
			n := 1 + c.IntN(lastPrecompile+1)
			if n > lastPrecompile {
				n = p256Verify
			}
			d.call("precompile", precompile(n), precompileInput(c.dice, n))
		}},
		weighted{2, func() {
			if c.rules.IsCancun {
				c.drawSystemCall(d)
				return
			}
			d.call("call", c.address(), nil)
		}},
	)
}

// addressWithCode returns one of the addresses, and tries several times to find one that has code.
func (c *content) addressWithCode(all []common.Address, attempts int) common.Address {
	found := pick(c.dice, all...)
	for range attempts {
		if len(c.states.GetCode(found)) > 0 {
			break
		}
		found = pick(c.dice, all...)
	}
	return found
}

// drawSystemCall draws a call of a contract that has a part in consensus.
func (c *content) drawSystemCall(d *draft) {
	c.oneOf(
		weighted{1, func() {
			d.call("beaconroot", params.BeaconRootsAddress, word(c.header.Time-uint64(secondsPerBlock*c.IntN(3))))
			d.value.Clear()
		}},
		weighted{1, func() {
			d.call("blockhash", params.HistoryStorageAddress, word(c.header.Number.Uint64()-uint64(c.IntN(5))))
			d.value.Clear()
		}},
		weighted{2, func() {
			if c.oneIn(2) {
				d.call("request", params.WithdrawalQueueAddress, c.bytes(56))
			} else {
				d.call("request", params.ConsolidationQueueAddress, c.bytes(96))
			}
			d.value.SetUint64(pick(c.dice, uint64(0), 1, 1, 1, 5))
		}},
		weighted{2, func() {
			if c.genesis.Config.DepositContractAddress == (common.Address{}) {
				d.call("transfer", c.address(), nil)
				return
			}
			d.call("deposit", c.deposits, depositData(c.dice))
			if c.oneIn(5) {
				d.data = d.data[:500]
			}
		}},
	)
}

// depositData returns the data of a deposit's event: offsets and lengths as the ABI encodes five byte strings.
func depositData(d dice) []byte {
	data := d.bytes(depositLength)
	offsets, lengths := []int{160, 256, 320, 384, 512}, []int{48, 32, 8, 96, 8}
	for i, offset := range offsets {
		copy(data[32*i:], word(uint64(offset)))
		copy(data[offset:], word(uint64(lengths[i])))
	}
	return data
}

// drawType draws a type of transaction that the block's fork has.
func (c *content) drawType(d *draft) byte {
	if !c.rules.IsBerlin || c.oneIn(2) {
		return types.LegacyTxType
	}
	known := []byte{types.AccessListTxType}
	if c.rules.IsLondon {
		known = append(known, types.DynamicFeeTxType)
	}
	if c.rules.IsCancun && d.to != nil && c.blobs < eip4844.MaxBlobsPerBlock(c.genesis.Config, c.header.Time) {
		known = append(known, types.BlobTxType)
	}
	if c.rules.IsPrague && d.to != nil {
		known = append(known, types.SetCodeTxType, types.SetCodeTxType)
	}
	return pick(c.dice, known...)
}

func (c *content) drawAccessList() types.AccessList {
	var list types.AccessList
	for range c.IntN(4) {
		entry := types.AccessTuple{Address: c.address()}
		for range c.IntN(4) {
			entry.StorageKeys = append(entry.StorageKeys, common.BytesToHash(word(c.slot())))
		}
		list = append(list, entry)
	}
	return list
}

// drawGas sets a gas limit that lets the transaction begin, and mostly end.
func (c *content) drawGas(d *draft) string {
	from := c.owners[d.sender]
	least, err := core.IntrinsicGas(d.data, d.accessList, d.authorised, from, d.to, d.value, c.rules)
	if err != nil {
		return "intrinsic gas"
	}
	if c.rules.IsPrague {
		floor, err := core.FloorDataGas(c.rules, from, d.to, d.value, d.data, d.accessList)
		if err != nil {
			return "floor of gas"
		}
		least = max(least, floor)
	}
	extra := pick(c.dice, 0, uint64(c.IntN(3000)), uint64(c.IntN(60_000)), uint64(c.IntN(200_000)), 300_000, 1_000_000, 1_000_000,
		1_000_000, 3_000_000, 3_000_000, 7_000_000)
	if c.theme != nil && c.percent(60) {
		extra = 400_000
	}
	d.gas = least + extra
	if d.gas > c.header.GasLimit-c.header.GasUsed && !c.oneIn(10) {
		return "block is full"
	}
	return ""
}

// envelope puts the draft into a transaction of the type, with fees that the block accepts.
func (c *content) envelope(d *draft, txType byte) types.TxData {
	config := c.genesis.Config
	base := new(uint256.Int)
	if c.header.BaseFee != nil {
		base.SetFromBig(c.header.BaseFee)
	}
	tip := uint256.NewInt(pick(c.dice, uint64(0), 0, 1, 1e9))
	limit := new(uint256.Int).Add(base, tip)
	if c.percent(30) {
		limit.AddUint64(limit, 12_345)
	}
	if c.oneIn(5) {
		tip.Set(limit)
	}
	chainID := uint256.MustFromBig(config.ChainID)
	switch txType {
	case types.AccessListTxType:
		return &types.AccessListTx{ChainID: config.ChainID, Nonce: d.nonce, GasPrice: limit.ToBig(), Gas: d.gas, To: d.to,
			Value: d.value.ToBig(), Data: d.data, AccessList: d.accessList}
	case types.DynamicFeeTxType:
		return &types.DynamicFeeTx{ChainID: config.ChainID, Nonce: d.nonce, GasTipCap: tip.ToBig(), GasFeeCap: limit.ToBig(), Gas: d.gas,
			To: d.to, Value: d.value.ToBig(), Data: d.data, AccessList: d.accessList}
	case types.BlobTxType:
		fee := uint256.MustFromBig(eip4844.CalcBlobFee(config, c.header))
		if c.oneIn(2) {
			fee.AddUint64(fee, 7)
		}
		left := eip4844.MaxBlobsPerBlock(config, c.header.Time) - c.blobs
		var hashes []common.Hash
		for range 1 + c.IntN(min(6, left)) {
			hash := c.randomHash()
			hash[0] = 1 // the version
			hashes = append(hashes, hash)
		}
		return &types.BlobTx{ChainID: chainID, Nonce: d.nonce, GasTipCap: tip, GasFeeCap: limit, Gas: d.gas, To: *d.to, Value: d.value,
			Data: d.data, AccessList: d.accessList, BlobFeeCap: fee, BlobHashes: hashes}
	case types.SetCodeTxType:
		return &types.SetCodeTx{ChainID: chainID, Nonce: d.nonce, GasTipCap: tip, GasFeeCap: limit, Gas: d.gas, To: *d.to, Value: d.value,
			Data: d.data, AccessList: d.accessList, AuthList: d.authorised}
	}
	return &types.LegacyTx{Nonce: d.nonce, GasPrice: limit.ToBig(), Gas: d.gas, To: d.to, Value: d.value.ToBig(), Data: d.data}
}

// sign signs the transaction; some of the oldest type without a chain id.
func (c *content) sign(d *draft, data types.TxData) {
	signer := types.MakeSigner(c.genesis.Config, c.header.Number, c.header.Time)
	if _, legacy := data.(*types.LegacyTx); legacy && c.rules.IsHomestead && c.percent(30) {
		signer = types.HomesteadSigner{}
	}
	d.transaction = types.MustSignNewTx(c.keys[d.sender], signer, data)
}

// drawAuthorisations draws delegations, some of which have no effect.
func (c *content) drawAuthorisations(d *draft) {
	next := map[int]uint64{d.sender: d.nonce + 1}
	for range 1 + c.IntN(4) {
		authority := c.IntN(keyCount)
		if c.percent(30) {
			authority = d.sender
		}
		if _, seen := next[authority]; !seen {
			next[authority] = c.states.GetNonce(c.owners[authority])
		}
		signed, counts := c.authorisation(authority, next[authority])
		code := c.states.GetCode(c.owners[authority])
		if _, delegates := types.ParseDelegation(code); counts && (len(code) == 0 || delegates) {
			next[authority]++
			c.made.Delegations++
		}
		d.authorised = append(d.authorised, signed)
		if c.percent(30) {
			d.to = &c.owners[authority]
		}
	}
}

// authorisation signs one delegation, and reports whether it should have an effect.
func (c *content) authorisation(authority int, nonce uint64) (types.SetCodeAuthorization, bool) {
	to := c.address()
	switch c.IntN(8) {
	case 0:
		to = common.Address{} // ends a delegation
	case 1:
		to = precompile(1 + c.IntN(lastPrecompile))
	case 2:
		to = c.owners[authority]
	case 3:
		to = pick(c.dice, c.owners...)
	case 4:
		to = pick(c.dice, c.reborn...).address
	}
	counts := true
	a := types.SetCodeAuthorization{ChainID: *uint256.MustFromBig(c.genesis.Config.ChainID), Address: to, Nonce: nonce}
	if c.percent(40) {
		a.ChainID.Clear() // of every chain
	}
	switch c.IntN(14) {
	case 0:
		a.Nonce, counts = nonce+1, false
	case 1:
		a.ChainID, counts = *uint256.NewInt(99), false
	case 2:
		if nonce > 0 {
			a.Nonce, counts = nonce-1, false
		}
	case 3:
		a.Nonce, counts = 1<<64-1, false
	}
	a, err := types.SignSetCode(c.keys[authority], a)
	must(err)
	if c.oneIn(20) {
		counts = false
		switch c.IntN(4) {
		case 0:
			a.V = byte(2 + c.IntN(250))
		case 1:
			a.R.Clear()
		case 2: // the other of the two signatures
			a.S.Sub(uint256.MustFromBig(crypto.S256().Params().N), &a.S)
			a.V ^= 1
		case 3:
			a.S.SetAllOne()
		}
	}
	return a, counts
}
