//! Rules that no genesis has: what is switched on for all blocks of a chain beyond its configuration.
//!
//! Databases, witnesses and snapshots have them as one record, a JSON object with a version:
//!
//! ```
//! use arbor_chain::rules::ChainRules;
//!
//! let rules = ChainRules::from_text(r#"{"version":1,"witnessGas":"eip4762"}"#)?;
//! assert_eq!(ChainRules::from_text(&rules.to_text())?, rules);
//! assert_eq!(ChainRules::default().to_text(), r#"{"version":1}"#);
//! # Ok::<(), arbor_chain::rules::RulesError>(())
//! ```

use std::fmt;

use arbor_evm384::{GasSchedule, Interface, RegisterGas};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::executor::{Evm384, Executor};
use crate::genesis::{ChainSpec, WitnessGas};

/// The version of the records that are written.
const VERSION: u64 = 1;

/// Rules that no genesis has, switched on for all blocks of a chain. The default is none.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ChainRules {
    /// Gas for what a block adds to its witness (EIP-4762).
    pub witness_gas: Option<WitnessGas>,
    /// 384-bit arithmetic as opcodes.
    pub evm384: Option<Evm384>,
}

/// Why a record of rules cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// A later program wrote it.
    #[error("its rules are a record of version {0}, and this program reads version {VERSION}")]
    Version(u64),
    /// It is no record of rules.
    #[error("unknown rules {text:.100?}: {why}")]
    Malformed {
        /// The bytes that are stored, as text.
        text: String,
        /// What is wrong with it.
        why: serde_json::Error,
    },
}

impl ChainRules {
    /// Has a chain follow the rules that its specification covers.
    pub fn set(self, spec: &mut ChainSpec) {
        spec.set_witness_gas(self.witness_gas);
    }

    /// Returns an executor that follows the other ones.
    #[must_use]
    pub fn executor(self) -> Executor {
        self.evm384
            .map_or_else(Executor::new, Executor::with_evm384)
    }

    /// Returns the record as one line of JSON, without a line feed.
    #[must_use]
    pub fn to_text(self) -> String {
        serde_json::to_string(&self).expect("invariant: names and numbers serialise")
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`RulesError`] for anything else.
    pub fn from_text(text: &str) -> Result<Self, RulesError> {
        let malformed = |why| RulesError::Malformed {
            text: text.to_owned(),
            why,
        };
        let value: Value = serde_json::from_str(text).map_err(malformed)?;
        Self::from_json(&value)
    }

    /// Reads a record that is a JSON object.
    ///
    /// # Errors
    /// [`RulesError`] for anything else.
    pub fn from_json(value: &Value) -> Result<Self, RulesError> {
        match value.get("version").and_then(Value::as_u64) {
            Some(VERSION) | None => {}
            Some(version) => return Err(RulesError::Version(version)),
        }
        let record = Record::deserialize(value).map_err(|why| RulesError::Malformed {
            text: value.to_string(),
            why,
        })?;
        Ok(Self {
            witness_gas: record.witness_gas.map(Into::into),
            evm384: record.evm384.map(Into::into),
        })
    }
}

impl fmt::Display for ChainRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gas = self.witness_gas.map(|gas| format!("gas {}", gas.name()));
        let evm384 = self.evm384.map(|evm384| {
            let name = evm384.schedule.name().unwrap_or("of its own");
            format!("EVM384 {} with schedule {name}", evm384.interface.name())
        });
        let rules: Vec<String> = gas.into_iter().chain(evm384).collect();
        match &rules[..] {
            [] => f.write_str("no rules beyond its genesis"),
            rules => f.write_str(&rules.join(" and ")),
        }
    }
}

impl Serialize for ChainRules {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let record = Record {
            version: VERSION,
            witness_gas: self.witness_gas.map(Into::into),
            evm384: self.evm384.map(Into::into),
        };
        record.serialize(to)
    }
}

impl<'de> Deserialize<'de> for ChainRules {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        Self::from_json(&value).map_err(serde::de::Error::custom)
    }
}

/// The record in its JSON form.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Record {
    version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    witness_gas: Option<GasName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    evm384: Option<Opcodes>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct GasName(WitnessGas);

/// The opcodes by their name, with their gas in numbers: a name may come to stand for other numbers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Opcodes {
    interface: InterfaceName,
    gas: Prices,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct InterfaceName(Interface);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Prices {
    add: u16,
    sub: u16,
    mul: u16,
    set_modulus: u16,
    registers: RegisterPrices,
}

/// Tables go by the modulus's length: 64 bits first, 768 last.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RegisterPrices {
    set_modulus: u16,
    transfer: u16,
    odd_modulus: [u16; 12],
    add: [u16; 12],
    mul: [u16; 12],
}

impl From<WitnessGas> for GasName {
    fn from(gas: WitnessGas) -> Self {
        Self(gas)
    }
}

impl From<GasName> for WitnessGas {
    fn from(name: GasName) -> Self {
        name.0
    }
}

impl From<GasName> for String {
    fn from(name: GasName) -> Self {
        name.0.name().to_owned()
    }
}

impl TryFrom<String> for GasName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let gas = WitnessGas::from_name(&name);
        gas.map(Self)
            .ok_or_else(|| format!("'{name}' is no text of EIP-4762"))
    }
}

impl From<InterfaceName> for String {
    fn from(name: InterfaceName) -> Self {
        name.0.name().to_owned()
    }
}

impl TryFrom<String> for InterfaceName {
    type Error = arbor_evm384::UnknownInterface;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse().map(Self)
    }
}

impl From<Evm384> for Opcodes {
    fn from(
        Evm384 {
            interface,
            schedule,
        }: Evm384,
    ) -> Self {
        let registers = schedule.registers;
        Self {
            interface: InterfaceName(interface),
            gas: Prices {
                add: schedule.add,
                sub: schedule.sub,
                mul: schedule.mul,
                set_modulus: schedule.set_modulus,
                registers: RegisterPrices {
                    set_modulus: registers.set_modulus,
                    transfer: registers.transfer,
                    odd_modulus: registers.odd_modulus,
                    add: registers.add,
                    mul: registers.mul,
                },
            },
        }
    }
}

impl From<Opcodes> for Evm384 {
    fn from(Opcodes { interface, gas }: Opcodes) -> Self {
        let registers = gas.registers;
        Self {
            interface: interface.0,
            schedule: GasSchedule {
                add: gas.add,
                sub: gas.sub,
                mul: gas.mul,
                set_modulus: gas.set_modulus,
                registers: RegisterGas {
                    set_modulus: registers.set_modulus,
                    transfer: registers.transfer,
                    odd_modulus: registers.odd_modulus,
                    add: registers.add,
                    mul: registers.mul,
                },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All rules that the command line can ask for.
    fn all() -> impl Iterator<Item = ChainRules> {
        let evm384 = GasSchedule::NAMED.into_iter().flat_map(|(_, schedule)| {
            Interface::ALL.map(|interface| Evm384 {
                interface,
                schedule,
            })
        });
        let evm384: Vec<_> = evm384.map(Some).chain([None]).collect();
        let gas = WitnessGas::ALL.map(Some).into_iter().chain([None]);
        gas.flat_map(move |witness_gas| {
            let rules = evm384.clone().into_iter().map(move |evm384| ChainRules {
                witness_gas,
                evm384,
            });
            rules.collect::<Vec<_>>()
        })
    }

    #[test]
    fn records_come_back_as_they_went() {
        for rules in all() {
            let text = rules.to_text();
            assert_eq!(ChainRules::from_text(&text).ok(), Some(rules), "{text}");
            let value = serde_json::to_value(rules).expect("names and numbers");
            assert_eq!(ChainRules::from_json(&value).ok(), Some(rules), "{text}");
        }
        // Prices that no name stands for.
        let schedule = GasSchedule {
            mul: 77,
            ..GasSchedule::DRAFT
        };
        let rules = ChainRules {
            evm384: Some(Evm384 {
                interface: Interface::V7,
                schedule,
            }),
            ..ChainRules::default()
        };
        assert_eq!(ChainRules::from_text(&rules.to_text()).ok(), Some(rules));
    }

    #[test]
    fn the_form_is_fixed() {
        let mut schedules = GasSchedule::NAMED.into_iter();
        let (_, schedule) = schedules.find(|(name, _)| *name == "b").expect("a name");
        let rules = ChainRules {
            witness_gas: WitnessGas::from_name("kaustinen-6"),
            evm384: Some(Evm384 {
                interface: Interface::SetMod,
                schedule,
            }),
        };
        let text = r#"{"version":1,"witnessGas":"kaustinen-6","evm384":{"interface":"setmod","gas":{"add":1,"sub":1,"mul":3,"setModulus":3,"registers":{"setModulus":1,"transfer":1,"oddModulus":[23,26,29,32,36,39,42,45,48,51,54,58],"add":[1,1,1,1,1,1,1,2,2,2,2,2],"mul":[1,1,1,2,2,3,4,5,7,8,10,12]}}}}"#;
        assert_eq!(rules.to_text(), text);
    }

    #[test]
    fn other_records_are_refused() {
        for (record, why) in [
            (
                r#"{"version":2,"fees":1}"#,
                "version 2, and this program reads version 1",
            ),
            (r#"{"witnessGas":"eip4762"}"#, "missing field `version`"),
            (r#"{"version":1,"fees":1}"#, "unknown field `fees`"),
            (
                r#"{"version":1,"witnessGas":"eip1"}"#,
                "'eip1' is no text of EIP-4762",
            ),
            (
                r#"{"version":1,"evm384":{"interface":"v9","gas":{}}}"#,
                "v9",
            ),
            (r#"{"version":1"#, "EOF"),
            // The words of the command line that stood for a record before 2026-11-27.
            ("--gas eip4762\n", "invalid number"),
            ("\n", "EOF"),
            (r#"{"version":1} x"#, "trailing characters"),
        ] {
            let error = ChainRules::from_text(record).expect_err(record).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
