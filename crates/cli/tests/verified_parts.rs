//! `arbor verify --part` and `--join` end like `arbor verify`.

use crate::support::Folder;

#[test]
fn a_verification_in_parts_ends_like_a_whole_one() {
    let folder = Folder::with_chain();
    let replay = ["replay", "--db", "db", "--tree", "eip8297", "chain"];
    folder.run(&replay).ok();
    let verify = |words: &[&str]| folder.run(&[&["verify", "--db", "db"], words].concat());
    for (part, to) in [("1/3", "one"), ("2/3", "two"), ("3/3", "three")] {
        let said = verify(&["--part", part, "--to", to]).ok().stdout();
        assert!(
            said.starts_with(&format!("checked part {part}: ")),
            "{said}"
        );
    }
    let joined = verify(&["--join", "three", "one", "two"]).ok().stdout();
    assert_eq!(joined, verify(&[]).ok().stdout());

    verify(&["--join", "one", "two"]).fails_with(&["part 3/3 is missing"]);
    verify(&["--join", "one", "two", "three", "one"]).fails_with(&["one", "is there already"]);
    let bytes = std::fs::read(folder.path("two")).expect("it is there");
    std::fs::write(folder.path("torn"), &bytes[..bytes.len() / 2]).expect("it is written");
    verify(&["--join", "one", "torn", "three"]).fails_with(&["torn", "is cut or damaged"]);
    verify(&["--join", "one", "db/genesis.json", "three"])
        .fails_with(&["genesis.json", "is not a part"]);
    verify(&["--part", "1/3", "--to", "db/HEAD"]).fails_with(&["--to", "the database's own"]);
    // The database has another latest block.
    folder.run(&["rollback", "--db", "db", "--to", "-1"]).ok();
    verify(&["--join", "one", "two", "three"]).fails_with(&["one", "and this is"]);
}
