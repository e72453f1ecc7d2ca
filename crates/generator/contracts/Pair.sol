// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

import {Token} from "./Token.sol";

/// A constant-product market of two tokens with a fee of 0.3 %.
///
/// The generator writes the tokens (slots 0 and 1) and the reserves (slot 2: `reserve0` in the
/// low 128 bits, `reserve1` in the high) into the genesis. Keep that order.
contract Pair {
    Token public token0;
    Token public token1;
    uint128 public reserve0;
    uint128 public reserve1;

    event Swap(address indexed trader, bool zeroForOne, uint256 amountIn, uint256 amountOut);
    event Sync(uint128 reserve0, uint128 reserve1);

    error TooLittle(uint256 amountOut);

    /// Takes `amountIn` of one token from the caller, who has approved it, and pays out the other.
    function swap(bool zeroForOne, uint256 amountIn, uint256 minOut) external returns (uint256 amountOut) {
        (uint256 reserveIn, uint256 reserveOut) =
            zeroForOne ? (uint256(reserve0), uint256(reserve1)) : (uint256(reserve1), uint256(reserve0));
        uint256 afterFee = amountIn * 997;
        amountOut = (afterFee * reserveOut) / (reserveIn * 1000 + afterFee);
        if (amountOut < minOut) revert TooLittle(amountOut);

        (Token tokenIn, Token tokenOut) = zeroForOne ? (token0, token1) : (token1, token0);
        tokenIn.transferFrom(msg.sender, address(this), amountIn);
        tokenOut.transfer(msg.sender, amountOut);

        uint128 newIn = narrow(reserveIn + amountIn);
        uint128 newOut = narrow(reserveOut - amountOut);
        (reserve0, reserve1) = zeroForOne ? (newIn, newOut) : (newOut, newIn);
        emit Sync(reserve0, reserve1);
        emit Swap(msg.sender, zeroForOne, amountIn, amountOut);
    }

    function narrow(uint256 value) private pure returns (uint128) {
        require(value <= type(uint128).max);
        return uint128(value);
    }
}
