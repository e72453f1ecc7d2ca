// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

/// A contract with a slot or two: many of them make sparse storage.
contract Cell {
    uint256 public value;
    uint256 public previous;

    constructor() {
        value = uint256(uint160(address(this)));
    }

    /// Remembers a value and the one before it; two zeros in a row leave the storage empty.
    function set(uint256 newValue) external {
        previous = value;
        value = newValue;
    }
}
