//! The house as its files have it: those of a crate form no circle, and only `pace` asks whether a
//! loop is closed or open. Tests inside the files, which may look anywhere, are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module as its path inside the crate.
type Module = Vec<String>;

/// The files below `folder`, by their modules, without tests.
fn sources(folder: &Path) -> BTreeMap<Module, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let inside = path.strip_prefix(folder).unwrap().with_extension("");
            let name = inside.to_str().unwrap();
            if name.contains("tests") || name == "testing" || name == "bin" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let module = name
                .split('/')
                .filter(|&part| part != "mod" && part != "lib");
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            let text: Vec<&str> = text
                .lines()
                .map(|line| line.split("//").next().unwrap_or(line))
                .collect();
            found.insert(module.map(String::from).collect(), text.join("\n"));
        }
    }
    found
}

/// Names, `::`, braces and commas; everything else is a `;`.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let in_name = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            c if in_name(c) => rest.find(|c| !in_name(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        match first {
            c if c.is_whitespace() => {}
            c if in_name(c) || "{},".contains(c) || token == "::" => tokens.push(token.into()),
            _ => tokens.push(";".into()),
        }
    }
    tokens
}

/// Adds every path that goes on from `base` at the beginning of `tokens`: one, or those in braces.
/// Gives how many tokens that took.
fn paths(tokens: &[String], base: &[String], found: &mut Vec<Module>) -> usize {
    match tokens.first().map(String::as_str) {
        Some("{") => {
            let mut at = 1;
            while at < tokens.len() && tokens[at] != "}" {
                at += paths(&tokens[at..], base, found).max(1);
            }
            at + 1
        }
        Some("super") => {
            let up = base[..base.len().saturating_sub(1)].to_vec();
            1 + going_on(&tokens[1..], up, found)
        }
        Some(name) if name.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
            let path = [base, &[name.to_string()]].concat();
            1 + going_on(&tokens[1..], path, found)
        }
        _ => 0,
    }
}

fn going_on(tokens: &[String], path: Module, found: &mut Vec<Module>) -> usize {
    if tokens.first().is_some_and(|token| token == "::") {
        return 1 + paths(&tokens[1..], &path, found);
    }
    found.push(path);
    0
}

/// The modules that this one names.
fn named(module: &Module, text: &str, all: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let goes_on = tokens.get(at + 1).is_some_and(|next| next == "::");
        if !goes_on || (at > 0 && tokens[at - 1] == "::") {
            continue;
        }
        let child = [&module[..], std::slice::from_ref(token)].concat();
        let base = match token.as_str() {
            "crate" => vec![],
            "super" => module[..module.len() - 1].to_vec(),
            _ if all.contains_key(&child) => child,
            _ => continue,
        };
        paths(&tokens[at + 2..], &base, &mut found);
    }
    let known = |mut path: Module| {
        while !all.contains_key(&path) && path.pop().is_some() {}
        path
    };
    let mut modules: BTreeSet<Module> = found.into_iter().map(known).collect();
    modules.remove(module);
    modules.remove(&vec![]);
    modules
}

/// A way that comes back to where it was, if one goes through `at`.
fn circle(
    uses: &BTreeMap<Module, BTreeSet<Module>>,
    way: &mut Vec<Module>,
    done: &mut BTreeSet<Module>,
    at: &Module,
) -> Option<String> {
    if let Some(start) = way.iter().position(|earlier| earlier == at) {
        way.push(at.clone());
        let names: Vec<String> = way[start..].iter().map(|m| m.join("::")).collect();
        return Some(names.join(" -> "));
    }
    if !done.insert(at.clone()) {
        return None;
    }
    way.push(at.clone());
    let found = uses[at]
        .iter()
        .find_map(|next| circle(uses, way, done, next));
    way.pop();
    found
}

fn first_circle(all: &BTreeMap<Module, String>) -> Option<String> {
    let uses = all
        .iter()
        .map(|(module, text)| (module.clone(), named(module, text, all)))
        .collect();
    let mut done = BTreeSet::new();
    all.keys()
        .filter(|module| !module.is_empty())
        .find_map(|module| circle(&uses, &mut Vec::new(), &mut done, module))
}

fn crate_sources(name: &str) -> BTreeMap<Module, String> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let crates = here.parent().unwrap();
    let mut all = sources(&crates.join(name).join("src"));
    all.entry(vec![]).or_default();
    all
}

#[test]
fn the_files_of_a_crate_form_no_circle() {
    for name in ["core", "hosts", "py"] {
        let all = crate_sources(name);
        assert!(all.len() > 3, "{name}: {:?}", all.keys());
        assert_eq!(first_circle(&all), None, "in {name}");
    }
}

#[test]
fn a_circle_is_found_however_it_is_spelled() {
    let all = |a: &str, b: &str, c: &str| -> BTreeMap<Module, String> {
        let texts = [
            (vec![], ""),
            (vec!["a"], a),
            (vec!["b"], b),
            (vec!["b", "c"], c),
        ];
        texts
            .map(|(path, text)| (path.into_iter().map(String::from).collect(), text.into()))
            .into()
    };
    for (a, b, c) in [
        ("use crate::b::X;", "use crate::a::Y;", ""),
        ("use crate::{b::c::X, Z};", "", "fn f() { crate::a::y() }"),
        ("", "use c::X;", "use super::{Y, Z};"),
        ("use crate::b::c;", "", "use super::super::{d, a::f};"),
    ] {
        assert!(first_circle(&all(a, b, c)).is_some(), "{a} | {b} | {c}");
    }
    let fine = all("use crate::b::c::X;", "use c::{X, Y};", "use crate::Z;");
    assert_eq!(first_circle(&fine), None);
}

#[test]
fn only_the_pace_asks_whether_a_loop_is_closed_or_open() {
    for (module, text) in crate_sources("core") {
        let kinds = ["Load::Closed", "Load::Open", "Pace::Closed", "Pace::Open"];
        let asks = kinds.iter().any(|kind| text.contains(kind));
        let may = module.first().is_some_and(|first| first == "pace");
        assert!(may || !asks, "{} asks", module.join("::"));
    }
}
