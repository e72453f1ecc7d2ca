// Builds wasmcurves' module twice from its own sources, as it is and with the base field's arithmetic imported from the host, and says where its constants are.
// Usage: node modules.js FOLDER. Writes alone.wasm, hosted.wasm and places (of P, Q and 1).
"use strict";

const fs = require("fs");
const path = require("path");
const { ModuleBuilder } = require("wasmbuilder");
const buildBls12381 = require("wasmcurves/src/bls12381/build_bls12381.js");

/** By the names that other functions of the module call them by. */
const HOSTED = { f1m_add: ["x", "y", "r"], f1m_sub: ["x", "y", "r"], f1m_mul: ["x", "y", "r"], f1m_square: ["x", "r"] };

function build(hosted) {
    const module = new ModuleBuilder();
    module.setMemory(25);
    for (const [name, parameters] of Object.entries(hosted)) {
        const imported = module.addIimportFunction(name, "host");
        parameters.forEach((parameter) => imported.addParam(parameter, "i32"));
    }
    const addFunction = module.addFunction.bind(module);
    // What is imported gets its body all the same, and nobody calls it.
    module.addFunction = (name) => addFunction(name in hosted ? `${name}_unused` : name);
    buildBls12381(module);
    return { code: Buffer.from(module.build()), places: module.modules.bls12381 };
}

const folder = process.argv[2];
for (const [name, hosted] of [["alone", {}], ["hosted", HOSTED]]) {
    const { code, places } = build(hosted);
    fs.writeFileSync(path.join(folder, `${name}.wasm`), code);
    // The same in both.
    const { pG1gen, pG2gen, pOneT } = places;
    fs.writeFileSync(path.join(folder, "places"), [pG1gen, pG2gen, pOneT].join(" "));
}
