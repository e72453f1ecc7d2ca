//! Filling a database before its first version.

use arbor_store::Write;

use crate::error::VersionsError;
use crate::layout;
use crate::meta::partly_loaded;
use crate::versions::Versions;

impl Versions {
    /// Puts writes, ascending [by table and key](Write::cmp_place), straight into the store of a database without versions, durable on return:
    /// a state too large for memory, of which the first version, applied afterwards without changes, then is.
    ///
    /// May be called several times. The database cannot be opened again before that first version is flushed.
    ///
    /// # Errors
    /// [`VersionsError::AlreadyLoaded`] if there is a version; a table not declared; the store's errors. What came before the error is loaded.
    pub fn load(&self, sorted: &mut dyn Iterator<Item = Write>) -> Result<(), VersionsError> {
        if let Some(head) = self.head() {
            return Err(VersionsError::AlreadyLoaded { head: head.version });
        }
        let store = self.base.store();
        // Once: an engine that found it anew beside what each call brings would take all that lies between for overlapping, and merge it.
        if !partly_loaded(store)? {
            let mark = layout::put(layout::SYSTEM, layout::LOADING_KEY, Vec::new());
            let marked = store.write(&[mark], true);
            marked.map_err(VersionsError::store("beginning to load"))?;
        }
        let schema = &self.unflushed.schema;
        let mut wrong = None;
        let mut checked = sorted.map_while(|write| match schema.position(write.table) {
            Ok(_) => Some(write),
            Err(error) => {
                wrong = Some(error);
                None
            }
        });
        let loaded = store.ingest(&mut checked);
        // Keys may have been looked for, and remembered as absent.
        self.base.clear();
        match wrong {
            Some(error) => Err(error),
            None => loaded.map_err(VersionsError::store("loading")),
        }
    }
}
