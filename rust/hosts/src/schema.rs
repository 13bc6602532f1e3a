//! The fields of a corpus and its documents, as they cross the wire.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::options::nearest;

/// The types that a field can have. Text is analysed; the others are matched whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    Text,
    Keyword,
    Keywords,
    Integer,
    Float,
    Date,
    Boolean,
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FieldType::Text => "text",
            FieldType::Keyword => "keyword",
            FieldType::Keywords => "keywords",
            FieldType::Integer => "integer",
            FieldType::Float => "float",
            FieldType::Date => "date",
            FieldType::Boolean => "boolean",
        })
    }
}

/// One named field; `stored`: its value can be returned with a hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: FieldType,
    #[serde(default = "yes")]
    pub stored: bool,
}

fn yes() -> bool {
    true
}

/// The fields of a corpus, in order. Every document also has an id, a unique string.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    pub fields: Vec<Field>,
}

impl Schema {
    /// The sentence that says what is wrong with it, if anything is.
    pub fn check(&self) -> Result<(), String> {
        for (i, field) in self.fields.iter().enumerate() {
            if self.fields[..i]
                .iter()
                .any(|other| other.name == field.name)
            {
                return Err(format!("there are two fields named {:?}", field.name));
            }
        }
        Ok(())
    }

    /// The index of the field of that name, or a sentence with the nearest valid name.
    pub fn index_of(&self, name: &str) -> Result<usize, String> {
        self.fields
            .iter()
            .position(|field| field.name == name)
            .ok_or_else(|| {
                let near = nearest(name, self.fields.iter().map(|field| field.name.as_str()));
                match near {
                    "" => format!("there is no field {name:?}; the schema has none"),
                    _ => format!("there is no field {name:?}; did you mean {near:?}?"),
                }
            })
    }
}

/// One value of a document, borrowed from the request where it needs no unescaping.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    Str(Cow<'a, str>),
    Strs(Vec<Cow<'a, str>>),
    Int(i64),
    Float(f64),
    Bool(bool),
}

/// One document: its id and its values by index of the field.
#[derive(Debug, Clone, PartialEq)]
pub struct Document<'a> {
    pub id: Cow<'a, str>,
    pub values: Vec<(usize, Value<'a>)>,
}

/// Reads one line of a batch. On failure: the id as far as known, and the reason.
pub fn parse_document<'a>(
    line: &'a str,
    schema: &Schema,
) -> Result<Document<'a>, (String, String)> {
    let mut reader = serde_json::Deserializer::from_str(line);
    let parsed = Line { schema }
        .deserialize(&mut reader)
        .and_then(|document| {
            reader.end()?;
            Ok(document)
        });
    match parsed {
        Err(error) => Err((String::new(), format!("not a document in JSON: {error}"))),
        Ok(Parsed { id: None, .. }) => Err((String::new(), "the document has no id".into())),
        Ok(Parsed {
            id: Some(id),
            wrong: Some(reason),
            ..
        }) => Err((id.into_owned(), reason)),
        Ok(Parsed {
            id: Some(id),
            values,
            ..
        }) => Ok(Document { id, values }),
    }
}

struct Parsed<'a> {
    id: Option<Cow<'a, str>>,
    values: Vec<(usize, Value<'a>)>,
    /// The first thing wrong; parsing goes on, so that the id is known.
    wrong: Option<String>,
}

struct Line<'s> {
    schema: &'s Schema,
}

impl<'de> DeserializeSeed<'de> for Line<'_> {
    type Value = Parsed<'de>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parsed<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Line<'_> {
    type Value = Parsed<'de>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{\"id\": .., \"v\": {..}}")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed<'de>, A::Error> {
        let mut parsed = Parsed {
            id: None,
            values: Vec::new(),
            wrong: None,
        };
        while let Some(Text(key)) = map.next_key()? {
            match key.as_ref() {
                "id" => match map.next_value()? {
                    Any::Str(id) => parsed.id = Some(id),
                    _ => return Err(A::Error::custom("the id is a string")),
                },
                "v" => map.next_value_seed(Values {
                    schema: self.schema,
                    into: &mut parsed,
                })?,
                _ => {
                    return Err(A::Error::custom(format!(
                        "unknown key {key:?}, only id and v"
                    )));
                }
            }
        }
        Ok(parsed)
    }
}

struct Values<'s, 'p, 'de> {
    schema: &'s Schema,
    into: &'p mut Parsed<'de>,
}

impl<'de> DeserializeSeed<'de> for Values<'_, '_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Values<'_, '_, 'de> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the values by field name")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let fields = &self.schema.fields;
        let mut expected = 0;
        while let Some(Text(key)) = map.next_key()? {
            // Documents mostly give their fields in the schema's order: look there first.
            let found = match fields.get(expected) {
                Some(field) if field.name == key => Ok(expected),
                _ => self.schema.index_of(&key),
            };
            let any: Any<'de> = map.next_value()?;
            let fitted = found.and_then(|index| {
                expected = index + 1;
                fit(any, &fields[index]).map(|value| (index, value))
            });
            match fitted {
                Ok((index, _)) if self.into.values.iter().any(|(i, _)| *i == index) => {
                    let twice = format!("field {key:?} is given twice");
                    self.into.wrong.get_or_insert(twice);
                }
                Ok(value) => self.into.values.push(value),
                Err(reason) => {
                    self.into.wrong.get_or_insert(reason);
                }
            }
        }
        Ok(())
    }
}

fn fit<'a>(any: Any<'a>, field: &Field) -> Result<Value<'a>, String> {
    use FieldType as T;
    match (field.kind, any) {
        (T::Text | T::Keyword, Any::Str(text)) => Ok(Value::Str(text)),
        (T::Keywords, Any::Strs(texts)) => Ok(Value::Strs(texts)),
        (T::Integer | T::Date, Any::Int(number)) => Ok(Value::Int(number)),
        // The sum turns -0.0, which equals 0.0 but is ordered before it, into 0.0.
        (T::Float, Any::Float(number)) => Ok(Value::Float(number + 0.0)),
        (T::Float, Any::Int(number)) => Ok(Value::Float(number as f64)),
        (T::Boolean, Any::Bool(flag)) => Ok(Value::Bool(flag)),
        (_, Any::Other("null")) => Err(format!(
            "field {:?} is null; a field without a value is left out",
            field.name
        )),
        (kind, any) => Err(format!(
            "field {:?} is of type {kind} and cannot hold {}",
            field.name,
            any.shown()
        )),
    }
}

/// A string, borrowed where the JSON has no escapes in it.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'de>, D::Error> {
        match deserializer.deserialize_str(AnyVisitor)? {
            Any::Str(text) => Ok(Text(text)),
            _ => Err(D::Error::custom("a string was expected")),
        }
    }
}

enum Any<'a> {
    Str(Cow<'a, str>),
    Strs(Vec<Cow<'a, str>>),
    Int(i64),
    Float(f64),
    Bool(bool),
    Other(&'static str),
}

impl Any<'_> {
    fn shown(&self) -> String {
        match self {
            Any::Str(text) if text.chars().count() > 40 => {
                format!("{:?}...", text.chars().take(40).collect::<String>())
            }
            Any::Str(text) => format!("{text:?}"),
            Any::Strs(_) => "a list".into(),
            Any::Int(number) => number.to_string(),
            Any::Float(number) => format!("{number:?}"),
            Any::Bool(flag) => flag.to_string(),
            Any::Other(what) => (*what).into(),
        }
    }
}

impl<'de> Deserialize<'de> for Any<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Any<'de>, D::Error> {
        deserializer.deserialize_any(AnyVisitor)
    }
}

struct AnyVisitor;

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = Any<'de>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Any<'de>, E> {
        Ok(Any::Str(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Any<'de>, E> {
        Ok(Any::Str(Cow::Owned(text.to_owned())))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Any<'de>, E> {
        Ok(Any::Int(number))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Any<'de>, E> {
        Ok(i64::try_from(number).map_or(Any::Other("a number beyond 64 bits"), Any::Int))
    }
    fn visit_f64<E>(self, number: f64) -> Result<Any<'de>, E> {
        Ok(Any::Float(number))
    }
    fn visit_bool<E>(self, flag: bool) -> Result<Any<'de>, E> {
        Ok(Any::Bool(flag))
    }
    fn visit_unit<E>(self) -> Result<Any<'de>, E> {
        Ok(Any::Other("null"))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Any<'de>, A::Error> {
        let mut texts = Vec::new();
        let mut only_texts = true;
        while let Some(any) = seq.next_element::<Any<'de>>()? {
            match any {
                Any::Str(text) => texts.push(text),
                _ => only_texts = false,
            }
        }
        Ok(if only_texts {
            Any::Strs(texts)
        } else {
            Any::Other("a list that holds other than strings")
        })
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Any<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Any::Other("an object"))
    }
}
