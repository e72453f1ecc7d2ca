//! Serves a database over JSON-RPC.
#![forbid(unsafe_code)]
