//! Random operations, beside a map that is obviously right.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::random::Random;
use super::{Files, Subject, scanned, value};
use crate::{OWNER_BYTES, Reader, Store, Table, Value, Write};

type Model = BTreeMap<(Table, Vec<u8>), Value>;

const TABLES: [Table; 7] = [
    Table(0),
    Table(1),
    Table(0x80),
    Table(0x82),
    Table(0xc0),
    Table(0xc2),
    Table(0xff),
];
const STEPS: usize = 250;

pub(super) fn against_a_map(subject: &Subject<'_>, name: &str) {
    for seed in 0..2 {
        Run {
            subject,
            name: format!("{name}-{seed}"),
            random: Random(seed),
            model: Model::new(),
            snapshots: Vec::new(),
        }
        .steps();
    }
}

struct Run<'a> {
    subject: &'a Subject<'a>,
    name: String,
    random: Random,
    model: Model,
    snapshots: Vec<(Box<dyn Reader>, Model)>,
}

impl Run<'_> {
    fn steps(mut self) {
        let mut store = (self.subject.open)(&self.name);
        for step in 0..STEPS {
            match self.random.below(100) {
                0..35 => self.write(&*store),
                35..65 => self.ingest(&*store),
                65..72 => self.delete_prefix(&*store),
                72..80 => self
                    .snapshots
                    .push((store.snapshot().expect("snapshot"), self.model.clone())),
                80..86 => self.check_snapshot(),
                86..88 => store.compact().expect("compact"),
                88..90 => store = self.reopen(store),
                _ => self.probe(&*store),
            }
            if step % 40 == 0 {
                check_all(&*store, &self.model);
            }
        }
        check_all(&*store, &self.model);
        for (snapshot, model) in &self.snapshots {
            check_all(&**snapshot, model);
        }
    }

    fn write(&mut self, store: &dyn Store) {
        let writes: Vec<_> = (0..self.random.below(30))
            .map(|_| self.random_write())
            .collect();
        let durable = self.random.below(4) == 0;
        store.write(&writes, durable).expect("write");
        apply(&mut self.model, &writes);
    }

    fn ingest(&mut self, store: &dyn Store) {
        let mut writes: Vec<_> = (0..self.random.below(120))
            .map(|_| self.random_write())
            .collect();
        writes.sort_by(Write::cmp_place);
        writes.dedup_by(|a, b| (a.table, &a.key) == (b.table, &b.key));
        store.ingest(&mut writes.iter().cloned()).expect("ingest");
        apply(&mut self.model, &writes);
    }

    fn delete_prefix(&mut self, store: &dyn Store) {
        let table = self.random_table();
        let prefix = self.random_prefix(table);
        store.delete_prefix(table, &prefix).expect("delete_prefix");
        self.model
            .retain(|(of, key), _| *of != table || !key.starts_with(&prefix));
    }

    fn check_snapshot(&mut self) {
        if !self.snapshots.is_empty() {
            let at = self.random.below(self.snapshots.len());
            let (snapshot, model) = self.snapshots.swap_remove(at);
            check_all(&*snapshot, &model);
        }
    }

    fn reopen(&mut self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        if self.subject.files == Files::None {
            return store;
        }
        store.write(&[], true).expect("durable");
        self.snapshots.clear();
        drop(store);
        (self.subject.open)(&self.name)
    }

    /// Point reads and scans at random places.
    fn probe(&mut self, store: &dyn Store) {
        for _ in 0..20 {
            let table = self.random_table();
            let key = self.random_key(table);
            let expected = self
                .model
                .get(&(table, key.clone()))
                .map(|value| value.to_vec());
            assert_eq!(value(store, table, &key), expected, "{table:?} {key:?}");
            let prefix = self.random_prefix(table);
            let expected: Vec<_> = entries(&self.model, table)
                .filter(|(found, _)| found.starts_with(&prefix) && *found >= key)
                .collect();
            assert_eq!(
                scanned(store, table, &prefix, &key),
                expected,
                "{table:?} {prefix:?} {key:?}"
            );
        }
    }

    fn random_table(&mut self) -> Table {
        TABLES[self.random.below(TABLES.len())]
    }

    /// A key, in a table by owner of one of nine owners.
    fn random_key(&mut self, table: Table) -> Vec<u8> {
        let length = self.random.below(6);
        let rest = self.random.key(length);
        if !table.is_by_owner() {
            return rest;
        }
        let mut owner = vec![0x81; OWNER_BYTES];
        for byte in [0, OWNER_BYTES - 1] {
            owner[byte] = [0, 0x82, 0xff][self.random.below(3)];
        }
        [owner, rest].concat()
    }

    fn random_prefix(&mut self, table: Table) -> Vec<u8> {
        let mut key = self.random_key(table);
        let owner = if table.is_by_owner() { OWNER_BYTES } else { 0 };
        key.truncate(self.random.below(owner + 4));
        key
    }

    fn random_write(&mut self) -> Write {
        let table = self.random_table();
        let key = self.random_key(table);
        if self.random.below(3) == 0 {
            return Write::delete(table, &key);
        }
        let length = self.random.below(100);
        Write::put(table, &key, &self.random.bytes(length))
    }
}

fn apply(model: &mut Model, writes: &[Write]) {
    for write in writes {
        let key = (write.table, write.key.to_vec());
        match &write.value {
            Some(value) => model.insert(key, value.clone()),
            None => model.remove(&key),
        };
    }
}

fn entries(model: &Model, table: Table) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    model
        .iter()
        .filter(move |((of, _), _)| *of == table)
        .map(|((_, key), value)| (key.clone(), value.to_vec()))
}

fn check_all(reader: &dyn Reader, model: &Model) {
    for table in TABLES {
        let expected: Vec<_> = entries(model, table).collect();
        assert_eq!(scanned(reader, table, b"", b""), expected, "{table:?}");
    }
}
