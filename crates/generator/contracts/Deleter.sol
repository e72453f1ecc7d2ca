// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

/// A contract that writes `slots` slots when it is made and destroys itself when its maker says so.
contract Ephemeral {
    constructor(uint256 slots) payable {
        for (uint256 slot = 0; slot < slots; slot++) {
            assembly {
                sstore(slot, address())
            }
        }
    }

    /// Under EIP-6780 this removes the account when it was made in the same transaction.
    function destroy(address payable heir) external {
        selfdestruct(heir);
    }
}

/// Makes contracts and destroys them in the same transaction, so that nothing of them remains.
///
/// Slot 0 counts them. What they held goes to the caller.
contract Deleter {
    uint256 public destroyed;

    event Destroyed(address ephemeral);

    function run(uint256 slots) external payable {
        Ephemeral ephemeral = new Ephemeral{value: msg.value}(slots);
        ephemeral.destroy(payable(msg.sender));
        destroyed += 1;
        emit Destroyed(address(ephemeral));
    }
}
