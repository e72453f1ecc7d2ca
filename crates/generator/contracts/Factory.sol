// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

import {Cell} from "./Cell.sol";

/// Makes cells by CREATE2, the i-th with salt i, and writes to several at once. Slot 0 is their number.
contract Factory {
    uint256 public cells;

    event Spawned(uint256 first, uint256 count);

    /// Makes `count` more cells.
    function spawn(uint256 count) external {
        uint256 first = cells;
        cells = first + count;
        for (uint256 i = first; i < first + count; i++) {
            new Cell{salt: bytes32(i)}();
        }
        emit Spawned(first, count);
    }

    /// Writes `value` to `count` cells: the numbers `first`, `first + stride`, ... modulo their number.
    function touch(uint256 first, uint256 stride, uint256 count, uint256 value) external {
        bytes32 codeHash = keccak256(type(Cell).creationCode);
        uint256 total = cells;
        for (uint256 i = 0; i < count; i++) {
            bytes32 salt = bytes32((first + i * stride) % total);
            bytes32 hash = keccak256(abi.encodePacked(bytes1(0xff), address(this), salt, codeHash));
            Cell(address(uint160(uint256(hash)))).set(value);
        }
    }
}
