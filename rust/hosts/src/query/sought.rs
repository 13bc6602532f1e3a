//! What a match looks for in one field: what snippets mark.

use super::asked::Mode;
use super::checked::Matching;

/// Terms that a document may have been found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sought<'m> {
    pub mode: Mode,
    pub terms: &'m [String],
    pub distance: u8,
}

impl Matching {
    /// What is looked for in `field`, in the order of the query; what is excluded is left out,
    /// and whatever is excluded from that.
    pub fn sought(&self, field: usize) -> Vec<Sought<'_>> {
        let mut found = Vec::new();
        self.gather(field, &mut found);
        found
    }

    fn gather<'m>(&'m self, field: usize, found: &mut Vec<Sought<'m>>) {
        match self {
            Matching::All | Matching::Nothing => {}
            Matching::Terms {
                mode,
                terms,
                fields,
                distance,
            } => {
                if fields.contains(&field) {
                    found.push(Sought {
                        mode: *mode,
                        terms,
                        distance: *distance,
                    });
                }
            }
            Matching::Boolean { must, should, .. } => {
                must.iter()
                    .chain(should)
                    .for_each(|part| part.gather(field, found));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(word: &str, fields: &[usize]) -> Matching {
        Matching::Terms {
            mode: Mode::Any,
            terms: vec![word.into()],
            fields: fields.into(),
            distance: 1,
        }
    }

    #[test]
    fn what_is_excluded_or_of_another_field_is_not_sought() {
        let inner = Matching::Boolean {
            must: vec![terms("a", &[0])],
            should: vec![],
            must_not: vec![terms("b", &[0])],
        };
        let matching = Matching::Boolean {
            must: vec![inner.clone()],
            should: vec![terms("c", &[1]), terms("d", &[1, 0]), Matching::All],
            must_not: vec![inner],
        };
        let words = |field| -> Vec<&str> {
            let found = matching.sought(field).into_iter();
            found.map(|one| one.terms[0].as_str()).collect()
        };
        assert_eq!(words(0), ["a", "d"]);
        assert_eq!(words(1), ["c", "d"]);
        assert!(words(2).is_empty());
    }
}
