//! Library hosts: engines that are libraries, served over the framed protocol of FORMATS.md.

/// Be a library host until told to stop. `argv` without the program name, as FORMATS.md says:
/// `ENGINE --port P --data DIR [--name value ...]`. Returns the exit code.
pub fn run(argv: Vec<String>) -> i32 {
    let named = argv.first().map_or("", String::as_str);
    eprintln!("there is no library host {named:?}");
    2
}
