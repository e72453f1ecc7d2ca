package main

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// A mutant is a block of the chain with one thing changed: a field of the header, a transaction, a withdrawal, an
// ommer, or a byte. The roots in its header match its body, so that it is not refused for them. geth says what
// becomes of it after the block's parent; most mutants are refused, some are other valid blocks.
type mutant struct {
	File     string
	Block    int
	Kind     string
	Accepted bool
	// Reason is geth's, if it refuses the mutant.
	Reason string
	// Header is none if the mutant is no block for geth.
	Header  *mutantHeader `json:",omitempty"`
	encoded []byte
}

// mutantHeader has what a witness says about its block.
type mutantHeader struct {
	Number                    string
	Hash, State, ReceiptsRoot common.Hash
}

// mutator makes mutants of one block.
type mutator struct {
	dice
	*maker
	block  *types.Block
	parent *types.Header
}

// mutate returns a mutant of the block, or nil if the drawn change does not apply to it.
func (m *mutator) mutate() *mutant {
	var made *mutant
	changed := func(kind string, header *types.Header, body *types.Body) {
		if header == nil || body == nil {
			return
		}
		encoded, err := rlp.EncodeToBytes(types.NewBlockWithHeader(header).WithBody(*body))
		must(err)
		made = &mutant{Kind: kind, encoded: encoded}
	}
	m.dice.oneOf(
		weighted{5, func() {
			kind, header := m.otherHeader()
			changed("header "+kind, header, m.block.Body())
		}},
		weighted{5, func() {
			kind, body := m.otherTransactions()
			header := m.block.Header()
			if body != nil {
				header.TxHash = types.DeriveSha(types.Transactions(body.Transactions), trie.NewStackTrie(nil))
			}
			changed("transaction "+kind, header, body)
		}},
		weighted{1, func() {
			kind, body := m.otherWithdrawals()
			header := m.block.Header()
			if body != nil {
				root := types.DeriveSha(types.Withdrawals(body.Withdrawals), trie.NewStackTrie(nil))
				header.WithdrawalsHash = &root
			}
			changed("withdrawal "+kind, header, body)
		}},
		weighted{2, func() {
			kind, body := m.otherOmmers()
			header := m.block.Header()
			if body != nil {
				header.UncleHash = types.CalcUncleHash(body.Uncles)
			}
			changed("ommer "+kind, header, body)
		}},
		weighted{3, func() { made = m.otherByte() }},
	)
	original, err := rlp.EncodeToBytes(m.block)
	must(err)
	if made == nil || bytes.Equal(made.encoded, original) || m.cannotBeCompared(made.encoded) {
		return nil
	}
	return made
}

// cannotBeCompared reports whether geth judges the block by what arbor does not have, or the other way round.
func (m *mutator) cannotBeCompared(encoded []byte) bool {
	var block types.Block
	if rlp.DecodeBytes(encoded, &block) != nil {
		return false
	}
	now := uint64(time.Now().Unix())
	work := block.Difficulty().Sign() > 0
	// geth compares times with its clock before the merge, and no total difficulty with the one of the merge.
	return work && block.Time() > now || work != (m.block.Difficulty().Sign() > 0)
}

func flip(d dice, hash common.Hash) common.Hash {
	hash[d.IntN(len(hash))] ^= 1 << d.IntN(8)
	return hash
}

// near returns a number one below or above; around zero and the greatest number, above and below.
func near(d dice, n uint64) uint64 {
	if n != 0 && d.oneIn(2) || n == 1<<64-1 {
		return n - 1
	}
	return n + 1
}

// otherHeader changes one field. Optional fields that the block does not have are added.
func (m *mutator) otherHeader() (string, *types.Header) {
	d, h := m.dice, m.block.Header()
	optionalNumber := func(field **uint64, step uint64) {
		if *field == nil {
			*field = new(uint64)
			return
		}
		n := near(d, **field/step) * step
		*field = &n
	}
	optionalHash := func(field **common.Hash) {
		hash := common.Hash{}
		if *field != nil {
			hash = flip(d, **field)
		}
		*field = &hash
	}
	bound := m.parent.GasLimit / params.GasLimitBoundDivisor
	fields := []struct {
		name   string
		change func()
	}{
		{"parent", func() { h.ParentHash = flip(d, h.ParentHash) }},
		{"ommers", func() { h.UncleHash = flip(d, h.UncleHash) }},
		{"coinbase", func() { h.Coinbase = pick(d, m.coinbases...) }},
		{"state", func() { h.Root = flip(d, h.Root) }},
		{"transactions", func() { h.TxHash = flip(d, h.TxHash) }},
		{"receipts", func() { h.ReceiptHash = flip(d, h.ReceiptHash) }},
		{"bloom", func() { h.Bloom[d.IntN(len(h.Bloom))] ^= 1 << d.IntN(8) }},
		{"difficulty", func() { h.Difficulty.SetUint64(near(d, h.Difficulty.Uint64())) }},
		{"number", func() { h.Number.SetUint64(h.Number.Uint64() + 1 + d.Uint64N(3)) }},
		{"gas limit", func() {
			h.GasLimit = pick(d, h.GasLimit+1, h.GasLimit-1, m.parent.GasLimit+bound-1, m.parent.GasLimit+bound, m.parent.GasLimit-bound,
				m.parent.GasLimit-bound+1, h.GasUsed-1, 1<<63, 2*h.GasLimit, 4999)
		}},
		{"gas used", func() { h.GasUsed = pick(d, near(d, h.GasUsed), h.GasLimit+1, 0) }},
		{"time", func() {
			h.Time = pick(d, m.parent.Time, m.parent.Time-1, m.parent.Time+1, h.Time+1, h.Time+900, 0)
		}},
		{"extra", func() { h.Extra = pick(d, nil, d.bytes(32), d.bytes(33), slices.Clone(params.DAOForkBlockExtra)) }},
		{"mix digest", func() { h.MixDigest = flip(d, h.MixDigest) }},
		{"nonce", func() { h.Nonce[d.IntN(8)] ^= 1 }},
		{"base fee", func() {
			if h.BaseFee == nil {
				h.BaseFee = new(big.Int).SetUint64(params.InitialBaseFee)
			} else {
				h.BaseFee.SetUint64(near(d, h.BaseFee.Uint64()))
			}
		}},
		{"withdrawals", func() { optionalHash(&h.WithdrawalsHash) }},
		{"blob gas used", func() { optionalNumber(&h.BlobGasUsed, pick(d, uint64(1), params.BlobTxBlobGasPerBlob)) }},
		{"excess blob gas", func() { optionalNumber(&h.ExcessBlobGas, pick(d, uint64(1), params.BlobTxBlobGasPerBlob)) }},
		{"beacon root", func() { optionalHash(&h.ParentBeaconRoot) }},
		{"requests", func() { optionalHash(&h.RequestsHash) }},
	}
	field := pick(d, fields...)
	field.change()
	return field.name, h
}

// otherTransactions changes one transaction.
func (m *mutator) otherTransactions() (string, *types.Body) {
	d, body := m.dice, m.block.Body()
	all := slices.Clone(body.Transactions)
	body.Transactions = all
	if tx := m.refused[int(m.block.NumberU64())]; tx != nil && d.oneIn(2) {
		body.Transactions = append(all, tx)
		return "refused", body
	}
	if len(all) == 0 {
		return "", nil
	}
	at := d.IntN(len(all))
	switch d.IntN(6) {
	case 0:
		body.Transactions = slices.Delete(all, at, at+1)
		return "removed", body
	case 1:
		body.Transactions = slices.Insert(all, at, all[at])
		return "repeated", body
	case 2:
		other := d.IntN(len(all))
		all[at], all[other] = all[other], all[at]
		return "exchanged", body
	}
	data, kind := m.otherTransaction(all[at])
	if data == nil {
		return "", nil
	}
	signer := types.LatestSignerForChainID(m.genesis.Config.ChainID)
	all[at] = types.MustSignNewTx(m.keys[d.IntN(senderCount)], signer, data)
	return kind, body
}

// otherTransaction returns the content of a transaction with one thing changed, to be signed again by any sender.
func (m *mutator) otherTransaction(tx *types.Transaction) (types.TxData, string) {
	d := m.dice
	legacy := &types.LegacyTx{Nonce: tx.Nonce(), GasPrice: tx.GasPrice(), Gas: tx.Gas(), To: tx.To(), Value: tx.Value(), Data: tx.Data()}
	switch d.IntN(8) {
	case 0:
		legacy.Nonce = near(d, legacy.Nonce)
		return legacy, "nonce"
	case 1:
		legacy.Gas = pick(d, 0, 20_999, 21_000, legacy.Gas-1, m.block.GasLimit(), m.block.GasLimit()+1, 1<<24+1, 1<<63)
		return legacy, "gas"
	case 2:
		legacy.Value = new(big.Int).Lsh(common.Big1, uint(d.IntN(257)))
		return legacy, "value"
	case 3:
		legacy.GasPrice = new(big.Int).Lsh(common.Big1, uint(d.IntN(257)))
		return legacy, "price"
	case 4:
		legacy.Data = make([]byte, pick(d, 1, 24_576, 49_152, 49_153))
		return legacy, "data"
	case 5: // also before its fork
		return &types.AccessListTx{ChainID: m.genesis.Config.ChainID, Nonce: tx.Nonce(), GasPrice: tx.GasPrice(), Gas: tx.Gas(), To: tx.To(),
			Value: tx.Value(), Data: tx.Data()}, "access list"
	case 6:
		return &types.DynamicFeeTx{ChainID: m.genesis.Config.ChainID, Nonce: tx.Nonce(), GasFeeCap: tx.GasFeeCap(),
			GasTipCap: new(big.Int).Add(tx.GasFeeCap(), big.NewInt(int64(d.IntN(2)))), Gas: tx.Gas(), To: tx.To(), Value: tx.Value(),
			Data: tx.Data()}, "dynamic fee"
	}
	return legacy, "sender"
}

func (m *mutator) otherWithdrawals() (string, *types.Body) {
	d, body := m.dice, m.block.Body()
	if body.Withdrawals == nil {
		if m.block.Difficulty().Sign() > 0 {
			return "", nil
		}
		body.Withdrawals = []*types.Withdrawal{}
		return "too early", body
	}
	if len(body.Withdrawals) == 0 {
		body.Withdrawals = append(body.Withdrawals, &types.Withdrawal{Amount: uint64(d.IntN(2))})
		return "added", body
	}
	at := d.IntN(len(body.Withdrawals))
	changed := *body.Withdrawals[at]
	body.Withdrawals = slices.Clone(body.Withdrawals)
	body.Withdrawals[at] = &changed
	switch d.IntN(4) {
	case 0:
		changed.Amount = near(d, changed.Amount)
		return "amount", body
	case 1:
		changed.Address[0] ^= 1
		return "address", body
	case 2:
		changed.Index++
		return "index", body
	}
	body.Withdrawals = slices.Delete(body.Withdrawals, at, at+1)
	return "removed", body
}

func (m *mutator) otherOmmers() (string, *types.Body) {
	d, body := m.dice, m.block.Body()
	height := m.block.NumberU64()
	if m.block.Difficulty().Sign() == 0 || height < 3 {
		return "", nil
	}
	if len(body.Uncles) == 0 || d.oneIn(3) {
		back := 1 + d.Uint64N(min(height, 8)) // the parent is no ommer, nor is any block of the chain
		ancestor := types.CopyHeader(m.blockAt(height - back))
		kind := "an ancestor"
		if d.oneIn(2) {
			ancestor.Root = d.randomHash()
			kind = fmt.Sprintf("of %d blocks before", back)
		}
		body.Uncles = append(slices.Clone(body.Uncles), ancestor)
		return kind, body
	}
	ommer := types.CopyHeader(body.Uncles[0])
	body.Uncles = []*types.Header{ommer}
	switch d.IntN(7) {
	case 0:
		body.Uncles = append(body.Uncles, types.CopyHeader(ommer))
		return "twice", body
	case 1:
		ommer.Difficulty.SetUint64(near(d, ommer.Difficulty.Uint64()))
		return "difficulty", body
	case 2:
		ommer.Number.SetUint64(near(d, ommer.Number.Uint64()))
		return "number", body
	case 3:
		ommer.Time = pick(d, 0, ommer.Time+1)
		return "time", body
	case 4:
		ommer.GasLimit *= 2
		return "gas limit", body
	case 5:
		ommer.Extra = d.bytes(33)
		return "extra", body
	}
	body.Uncles = nil
	return "removed", body
}

// blockAt returns a header of the chain that was made.
func (m *mutator) blockAt(height uint64) *types.Header {
	if height == 0 {
		return m.genesis.ToBlock().Header()
	}
	return m.blocks[height-1].Header()
}

// otherByte flips one bit within the block's list, or cuts off its end. If the bit is in the body and the body still is
// one, half of these mutants get the roots of the new body.
func (m *mutator) otherByte() *mutant {
	encoded, err := rlp.EncodeToBytes(m.block)
	must(err)
	if m.dice.oneIn(16) {
		return &mutant{Kind: "cut", encoded: encoded[:1+m.dice.IntN(len(encoded)-1)]}
	}
	payload, _, err := rlp.SplitList(encoded)
	must(err)
	at := len(encoded) - len(payload) + m.dice.IntN(len(payload))
	encoded[at] ^= 1 << m.dice.IntN(8)
	var block types.Block
	if m.dice.oneIn(2) || rlp.DecodeBytes(encoded, &block) != nil {
		return &mutant{Kind: "byte", encoded: encoded}
	}
	header := block.Header()
	header.TxHash = types.DeriveSha(block.Transactions(), trie.NewStackTrie(nil))
	header.UncleHash = types.CalcUncleHash(block.Uncles())
	if header.WithdrawalsHash != nil {
		root := types.DeriveSha(block.Withdrawals(), trie.NewStackTrie(nil))
		header.WithdrawalsHash = &root
	}
	encoded, err = rlp.EncodeToBytes(types.NewBlockWithHeader(header).WithBody(*block.Body()))
	must(err)
	return &mutant{Kind: "byte with roots", encoded: encoded}
}
