// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

/// One contract with very many slots: slot 0 is their number n, slots 1 to n the entries.
contract Wide {
    uint256 public length;

    event Appended(uint256 first, uint256 count);

    /// Adds `count` entries: `value`, `value + 1`, ...
    function append(uint256 count, uint256 value) external {
        uint256 first = length + 1;
        length += count;
        fill(first, count, value);
        emit Appended(first, count);
    }

    /// Overwrites `count` entries from slot `first` on with `value`, `value + 1`, ...
    function update(uint256 first, uint256 count, uint256 value) external {
        require(first > 0 && first + count - 1 <= length);
        fill(first, count, value);
    }

    /// Zeroes `count` entries from slot `first` on. The length stays.
    function clear(uint256 first, uint256 count) external {
        require(first > 0 && first + count - 1 <= length);
        for (uint256 slot = first; slot < first + count; slot++) {
            assembly {
                sstore(slot, 0)
            }
        }
    }

    function fill(uint256 first, uint256 count, uint256 value) private {
        for (uint256 i = 0; i < count; i++) {
            assembly {
                sstore(add(first, i), add(value, i))
            }
        }
    }
}
