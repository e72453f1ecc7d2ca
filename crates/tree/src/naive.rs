//! A naive nested Merkle-Patricia trie.
