#!/usr/bin/env python3
"""Reads a served chain with web3.py: `serve_web3.py http://127.0.0.1:8545`. The chain is one that `arbor generate` made."""

import sys

from web3 import Web3


def main(url):
    w3 = Web3(Web3.HTTPProvider(url))
    eth = w3.eth
    assert w3.is_connected()
    assert w3.client_version.startswith("arbor/v"), w3.client_version
    head = eth.block_number
    assert head > 0 and eth.syncing is False
    assert str(eth.chain_id) == w3.net.version

    block = eth.get_block("latest", full_transactions=True)
    assert block.number == head and eth.get_block(block.hash).hash == block.hash
    assert eth.get_block("earliest").number == 0
    assert eth.get_block(head).parentHash == eth.get_block(head - 1).hash

    sent = 0
    for number in range(1, head + 1):
        block = eth.get_block(number, full_transactions=True)
        assert eth.get_block_transaction_count(number) == len(block.transactions)
        for tx in block.transactions:
            sender = tx["from"]
            before = eth.get_transaction_count(sender, number - 1)
            assert eth.get_transaction_count(sender, number) > before
            assert eth.get_transaction(tx.hash).blockNumber == number
            sent += 1
        proof = eth.get_proof(block.transactions[0]["from"], [0, 1], number) if block.transactions else None
        if proof:
            assert Web3.keccak(proof.accountProof[0]) == block.stateRoot
            assert proof.balance == eth.get_balance(proof.address, number)
            assert proof.nonce == eth.get_transaction_count(proof.address, number)
    assert sent > 0

    someone = block.transactions[0]["from"]
    assert eth.call({"to": someone}) == b""
    assert eth.estimate_gas({"from": someone, "to": "0x" + "07" * 20, "value": 1}) == 21000
    history = eth.fee_history(2, "latest", [10, 90])
    assert len(history.reward) == len(history.gasUsedRatio) == 2
    assert eth.get_storage_at(someone, 0) == b"\0" * 32 and eth.get_code(someone) == b""

    with w3.batch_requests() as batch:
        for number in range(head + 1):
            batch.add(eth.get_balance(someone, number))
        balances = batch.execute()
    assert balances == [eth.get_balance(someone, number) for number in range(head + 1)]
    print(f"{head} blocks with {sent} transactions were read")


main(sys.argv[1])
