// Reads a served chain with viem and ethers: `serve_clients.cjs FOLDER http://127.0.0.1:8545`. FOLDER has the node_modules
// with both. The chain is one that `arbor generate` made.

const assert = require("node:assert/strict");
const { createRequire } = require("node:module");
const { join, resolve } = require("node:path");

const [folder, url] = process.argv.slice(2);
const installed = createRequire(join(resolve(folder), "index.js"));

/** Blocks with their transactions, states before and after them, proofs, calls; many calls in one batch. */
async function withViem() {
  const { createPublicClient, http, keccak256, parseEther } = installed("viem");
  const client = createPublicClient({ transport: http(url) });
  const head = Number(await client.getBlockNumber());
  assert.ok(head > 0 && (await client.getChainId()) > 0);
  let sent = 0;
  let someone;
  for (let number = 1; number <= head; number += 1) {
    const blockNumber = BigInt(number);
    const block = await client.getBlock({ blockNumber, includeTransactions: true });
    assert.equal((await client.getBlock({ blockHash: block.hash })).hash, block.hash);
    assert.equal(await client.getBlockTransactionCount({ blockNumber }), block.transactions.length);
    for (const tx of block.transactions) {
      const address = tx.from;
      const before = await client.getTransactionCount({ address, blockNumber: blockNumber - 1n });
      assert.ok((await client.getTransactionCount({ address, blockNumber })) > before);
      assert.equal((await client.getTransaction({ hash: tx.hash })).blockNumber, blockNumber);
      someone = address;
      sent += 1;
    }
    if (someone) {
      const storageKeys = [`0x${"00".repeat(32)}`];
      const proof = await client.getProof({ address: someone, storageKeys, blockNumber });
      assert.equal(keccak256(proof.accountProof[0]), block.stateRoot);
      assert.equal(proof.balance, await client.getBalance({ address: someone, blockNumber }));
    }
  }
  assert.ok(sent > 0);
  const to = `0x${"07".repeat(20)}`;
  assert.equal(await client.estimateGas({ account: someone, to, value: 1n }), 21000n);
  assert.equal((await client.call({ account: someone, to })).data, undefined);
  // A balance that only the call sees.
  const rich = { account: to, to: someone, value: parseEther("5"), stateOverride: [{ address: to, balance: parseEther("9") }] };
  await client.call(rich);
  await assert.rejects(client.call({ ...rich, stateOverride: undefined }), /insufficient funds/);
  const fees = await client.getFeeHistory({ blockCount: 2, rewardPercentiles: [10, 90] });
  assert.equal(fees.reward.length, 2);
  await assert.rejects(client.getBlock({ blockNumber: BigInt(head + 9) }), { name: "BlockNotFoundError" });
  const batched = createPublicClient({ transport: http(url, { batch: true }) });
  const blocks = Array.from({ length: head + 1 }, (_, number) => BigInt(number));
  const balances = await Promise.all(blocks.map((blockNumber) => batched.getBalance({ address: someone, blockNumber })));
  assert.equal(balances.at(-1), await client.getBalance({ address: someone }));
  return sent;
}

async function withEthers() {
  const { JsonRpcProvider, keccak256, toQuantity } = installed("ethers");
  // It sends the calls of one moment as a batch.
  const provider = new JsonRpcProvider(url, undefined, { batchMaxCount: 100 });
  const head = await provider.getBlockNumber();
  const { chainId } = await provider.getNetwork();
  assert.ok(head > 0 && chainId > 0n);
  let someone;
  for (let number = 1; number <= head; number += 1) {
    const block = await provider.getBlock(number, true);
    assert.equal((await provider.getBlock(block.hash)).hash, block.hash);
    for (const tx of block.prefetchedTransactions) {
      const [before, after] = await Promise.all([
        provider.getTransactionCount(tx.from, number - 1),
        provider.getTransactionCount(tx.from, number),
      ]);
      assert.ok(after > before);
      someone = tx.from;
    }
    const params = [someone, ["0x0"], toQuantity(number)];
    const proof = someone && (await provider.send("eth_getProof", params));
    if (proof) assert.equal(keccak256(proof.accountProof[0]), block.stateRoot);
  }
  const to = `0x${"07".repeat(20)}`;
  assert.equal(await provider.estimateGas({ from: someone, to, value: 1 }), 21000n);
  assert.equal(await provider.call({ from: someone, to }), "0x");
  assert.equal(await provider.getCode(someone), "0x");
  assert.equal(BigInt(await provider.getStorage(someone, 0)), 0n);
  const numbers = Array.from({ length: head + 1 }, (_, number) => number);
  const balances = await Promise.all(numbers.map((number) => provider.getBalance(someone, number)));
  assert.equal(balances.at(-1), await provider.getBalance(someone));
  assert.equal(await provider.getBlock(head + 9), null);
  provider.destroy();
  return head;
}

Promise.all([withViem(), withEthers()]).then(
  ([sent, blocks]) => console.log(`viem read ${sent} transactions, ethers ${blocks} blocks`),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
