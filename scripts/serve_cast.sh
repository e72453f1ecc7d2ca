#!/usr/bin/env bash
# Reads a served chain with cast: `serve_cast.sh CAST http://127.0.0.1:8545`. The chain is one that `arbor generate` made.
set -euo pipefail
cast=$1
export ETH_RPC_URL=$2

same() {
    [[ "$2" == "$3" ]] || { echo "$1: $2, expected $3" >&2; exit 1; }
}

head=$("$cast" block-number)
((head > 0))
[[ "$("$cast" client)" == arbor/v* ]]
same 'number of the latest block' "$("$cast" block latest -f number)" "$head"
hash=$("$cast" block "$head" -f hash)
same 'number of the block with this hash' "$("$cast" block "$hash" -f number)" "$head"

# A block with a transaction.
transaction=null
for ((number = head; number > 0; number--)); do
    transaction=$("$cast" rpc eth_getTransactionByBlockNumberAndIndex "$("$cast" to-hex "$number")" 0x0)
    [[ "$transaction" == null ]] || break
done
sender=$(sed -E 's/.*"from":"(0x[0-9a-f]{40})".*/\1/' <<<"$transaction")
same 'sender' "$("$cast" tx "$(sed -E 's/.*"hash":"(0x[0-9a-f]{64})".*/\1/' <<<"$transaction")" from | tr 'A-F' 'a-f')" "$sender"

(($("$cast" nonce "$sender" --block "$number") > $("$cast" nonce "$sender" --block $((number - 1)))))
(($("$cast" balance "$sender") >= 0))
same 'code of an account without' "$("$cast" code "$sender")" 0x
same 'slot of an account without' "$("$cast" storage "$sender" 0)" "0x$(printf '0%.0s' {1..64})"
same 'gas of a transfer' "$("$cast" estimate --from "$sender" 0x0707070707070707070707070707070707070707 --value 1)" 21000
same 'a call of an account without code' "$("$cast" call "$sender")" 0x
"$cast" proof "$sender" 0 1 --block "$number" | grep -q '"accountProof"'
(($("$cast" base-fee) >= 0))
"$cast" rpc debug_executionWitness "$("$cast" to-hex "$number")" | grep -q '"state"'
echo "cast read $head blocks"
