//! Why a request was not done.

/// Why a request was not done; the text is one sentence for a person.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// Status 1.
    Error(String),
    /// Status 2: the library cannot express it.
    Unsupported(String),
}

impl Failure {
    /// Status 1 with this sentence.
    pub fn error(text: impl Into<String>) -> Failure {
        Failure::Error(text.into())
    }
}
