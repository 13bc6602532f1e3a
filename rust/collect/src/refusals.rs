//! Calls that are refused for good: their clients only see TRY_LATER, so whoever runs the collector
//! is told why.

use std::collections::HashSet;
use std::io::Write;
use std::time::{Duration, Instant};

/// After this time all is said again.
const AGAIN: Duration = Duration::from_secs(3600);

/// Reasons that are said in that time. Clients can think of categories without end.
const MOST: usize = 100;

/// What was said lately.
#[derive(Default)]
pub struct Refusals {
    since: Option<Instant>,
    said: HashSet<String>,
}

impl Refusals {
    /// Says this reason on standard error, unless it was said lately.
    pub fn say(&mut self, why: String) {
        if let Some(news) = self.news(why, Instant::now()) {
            // Connections are served here: nothing must end if nobody reads any more.
            let _ = writeln!(std::io::stderr(), "searchbench collect: {news}");
        }
    }

    fn news(&mut self, why: String, now: Instant) -> Option<String> {
        if self.since.is_none_or(|since| now >= since + AGAIN) {
            self.since = Some(now);
            self.said.clear();
        }
        if self.said.len() > MOST || self.said.contains(&why) {
            return None;
        }
        let news = if self.said.len() == MOST {
            format!(
                "more than {MOST} reasons for TRY_LATER in an hour: the others are not reported"
            )
        } else {
            format!("{why} (its clients get TRY_LATER)")
        };
        self.said.insert(why);
        Some(news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_said_once_an_hour() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        let mut said = |why: &str, after: u64| {
            let at = now + Duration::from_secs(after);
            refusals.news(why.into(), at).is_some()
        };
        assert!(said("a", 0));
        assert!(!said("a", 1) && said("b", 1) && !said("a", 3599));
        assert!(said("a", 3600) && said("b", 3600) && !said("b", 7199));
    }

    #[test]
    fn reasons_without_end_are_not_said_without_end() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        let said: Vec<_> = (0..1000)
            .filter_map(|number| refusals.news(number.to_string(), now))
            .collect();
        assert_eq!(said.len(), MOST + 1);
        assert!(said[MOST].starts_with("more than 100 reasons"));
        assert_eq!(refusals.said.len(), MOST + 1);
    }
}
