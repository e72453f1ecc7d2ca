//! The contracts do what their sources say.

use alloy_primitives::{Address, Bytes, TxKind, U256};
use arbor_state::StateView;

use super::{
    contracts::{calls, data_creation, slots, token_creation},
    testing::World,
};

fn number(value: u128) -> U256 {
    U256::from(value)
}

fn word(address: Address) -> U256 {
    address.into_word().into()
}

/// `Token.transferFrom(from, to, value)`.
fn transfer_from(from: Address, to: Address, value: U256) -> Bytes {
    let words = [from.into_word().0, to.into_word().0, value.to_be_bytes()];
    [&[0x23, 0xb8, 0x72, 0xdd][..], words.as_flattened()]
        .concat()
        .into()
}

#[test]
fn a_token_moves_what_its_owner_or_a_spender_may_move() {
    let mut world = World::new();
    let (token, alice, bob) = (world.places.tokens[0], world.address(0), world.address(1));
    let start = world.slot(token, slots::balance(alice));
    assert!(start > number(1_000) && start == world.slot(token, slots::balance(bob)));

    assert!(world.call(0, token, calls::transfer(bob, number(300))));
    assert_eq!(
        world.slot(token, slots::balance(alice)),
        start - number(300)
    );
    assert_eq!(world.slot(token, slots::balance(bob)), start + number(300));
    assert!(
        !world.call(0, token, calls::transfer(bob, start)),
        "more than alice has left"
    );

    assert!(
        !world.call(1, token, transfer_from(alice, bob, number(1))),
        "no allowance yet"
    );
    assert!(world.call(0, token, calls::approve(bob, number(50))));
    assert!(world.call(1, token, transfer_from(alice, bob, number(20))));
    assert_eq!(world.slot(token, slots::allowance(alice, bob)), number(30));
    assert!(!world.call(1, token, transfer_from(alice, bob, number(31))));
    assert_eq!(world.slot(token, slots::balance(bob)), start + number(320));

    assert!(world.call(0, token, calls::approve(bob, U256::MAX)));
    assert!(world.call(1, token, transfer_from(alice, bob, number(31))));
    assert_eq!(
        world.slot(token, slots::allowance(alice, bob)),
        U256::MAX,
        "never used up"
    );
}

#[test]
fn a_token_tells_of_its_transfers() {
    let mut world = World::new();
    let (token, bob) = (world.places.tokens[1], world.address(1));
    let receipt = world.send(0, TxKind::Call(token), 0, calls::transfer(bob, number(5)));
    let log = &receipt.logs()[0];
    assert_eq!(log.address, token);
    assert_eq!(
        log.topics()[1..],
        [world.address(0).into_word(), bob.into_word()]
    );
    assert_eq!(log.data.data[..], number(5).to_be_bytes::<32>());
}

#[test]
fn a_swap_pays_what_the_formula_says() {
    for zero_for_one in [true, false] {
        let mut world = World::new();
        let (pair, trader) = (world.places.pairs[3], world.address(2));
        let [mut token_in, mut token_out] = world.places.traded(3);
        if !zero_for_one {
            std::mem::swap(&mut token_in, &mut token_out);
        }
        let balance = |world: &World, token, owner| world.slot(token, slots::balance(owner));
        let amount = number(10u128.pow(27));
        assert!(
            !world.call(2, pair, calls::swap(zero_for_one, amount)),
            "the pair may not take anything yet"
        );
        assert!(world.call(2, token_in, calls::approve(pair, U256::MAX)));
        let (reserve_in, reserve_out) = (
            balance(&world, token_in, pair),
            balance(&world, token_out, pair),
        );
        let owned = balance(&world, token_out, trader);
        assert!(world.call(2, pair, calls::swap(zero_for_one, amount)));

        let after_fee = amount * number(997);
        let paid = after_fee * reserve_out / (reserve_in * number(1000) + after_fee);
        assert!(!paid.is_zero());
        assert_eq!(balance(&world, token_out, trader), owned + paid);
        assert_eq!(balance(&world, token_in, pair), reserve_in + amount);
        assert_eq!(balance(&world, token_out, pair), reserve_out - paid);
        assert!(
            (reserve_in + amount) * (reserve_out - paid) > reserve_in * reserve_out,
            "the fee stays"
        );
        let [zero, one] = if zero_for_one {
            [reserve_in + amount, reserve_out - paid]
        } else {
            [reserve_out - paid, reserve_in + amount]
        };
        assert_eq!(world.slot(pair, slots::PAIR_RESERVES), one << 128 | zero);
    }
}

#[test]
fn genesis_supplies_are_the_sums_of_the_balances() {
    let world = World::new();
    for token in world.places.tokens.iter().copied() {
        let owners = world.accounts.addresses().iter().chain(&world.places.pairs);
        let sum: U256 = owners
            .map(|owner| world.slot(token, slots::balance(*owner)))
            .sum();
        assert_eq!(world.slot(token, slots::TOKEN_SUPPLY), sum);
    }
}

#[test]
fn wide_storage_grows_changes_and_shrinks() {
    let mut world = World::new();
    let wide = world.places.wide;
    assert!(world.call(0, wide, calls::append(5, number(100))));
    assert!(world.call(0, wide, calls::append(1, number(200))));
    assert!(world.call(0, wide, calls::update(2, 2, number(7))));
    let entries: Vec<U256> = (0..8).map(|slot| world.slot(wide, slot)).collect();
    assert_eq!(entries, [6, 100, 7, 8, 103, 104, 200, 0].map(number));
    assert!(
        !world.call(0, wide, calls::update(6, 2, number(1))),
        "beyond the end"
    );
    assert!(
        !world.call(0, wide, calls::clear(0, 1)),
        "slot 0 is the length"
    );
    assert!(world.call(0, wide, calls::clear(1, 6)));
    assert_eq!(world.state.slots_of(wide), 1, "only the length is left");
}

#[test]
fn cells_are_where_the_factory_makes_them() {
    let mut world = World::new();
    let factory = world.places.factory;
    assert!(world.call(0, factory, calls::spawn(3)));
    assert!(world.call(0, factory, calls::spawn(1)));
    assert_eq!(world.slot(factory, slots::FACTORY_CELLS), number(4));
    let cells: Vec<_> = (0..5).map(|index| world.places.cell(index)).collect();
    for cell in &cells[..4] {
        assert_eq!(
            world.slot(*cell, 0),
            word(*cell),
            "a new cell holds its own address"
        );
    }
    assert_eq!(world.state.account(cells[4]).expect("readable"), None);

    // 3, then 3 + 2 and 3 + 4 modulo 4.
    assert!(world.call(0, factory, calls::touch(3, 2, 3, number(9))));
    assert_eq!(
        [3, 1, 0, 2].map(|index: usize| world.slot(cells[index], 0) == number(9)),
        [true, true, false, false]
    );
    assert_eq!(world.slot(cells[1], 1), word(cells[1]));
    assert_eq!(world.slot(cells[3], 1), number(9), "touched twice");

    assert!(world.call(5, cells[2], calls::set(U256::ZERO)));
    assert_eq!(world.slot(cells[2], 1), word(cells[2]));
    assert!(world.call(5, cells[2], calls::set(U256::ZERO)));
    assert_eq!(world.state.slots_of(cells[2]), 0);
}

#[test]
fn nothing_stays_of_what_the_deleter_makes() {
    let mut world = World::new();
    let (deleter, caller) = (world.places.deleter, world.address(1));
    let ether = |world: &World| {
        world
            .state
            .account(caller)
            .expect("readable")
            .expect("exists")
            .balance
    };
    let before = ether(&world);
    let receipt = world.send(1, TxKind::Call(deleter), 500, calls::run(3));
    assert!(receipt.status());
    assert_eq!(
        before - ether(&world),
        number(7) * U256::from(receipt.cumulative_gas_used()),
        "only gas was paid"
    );
    let made = deleter.create(1);
    assert_eq!(receipt.logs()[0].data.data[12..], made[..]);
    assert_eq!(world.state.account(made).expect("readable"), None);
    assert_eq!(world.state.slots_of(made), 0);
    assert_eq!(world.slot(deleter, 0), number(1));
    // The storage was there in between: three new slots cost more than none.
    let plain = world.send(1, TxKind::Call(deleter), 0, calls::run(0));
    assert!(receipt.cumulative_gas_used() > plain.cumulative_gas_used() + 60_000);
}

#[test]
fn creations_deploy_what_they_say() {
    let mut world = World::new();
    let sender = world.address(3);
    assert!(
        world
            .send(3, TxKind::Create, 0, token_creation(number(77)))
            .status()
    );
    let token = sender.create(0);
    assert_eq!(world.slot(token, slots::balance(sender)), number(77));
    assert!(world.call(3, token, calls::transfer(world.address(4), number(7))));
    assert_eq!(
        world.slot(token, slots::balance(world.address(4))),
        number(7)
    );

    assert!(
        world
            .send(3, TxKind::Create, 0, data_creation(&[1, 2, 3]))
            .status()
    );
    let account = world
        .state
        .account(sender.create(2))
        .expect("readable")
        .expect("created");
    assert_eq!(
        world.state.code(account.code_hash).expect("readable")[..],
        [0, 1, 2, 3]
    );
}
