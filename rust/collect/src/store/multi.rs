//! Stores of stores: `multi`, to which every message goes several times, and `category`, which has
//! one store for each category in one thread.

use std::collections::BTreeMap;

use super::{Purpose, Store, build, lose};
use crate::batch::{Batch, Name};
use crate::conf::{Kind, Multi};

pub struct Several {
    all: bool,
    stores: Vec<Box<dyn Store>>,
    /// What each has not taken, of what will be given again.
    owed: Option<Vec<Batch>>,
    purpose: Purpose,
}

impl Several {
    pub fn new(conf: &Multi, purpose: &Purpose) -> Several {
        Several {
            all: conf.all,
            stores: conf
                .stores
                .iter()
                .map(|kind| build(kind, purpose))
                .collect(),
            owed: None,
            purpose: purpose.clone(),
        }
    }
}

impl Store for Several {
    /// A store that took them the first time is not given them again.
    fn keep(&mut self, batch: &mut Batch) -> Result<(), String> {
        let copies = || {
            self.stores
                .iter()
                .map(|_| batch.clone())
                .collect::<Vec<_>>()
        };
        let mut owed = self.owed.take().unwrap_or_else(copies);
        let mut trouble = None;
        let mut took = 0;
        for (store, part) in self.stores.iter_mut().zip(&mut owed) {
            if part.is_empty() {
                took += 1;
                continue;
            }
            match store.keep(part) {
                Ok(()) => {
                    took += 1;
                    part.clear();
                }
                Err(why) => trouble = Some(why),
            }
        }
        match trouble {
            None => Ok(()),
            Some(_) if !self.all && took > 0 => {
                // One is enough: the others go without, which is counted.
                for (store, part) in self.stores.iter_mut().zip(&mut owed) {
                    if !part.is_empty() {
                        lose(&self.purpose.counts, part.len());
                        store.forget();
                    }
                }
                Ok(())
            }
            Some(why) => {
                self.owed = Some(owed);
                Err(why)
            }
        }
    }

    fn forget(&mut self) {
        for (store, part) in self
            .stores
            .iter_mut()
            .zip(self.owed.take().unwrap_or_default())
        {
            if !part.is_empty() {
                store.forget();
            }
        }
    }

    fn ready(&mut self) -> Result<(), String> {
        let mut first = Ok(());
        let mut ready = 0;
        for store in &mut self.stores {
            match store.ready() {
                Ok(()) => ready += 1,
                failed => first = failed,
            }
        }
        if !self.all && ready > 0 {
            Ok(())
        } else {
            first
        }
    }

    fn check(&mut self, full: f64) {
        self.stores.iter_mut().for_each(|store| store.check(full));
    }

    fn close(&mut self) {
        self.stores.iter_mut().for_each(|store| store.close());
    }

    fn trouble(&self) -> Option<String> {
        self.stores.iter().find_map(|store| store.trouble())
    }
}

pub struct EachCategory {
    model: Kind,
    purpose: Purpose,
    stores: BTreeMap<Name, Box<dyn Store>>,
}

impl EachCategory {
    pub fn new(model: &Kind, purpose: &Purpose) -> EachCategory {
        EachCategory {
            model: model.clone(),
            purpose: purpose.clone(),
            stores: BTreeMap::new(),
        }
    }
}

impl Store for EachCategory {
    fn keep(&mut self, batch: &mut Batch) -> Result<(), String> {
        let mut parts: BTreeMap<Name, Batch> = BTreeMap::new();
        for (name, message) in batch.iter() {
            parts.entry(name.clone()).or_default().push(name, message);
        }
        batch.clear();
        let mut done = Ok(());
        for (name, mut part) in parts {
            let store = self.stores.entry(name).or_insert_with_key(|name| {
                let category = String::from_utf8_lossy(name).into_owned();
                let purpose = Purpose {
                    category,
                    copied: true,
                    shared: false,
                    ..self.purpose.clone()
                };
                build(&self.model, &purpose)
            });
            if let Err(why) = store.keep(&mut part) {
                batch.append(&part);
                done = Err(why);
            }
        }
        done
    }

    fn forget(&mut self) {
        self.stores.values_mut().for_each(|store| store.forget());
    }

    fn check(&mut self, full: f64) {
        self.stores.values_mut().for_each(|store| store.check(full));
    }

    fn close(&mut self) {
        self.stores.values_mut().for_each(|store| store.close());
    }

    fn trouble(&self) -> Option<String> {
        self.stores.values().find_map(|store| store.trouble())
    }
}
