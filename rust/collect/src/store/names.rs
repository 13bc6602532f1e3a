//! Names of files: `BASE_00000`, or `BASE-2026-11-22_00000` where they rotate by the clock.

use std::fs;
use std::io;
use std::path::Path;

/// `BASE_NNNNN`.
pub fn suffixed(base: &str, number: u64) -> String {
    format!("{base}_{number:05}")
}

/// The numbers of the files of this base name, sorted; none where there is no such folder.
pub fn numbers(folder: &Path, base: &str) -> io::Result<Vec<u64>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(base)?.strip_prefix('_'));
        // As many digits as it was written with: others wrote `BASE_7`.
        if let Some(digits) = number
            && let Ok(number) = digits.parse::<u64>()
            && format!("{number:05}") == digits
        {
            found.push(number);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Makes a folder and those above it; with `fsync`, so that a crash does not take them back.
pub fn make_folder(folder: &Path, fsync: bool) -> io::Result<()> {
    let missing: Vec<_> = folder
        .ancestors()
        .take_while(|above| !above.exists())
        .collect();
    fs::create_dir_all(folder)?;
    if fsync {
        for made in missing {
            if let Some(above) = made.parent().filter(|above| !above.as_os_str().is_empty()) {
                sync_folder(above)?;
            }
        }
    }
    Ok(())
}

/// What is in this folder is found there after a crash too.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}
