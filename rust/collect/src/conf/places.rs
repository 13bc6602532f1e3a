//! Buffered files that another store would write too. A buffer deletes what it has sent, so what the
//! other one has kept would be gone.

use std::collections::HashMap;
use std::path::PathBuf;

use super::{Files, Kind, Pattern, TopStore};

/// Stores that would write what an earlier block writes: their lines, and where that is.
pub fn shared(stores: &[TopStore], new_thread_per_category: bool) -> Vec<(u32, String)> {
    let mut known: HashMap<(PathBuf, String), bool> = HashMap::new();
    let mut found = Vec::new();
    for store in stores {
        let Some(first) = store.categories.first() else {
            continue;
        };
        let single = !store.several && matches!(first, Pattern::Exact(_));
        let copied = !single && new_thread_per_category;
        // What is no copy has one queue, and is called as its first pattern is.
        let named = if copied { store.categories.len() } else { 1 };
        let mut places = Vec::new();
        for pattern in &store.categories[..named] {
            walk(
                &store.store,
                &called(pattern, copied),
                copied,
                false,
                &mut places,
            );
        }
        for (place, buffered) in places {
            let told = place.0.join(&place.1).display().to_string();
            let before = known.insert(place, buffered);
            if before.is_some_and(|other| other || buffered) {
                found.push((store.line, told));
            }
        }
    }
    found
}

fn called(pattern: &Pattern, copied: bool) -> String {
    match pattern {
        Pattern::Exact(name) => name.clone(),
        Pattern::Prefix(prefix) if copied || prefix.is_empty() => format!("{prefix}*"),
        Pattern::Prefix(prefix) => prefix.clone(),
        Pattern::Default => "default".into(),
    }
}

type Place = (PathBuf, String);

/// Folder and base name of all files below a store, as `Purpose::place` has them, and whether they
/// are `buffered` ones.
fn walk(
    kind: &Kind,
    category: &str,
    copied: bool,
    buffered: bool,
    places: &mut Vec<(Place, bool)>,
) {
    match kind {
        Kind::File(files) | Kind::ThriftFile(files, _) => {
            places.push((place(files, category, copied), buffered));
        }
        Kind::Buffer(buffer) => {
            walk(&buffer.primary, category, copied, buffered, places);
            walk(&buffer.secondary, category, copied, true, places);
        }
        Kind::Bucket(buckets) => {
            for store in &buckets.stores {
                walk(store, category, copied, buffered, places);
            }
        }
        Kind::Multi(multi) => {
            for store in &multi.stores {
                walk(store, category, copied, buffered, places);
            }
        }
        Kind::PerCategory(model) => walk(model, category, true, buffered, places),
        Kind::Network(_) | Kind::Null => {}
    }
}

fn place(files: &Files, category: &str, copied: bool) -> Place {
    let mut folder = files.path.clone();
    let base = if copied {
        folder.push(category);
        category.to_owned()
    } else {
        files.base.clone().unwrap_or_else(|| category.to_owned())
    };
    if let Some(sub) = &files.sub_directory {
        folder.push(sub);
    }
    (folder, base)
}
