//! All tests of the database, in one program.

mod key_value;
mod killed;
mod open_options;
mod resume;
