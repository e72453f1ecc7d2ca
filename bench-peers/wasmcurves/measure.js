// Times one pairing and the product of two pairs by wasmcurves, whose results are compared first; prints JSON.
// Points are in Montgomery form already; nothing checks subgroups. Usage: node measure.js [ROUNDS]
"use strict";

const code = require("wasmcurves/build/bls12381_wasm.js");

async function main() {
    const rounds = Number(process.argv[2] || 50);
    const memory = new WebAssembly.Memory({ initial: 5000 });
    const { instance } = await WebAssembly.instantiate(Buffer.from(code.code, "base64"), { env: { memory } });
    const f = instance.exports;
    const bytes = new Uint8Array(memory.buffer);
    const next = new Uint32Array(memory.buffer);
    const allocate = (size) => {
        const at = next[0];
        next[0] = (at + size + 7) & ~7;
        return at;
    };
    const [p, q] = [code.pG1gen, code.pG2gen];
    const minusP = allocate(3 * code.n8q);
    f.g1m_neg(p, minusP);
    const [one, other, product] = [0, 0, 0].map(() => allocate(12 * code.n8q));

    // e(P, Q) e(-P, Q) = 1, e(P, Q)^2 is not, and e(P, Q) is the inverse of e(-P, Q).
    f.bls12381_pairing(p, q, one);
    f.bls12381_pairing(minusP, q, other);
    f.ftm_mul(one, other, product);
    const isOne = bytes.slice(product, product + 12 * code.n8q)
        .every((byte, index) => byte === bytes[code.pOneT + index]);
    if (!isOne || !f.bls12381_pairingEq2(p, q, minusP, q, code.pOneT) || f.bls12381_pairingEq2(p, q, p, q, code.pOneT)) {
        throw new Error("wrong pairing");
    }

    const fastest = (run) => {
        let best = Infinity;
        for (let round = 0; round < rounds; round++) {
            const begin = process.hrtime.bigint();
            run();
            best = Math.min(best, Number(process.hrtime.bigint() - begin) / 1e9);
        }
        return best;
    };
    console.log(JSON.stringify({
        node: process.version,
        pairing_s: fastest(() => f.bls12381_pairing(p, q, one)),
        two_pairs_s: fastest(() => f.bls12381_pairingEq2(p, q, minusP, q, code.pOneT)),
    }));
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
