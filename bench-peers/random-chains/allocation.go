package main

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// depositTopic is the topic of the deposit contract's event (EIP-6110).
var depositTopic = common.HexToHash("0x649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5")

// depositLength is the length of the data of a deposit's event.
const depositLength = 576

// allocator chooses the accounts of the genesis block.
type allocator struct {
	*programmer
	*cast
	schedule
	config *params.ChainConfig
	blocks int
	// emptyRipemd allows an empty account at the address of RIPEMD-160.
	emptyRipemd bool
	accounts    types.GenesisAlloc
}

func (a *allocator) balance() *big.Int {
	switch a.IntN(4) {
	case 0:
		return new(big.Int)
	case 1:
		return big.NewInt(1)
	}
	return new(big.Int).Lsh(big.NewInt(int64(1+a.IntN(1000))), 50)
}

func (a *allocator) storage() map[common.Hash]common.Hash {
	slots := map[common.Hash]common.Hash{}
	for range a.IntN(5) {
		value := common.BytesToHash(word(uint64(1 + a.IntN(3))))
		if a.oneIn(3) {
			value = a.randomHash()
			value[0] |= 0x80
		}
		slots[common.BytesToHash(word(a.slot()))] = value
	}
	return slots
}

func (a *allocator) draw() types.GenesisAlloc {
	a.accounts = types.GenesisAlloc{}
	a.drawOwners()
	a.drawContracts()
	a.drawCollisions()
	a.drawPrecompiles()
	a.drawEarlierLives()
	a.drawSystemContracts()
	a.drawDaoFork()
	return a.accounts
}

func (a *allocator) drawOwners() {
	for i, owner := range a.owners {
		if i == keyCount-1 || i >= senderCount && a.oneIn(2) {
			continue // authorises before its account exists
		}
		account := types.Account{Balance: new(big.Int).Lsh(big.NewInt(int64(1+a.IntN(1<<20))), 70), Nonce: uint64(a.IntN(2))}
		switch {
		case i == 1 && a.oneIn(3): // runs out of nonces
			account.Nonce = 1<<64 - 2 - uint64(a.IntN(3))
		case i == 2 && a.first >= prague && a.oneIn(2):
			account.Code = delegation(a.address())
		case i == 3 && a.oneIn(4):
			account.Storage = a.storage()
		}
		a.accounts[owner] = account
	}
}

func (a *allocator) drawContracts() {
	for i, address := range a.contracts {
		account := types.Account{Balance: a.balance(), Nonce: uint64(a.IntN(2)), Code: a.runtime(0), Storage: a.storage()}
		switch i {
		case 0: // can hardly create
			account.Nonce = 1<<64 - 1 - uint64(a.IntN(2))
		case 1, 2:
			account.Code = a.oddCode()
		case 3: // storage alone, which geth no longer removes from Cancun on: there the account must not be empty
			account.Code, account.Nonce = nil, 0
			if a.schedule.last >= cancun {
				account.Balance = big.NewInt(5)
			}
		case 4:
			account.Code = nil
			if a.schedule.last >= cancun {
				account.Nonce = 1
			}
		}
		a.accounts[address] = account
	}
	for i, address := range a.empties {
		account := types.Account{Balance: new(big.Int)}
		if i == emptyCount-1 && a.schedule.last < cancun && a.oneIn(2) {
			account.Storage = a.storage()
		}
		if a.oneIn(2) {
			a.accounts[address] = account
		}
	}
	for i, address := range a.factories {
		code := factory{create2: a.schedule.last >= constantinople, twice: i == 1}.code()
		a.accounts[address] = types.Account{Balance: a.balance(), Nonce: 1, Code: code}
	}
	for i, address := range a.templates {
		account := types.Account{Balance: new(big.Int), Nonce: 1, Code: a.runtime(1)}
		if i == templateCount-1 {
			account.Code = a.oddCode()
		}
		a.accounts[address] = account
	}
	if a.oneIn(4) {
		a.accounts[common.Address{}] = types.Account{Balance: a.balance()}
	}
	if a.oneIn(4) {
		a.accounts[params.SystemAddress] = types.Account{Balance: a.balance()}
	}
}

// drawCollisions places accounts where senders will create contracts.
func (a *allocator) drawCollisions() {
	for _, sender := range a.owners[:createdCount] {
		if a.oneIn(3) {
			at := crypto.CreateAddress(sender, a.accounts[sender].Nonce+uint64(a.IntN(3)))
			code := pick(a.dice, nil, []byte{0}, []byte{0xff})
			a.accounts[at] = types.Account{Balance: a.balance(), Nonce: uint64(a.IntN(2)), Code: code}
		}
	}
}

// drawPrecompiles gives balance, code and storage to addresses that are, or become, precompiles.
func (a *allocator) drawPrecompiles() {
	for n := 1; n <= lastPrecompile; n++ {
		at := precompile(n)
		switch a.IntN(8) {
		case 0:
			a.accounts[at] = types.Account{Balance: big.NewInt(1)}
		case 1:
			if n != 3 || a.emptyRipemd {
				a.accounts[at] = types.Account{Balance: new(big.Int)}
			}
		case 2:
			if a.oneIn(3) {
				a.accounts[at] = types.Account{Balance: a.balance(), Code: a.runtime(1), Storage: a.storage(), Nonce: uint64(a.IntN(2))}
			}
		}
	}
}

// drawEarlierLives gives balance, nonce, code or storage to contracts before their first creation.
func (a *allocator) drawEarlierLives() {
	for _, r := range a.reborn {
		switch a.IntN(14) {
		case 0:
			a.accounts[r.address] = types.Account{Balance: a.balance()}
		case 1: // with a nonce, because geth 1.17 creates over an account that has storage alone (EIP-7610)
			a.accounts[r.address] = types.Account{Balance: a.balance(), Storage: a.storage(), Nonce: 1}
		case 2:
			a.accounts[r.address] = types.Account{Balance: a.balance(), Nonce: uint64(a.IntN(2)), Code: []byte{0xff}}
		}
	}
}

func (a *allocator) drawSystemContracts() {
	system := func(code []byte) types.Account { return types.Account{Nonce: 1, Code: code, Balance: new(big.Int)} }
	// What these two return is of no interest to a block, so any code may stand there, or none.
	optional := func(at common.Address, code []byte) {
		account := system(code)
		switch a.IntN(10) {
		case 0, 1:
			return
		case 2:
			account.Code, account.Balance, account.Storage = a.runtime(2), a.balance(), a.storage()
		case 3:
			account = types.Account{Balance: a.balance()}
		}
		a.accounts[at] = account
	}
	if a.schedule.last >= cancun {
		optional(params.BeaconRootsAddress, params.BeaconRootsCode)
		optional(params.HistoryStorageAddress, params.HistoryStorageCode)
	}
	if a.schedule.last < prague {
		return
	}
	a.accounts[params.WithdrawalQueueAddress] = system(params.WithdrawalQueueCode)
	a.accounts[params.ConsolidationQueueAddress] = system(params.ConsolidationQueueCode)
	if !a.oneIn(3) {
		a.config.DepositContractAddress = a.deposits
		a.known = append(a.known, a.deposits)
		a.accounts[a.deposits] = types.Account{Balance: new(big.Int), Code: depositContract()}
	}
}

// depositContract returns code that logs its input as a deposit if it has the right length, and as another event.
func depositContract() []byte {
	a := new(assembler).push(depositLength).op(vm.CALLDATASIZE, vm.EQ, vm.ISZERO)
	a.unless(func() {
		a.op(vm.CALLDATASIZE).push(0).push(0).op(vm.CALLDATACOPY)
		a.pushBytes(depositTopic[:]).op(vm.CALLDATASIZE).push(0).op(vm.LOG1)
	})
	return a.op(vm.CALLDATASIZE).push(0).op(vm.LOG0, vm.STOP).bytes()
}

// drawDaoFork lets some chains take or refuse the DAO fork, with some of the accounts that it empties.
func (a *allocator) drawDaoFork() {
	if a.first > homestead || !a.comes(homestead) || a.start[tangerineWhistle] == 0 || !a.oneIn(6) {
		return
	}
	before := a.blocks
	if a.comes(tangerineWhistle) {
		before = a.start[tangerineWhistle]
	}
	at := 1 + a.IntN(before)
	if at < a.start[homestead] || a.comes(spuriousDragon) && at >= a.start[spuriousDragon] {
		return
	}
	a.config.DAOForkBlock, a.config.DAOForkSupport = big.NewInt(int64(at)), !a.oneIn(3)
	for _, drained := range params.DAODrainList() {
		if a.oneIn(20) {
			a.accounts[drained] = types.Account{Balance: a.balance()}
			a.known = append(a.known, drained)
		}
	}
	a.known = append(a.known, params.DAORefundContract)
}
