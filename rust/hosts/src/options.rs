//! Options of a host: `--name value`, each with a default, checked before anything starts.

use serde_json::{Map, Value};

/// What an option may hold.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A whole number between two bounds, both included.
    Int(i64, i64),
    /// A number between two bounds, both included.
    Real(f64, f64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Bool,
    /// Any text.
    Text,
}

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// The name without dashes.
    pub name: &'static str,
    /// Its values.
    pub kind: Kind,
    /// The default as it would be typed.
    pub default: &'static str,
}

/// Options as parsed: every one of the specs has its value.
#[derive(Debug, Clone)]
pub struct Options(Map<String, Value>);

impl Options {
    /// Parses `--name value` pairs; the error is one sentence.
    pub fn parse(specs: &[&[Spec]], argv: &[String]) -> Result<Options, String> {
        let all: Vec<&Spec> = specs.iter().copied().flatten().collect();
        let mut values = Map::new();
        for spec in &all {
            values.insert(spec.name.into(), value(spec, spec.default)?);
        }
        let mut rest = argv.iter();
        while let Some(word) = rest.next() {
            let (name, inline) = match word.strip_prefix("--") {
                None => return Err(format!("{word:?} is not an option; options begin with --")),
                Some(body) => match body.split_once('=') {
                    Some((name, text)) => (name, Some(text.to_owned())),
                    None => (body, None),
                },
            };
            let Some(spec) = all.iter().find(|spec| spec.name == name) else {
                let near = nearest(name, all.iter().map(|spec| spec.name));
                return Err(format!(
                    "there is no option --{name}; did you mean --{near}?"
                ));
            };
            let text = match inline.or_else(|| rest.next().cloned()) {
                Some(text) => text,
                None => return Err(format!("--{name} needs a value")),
            };
            values.insert(name.into(), value(spec, &text)?);
        }
        Ok(Options(values))
    }

    /// A whole number.
    pub fn int(&self, name: &str) -> i64 {
        self.0[name].as_i64().expect("declared as a whole number")
    }

    /// A number, whole or not.
    pub fn real(&self, name: &str) -> f64 {
        self.0[name].as_f64().expect("declared as a number")
    }

    /// A count or size, declared with a lower bound of at least 0.
    pub fn size(&self, name: &str) -> usize {
        usize::try_from(self.int(name)).expect("declared as not negative")
    }

    /// A word or text.
    pub fn text(&self, name: &str) -> &str {
        self.0[name].as_str().expect("declared as text")
    }

    /// True or false.
    pub fn flag(&self, name: &str) -> bool {
        self.0[name].as_bool().expect("declared as true or false")
    }

    /// The values of these options, as `facts` reads them back.
    pub fn values(&self, specs: &[Spec]) -> Value {
        let shown = specs
            .iter()
            .map(|spec| (spec.name.to_owned(), self.0[spec.name].clone()));
        Value::Object(shown.collect())
    }
}

fn value(spec: &Spec, text: &str) -> Result<Value, String> {
    let name = spec.name;
    match spec.kind {
        Kind::Text => Ok(text.into()),
        Kind::Int(low, high) => match text.parse::<i64>() {
            Ok(number) if (low..=high).contains(&number) => Ok(number.into()),
            Ok(number) => Err(format!("--{name} is {low} to {high}, not {number}")),
            Err(_) => Err(format!(
                "--{name} is a whole number from {low} to {high}, not {text:?}"
            )),
        },
        Kind::Real(low, high) => match text.parse::<f64>() {
            Ok(number) if (low..=high).contains(&number) => Ok(number.into()),
            Ok(number) => Err(format!("--{name} is {low} to {high}, not {number}")),
            Err(_) => Err(format!(
                "--{name} is a number from {low} to {high}, not {text:?}"
            )),
        },
        Kind::Bool => match text {
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            _ => Err(format!("--{name} is true or false, not {text:?}")),
        },
        Kind::Choice(words) if words.contains(&text) => Ok(text.into()),
        Kind::Choice(words) => {
            let near = nearest(text, words.iter().copied());
            let listed = words.join(", ");
            Err(format!(
                "--{name} is one of {listed}, not {text:?}; did you mean {near}?"
            ))
        }
    }
}

/// The valid name with the fewest edits from `word` (Levenshtein); the first among equals.
pub fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> &'a str {
    names.min_by_key(|name| edits(word, name)).unwrap_or("")
}

fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[Spec] = &[
        Spec {
            name: "parts",
            kind: Kind::Int(1, 64),
            default: "1",
        },
        Spec {
            name: "merge",
            kind: Kind::Choice(&["flat", "two-level"]),
            default: "flat",
        },
    ];

    fn parse(words: &[&str]) -> Result<Options, String> {
        let argv: Vec<String> = words.iter().map(|&word| word.into()).collect();
        Options::parse(&[SPECS], &argv)
    }

    #[test]
    fn an_option_not_given_has_its_default() {
        let options = parse(&["--parts", "4"]).unwrap();
        assert_eq!((options.int("parts"), options.text("merge")), (4, "flat"));
    }

    #[test]
    fn a_mistake_is_one_sentence_with_the_nearest_valid_name() {
        assert_eq!(
            parse(&["--part", "4"]).unwrap_err(),
            "there is no option --part; did you mean --parts?"
        );
        assert_eq!(
            parse(&["--parts", "65"]).unwrap_err(),
            "--parts is 1 to 64, not 65"
        );
        assert_eq!(parse(&["--parts"]).unwrap_err(), "--parts needs a value");
        assert!(
            parse(&["--merge", "twolevel"])
                .unwrap_err()
                .ends_with("did you mean two-level?")
        );
    }
}
