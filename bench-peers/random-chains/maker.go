package main

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/consensus/misc"
	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

const (
	genesisGasLimit = 30_000_000
	// longest is the greatest number of blocks of a usual chain, and longChain the least of a long one: more than
	// the 256 whose hashes BLOCKHASH gives.
	shortest, longest = 8, 40
	longChain         = 258
)

// maker makes one chain: block after block on the state that geth has after the block before.
type maker struct {
	options
	*cast
	*programmer
	schedule
	seed    int64
	length  int
	genesis *core.Genesis
	chain   *core.BlockChain
	engine  consensus.Engine
	blocks  []*types.Block
	// kinds has a word for each transaction of each block.
	kinds [][]string
	// refused has, for each block, a transaction that geth refused in it, if there was one.
	refused map[int]*types.Transaction
	made    counts
	// nextWithdrawal is the index of the next withdrawal.
	nextWithdrawal uint64
}

func engine() consensus.Engine { return beacon.New(ethash.NewFaker()) }

// openChain returns a chain in memory that keeps every state.
func openChain(genesis *core.Genesis, config vm.Config) (*core.BlockChain, error) {
	c := core.DefaultConfig().WithStateScheme(rawdb.HashScheme)
	c.ArchiveMode, c.Preimages, c.SnapshotLimit, c.VmConfig = true, true, 0, config
	return core.NewBlockChain(rawdb.NewMemoryDatabase(), genesis, engine(), c)
}

// newMaker draws the genesis block of a seed's chain.
func newMaker(seed int64, o options) *maker {
	d := diceFor(seed, -1, -1)
	m := &maker{options: o, seed: seed, engine: engine(), refused: map[int]*types.Transaction{}, made: newCounts()}
	m.length = shortest + d.IntN(longest-shortest+1)
	if o.long {
		m.length = longChain + d.IntN(longest)
	}
	m.schedule = drawSchedule(d, m.length)
	genesisTime := uint64(d.IntN(2)) * 1_600_000_000
	config := m.config(d, genesisTime)
	difficulty := big.NewInt(params.MinimumDifficulty.Int64() + d.Int64N(1<<20))
	if m.start[paris] == 0 {
		difficulty.SetUint64(0)
	}
	m.programmer = &programmer{dice: d, newest: m.schedule.last, delegationShapes: !o.leavesOut("delegation-shapes")}
	m.cast = drawCast(seed, m.programmer)
	alloc := allocator{programmer: m.programmer, cast: m.cast, schedule: m.schedule, config: config, blocks: m.length,
		emptyRipemd: !o.leavesOut("empty-ripemd")}
	m.genesis = &core.Genesis{Config: config, Timestamp: genesisTime, GasLimit: genesisGasLimit, Difficulty: difficulty, Alloc: alloc.draw()}
	if o.blocks > 0 {
		m.length = min(m.length, o.blocks)
	}
	return m
}

// run makes the blocks, then writes the merge that came about into the configuration.
func (m *maker) run() error {
	chain, err := openChain(m.genesis, vm.Config{})
	if err != nil {
		return fmt.Errorf("geth refuses the genesis block: %w", err)
	}
	defer chain.Stop()
	m.chain = chain
	for number := 1; number <= m.length; number++ {
		block, err := m.block(number)
		if err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
		if _, err := chain.InsertChain(types.Blocks{block}); err != nil {
			return fmt.Errorf("geth refuses its own block %d: %w", number, err)
		}
		m.blocks = append(m.blocks, block)
	}
	m.settleMerge()
	return nil
}

func (m *maker) settleMerge() {
	total := new(big.Int).Set(m.genesis.Difficulty)
	if total.Sign() == 0 {
		return
	}
	for _, block := range m.blocks {
		if block.Difficulty().Sign() == 0 {
			m.genesis.Config.TerminalTotalDifficulty = total
			m.genesis.Config.MergeNetsplitBlock = block.Number()
			return
		}
		total.Add(total, block.Difficulty())
	}
}

// parentOf returns the header below a block.
func (m *maker) parentOf(number int) *types.Header {
	return m.chain.GetHeaderByNumber(uint64(number - 1))
}

// header returns the header of the next block, with all that does not come of its transactions.
func (m *maker) header(number int) *types.Header {
	d, parent, config := m.dice, m.parentOf(number), m.genesis.Config
	h := &types.Header{
		ParentHash: parent.Hash(),
		Number:     big.NewInt(int64(number)),
		Time:       parent.Time + secondsPerBlock,
		GasLimit:   parent.GasLimit,
		Coinbase:   pick(d, m.coinbases...),
	}
	if d.oneIn(3) { // late, or making up for it: never ahead of the schedule, in which the merge comes before Shanghai
		latest := m.genesis.Timestamp + secondsPerBlock*uint64(number)
		h.Time = parent.Time + 1 + d.Uint64N(latest-parent.Time)
	}
	h.Difficulty = m.engine.CalcDifficulty(m.chain, h.Time, parent)
	if h.Difficulty.Sign() == 0 {
		h.MixDigest = d.randomHash()
	} else {
		copy(h.Nonce[:], d.bytes(len(h.Nonce)))
	}
	h.Extra = m.extra(number)
	entersLondon := config.IsLondon(h.Number) && !config.IsLondon(parent.Number)
	if config.IsLondon(h.Number) {
		h.BaseFee = eip1559.CalcBaseFee(config, parent)
	}
	if entersLondon {
		h.GasLimit = parent.GasLimit * config.ElasticityMultiplier()
	} else if d.oneIn(3) {
		h.GasLimit += uint64(d.IntN(40_000)) - 20_000
	}
	if config.IsCancun(h.Number, h.Time) {
		excess, root := eip4844.CalcExcessBlobGas(config, parent, h.Time), d.randomHash()
		h.ExcessBlobGas, h.BlobGasUsed, h.ParentBeaconRoot = &excess, new(uint64), &root
	}
	return h
}

// extra returns extra data for the header of a block or ommer: around the DAO fork it has to be the fork's word.
func (m *maker) extra(number int) []byte {
	config, n := m.genesis.Config, int64(number)
	if at := config.DAOForkBlock; at != nil && config.DAOForkSupport && n >= at.Int64() && n < at.Int64()+params.DAOForkExtraRange.Int64() {
		return slices.Clone(params.DAOForkBlockExtra)
	}
	return pick(m.dice, nil, nil, []byte("random"))
}

// block makes the next block.
func (m *maker) block(number int) (*types.Block, error) {
	m.dice = diceFor(m.seed, number, -1)
	d, config, parent := m.dice, m.genesis.Config, m.parentOf(number)
	h := m.header(number)
	states, err := m.chain.StateAt(parent.Root, parent.Number, parent.Time)
	if err != nil {
		return nil, err
	}
	if config.DAOForkSupport && config.DAOForkBlock != nil && config.DAOForkBlock.Cmp(h.Number) == 0 {
		misc.ApplyDAOHardFork(states)
	}
	evm := func() *vm.EVM {
		return vm.NewEVM(core.NewEVMBlockContext(h, m.chain, &h.Coinbase), states, config, vm.Config{})
	}
	core.PreExecution(context.Background(), h.ParentBeaconRoot, parent, config, evm(), h.Number, h.Time)
	content := &content{maker: m, number: number, header: h, states: states, evm: evm, gas: core.NewGasPool(h.GasLimit),
		rules: config.Rules(h.Number, h.Difficulty.Sign() == 0, h.Time)}
	content.fill()
	m.dice = d
	body := &types.Body{Transactions: content.transactions}
	if content.rules.IsShanghai {
		body.Withdrawals = m.withdrawals(content.theme)
	}
	if h.Difficulty.Sign() != 0 && number > 2 && d.oneIn(4) && !m.dropped(number, "u") {
		body.Uncles = []*types.Header{m.ommer(number, h.Time)}
		m.made.Ommers++
	}
	requests, _, err := core.PostExecution(context.Background(), config, h.Number, h.Time, content.logs(), body.Withdrawals, evm(),
		uint32(len(body.Transactions)+1))
	if err != nil {
		return nil, err
	}
	if requests != nil {
		hash := types.CalcRequestsHash(requests)
		h.RequestsHash = &hash
	}
	m.engine.Finalize(m.chain, h, states, body)
	m.kinds = append(m.kinds, content.kinds)
	return core.AssembleBlock(m.chain, h, states, body, content.receipts, bal.NewConstructionBlockAccessList()), nil
}

func (m *maker) withdrawals(theme *reborn) []*types.Withdrawal {
	all := []*types.Withdrawal{}
	for range m.IntN(5) {
		w := &types.Withdrawal{Index: m.nextWithdrawal, Validator: uint64(m.IntN(100)), Address: m.address()}
		m.nextWithdrawal++
		if m.oneIn(2) {
			w.Amount = uint64(m.IntN(1 << 30))
		}
		if theme != nil && m.oneIn(2) {
			w.Address = theme.address
		}
		all = append(all, w)
	}
	m.made.Withdrawals += len(all)
	return all
}

// ommer returns the header of a block beside one of the last few.
func (m *maker) ommer(number int, time uint64) *types.Header {
	back := 2
	if number > 4 && m.oneIn(2) {
		back = 2 + m.IntN(3)
	}
	config, parent := m.genesis.Config, m.chain.GetHeaderByNumber(uint64(number-back))
	h := &types.Header{
		ParentHash: parent.Hash(),
		Number:     new(big.Int).Add(parent.Number, common.Big1),
		Time:       time,
		Coinbase:   pick(m.dice, m.coinbases...),
		Difficulty: m.engine.CalcDifficulty(m.chain, time, parent),
		GasLimit:   parent.GasLimit,
		Extra:      m.extra(int(parent.Number.Int64()) + 1),
		Root:       m.randomHash(), // so that it is no other ommer
	}
	if config.IsLondon(h.Number) {
		h.BaseFee = eip1559.CalcBaseFee(config, parent)
		if !config.IsLondon(parent.Number) {
			h.GasLimit = parent.GasLimit * config.ElasticityMultiplier()
		}
	}
	return h
}

// content is what goes into a block.
type content struct {
	*maker
	number       int
	header       *types.Header
	states       *state.StateDB
	evm          func() *vm.EVM
	gas          *core.GasPool
	rules        params.Rules
	theme        *reborn
	blobs        int
	transactions types.Transactions
	receipts     types.Receipts
	kinds        []string
}

func (c *content) logs() []*types.Log {
	var logs []*types.Log
	for _, receipt := range c.receipts {
		logs = append(logs, receipt.Logs...)
	}
	return logs
}

// fill draws transactions and executes them.
func (c *content) fill() {
	count := c.IntN(14)
	if c.long {
		count = c.IntN(3)
	}
	if c.oneIn(3) { // a block around one contract that comes and goes
		c.theme = &c.reborn[c.IntN(len(c.reborn))]
		count += 5
	}
	for i := range count {
		if c.dropped(c.number, fmt.Sprint(i)) {
			continue
		}
		c.dice = diceFor(c.seed, c.number, i)
		draft, reason := c.draft()
		if reason == "" {
			if err := c.apply(draft); err != nil {
				reason = leadingWords(err)
				c.refused[c.number] = draft.transaction
			}
		}
		if reason != "" {
			c.made.Refused[reason]++
			continue
		}
		c.kinds = append(c.kinds, fmt.Sprintf("%d:%d=%s", c.number, i, draft.kind))
	}
}

// apply executes a transaction on the block's state; if geth refuses the transaction, the state stays as it was.
func (c *content) apply(d draft) error {
	snapshot, gas := c.states.Snapshot(), c.gas.Snapshot()
	tx := d.transaction
	c.states.SetTxContext(tx.Hash(), len(c.transactions), uint32(len(c.transactions)+1))
	receipt, _, err := core.ApplyTransaction(context.Background(), c.evm(), c.gas, c.states, c.header, tx)
	if err != nil {
		c.states.RevertToSnapshot(snapshot)
		c.gas.Set(gas)
		return err
	}
	c.header.GasUsed = c.gas.Used()
	if c.header.BlobGasUsed != nil {
		*c.header.BlobGasUsed += receipt.BlobGasUsed
	}
	c.blobs += len(tx.BlobHashes())
	c.transactions, c.receipts = append(c.transactions, tx), append(c.receipts, receipt)
	c.made.add(d.kind, tx, receipt)
	return nil
}
