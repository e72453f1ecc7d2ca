// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

/// A plain ERC-20 token with the whole supply minted to its deployer.
///
/// The generator writes balances into the genesis by slot: `balanceOf` is slot 0,
/// `allowance` slot 1, `totalSupply` slot 2. Keep that order.
contract Token {
    mapping(address owner => uint256) public balanceOf;
    mapping(address owner => mapping(address spender => uint256)) public allowance;
    uint256 public totalSupply;

    uint8 public constant decimals = 18;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    constructor(uint256 supply) {
        totalSupply = supply;
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    /// An allowance of the largest number is never used up.
    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed != type(uint256).max) {
            allowance[from][msg.sender] = allowed - value;
        }
        move(from, to, value);
        return true;
    }

    function move(address from, address to, uint256 value) private {
        balanceOf[from] -= value;
        // The sum of all balances is the supply, so no balance can overflow.
        unchecked {
            balanceOf[to] += value;
        }
        emit Transfer(from, to, value);
    }
}
