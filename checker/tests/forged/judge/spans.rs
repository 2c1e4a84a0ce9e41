//! Intervals `[from, to)` and what is made of them.

/// An interval that contains `from` and not `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Its first instant.
    pub from: u64,
    /// The first instant after it.
    pub to: u64,
}

/// The interval `[from, to)`.
pub fn span(from: u64, to: u64) -> Span {
    Span { from, to }
}

impl Span {
    /// Whether it contains no instant.
    pub fn is_empty(self) -> bool {
        self.from >= self.to
    }

    /// Whether both contain the same instant.
    pub fn overlaps(self, other: Span) -> bool {
        self.from.max(other.from) < self.to.min(other.to)
    }

    /// Whether neither is over before the other begins.
    pub fn meets(self, other: Span) -> bool {
        self.from.max(other.from) <= self.to.min(other.to)
    }

    /// How long it is.
    pub fn length(self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// The same instants in as few intervals as there can be, in order.
pub fn united(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|span| !span.is_empty());
    spans.sort();
    let mut whole: Vec<Span> = Vec::new();
    for span in spans {
        match whole.last_mut() {
            Some(last) if span.from <= last.to => last.to = last.to.max(span.to),
            _ => whole.push(span),
        }
    }
    whole
}

/// The instants of the first that are in none of the second.
pub fn without(spans: &[Span], taken: &[Span]) -> Vec<Span> {
    let mut left = united(spans.to_vec());
    for hole in taken.iter().filter(|hole| !hole.is_empty()) {
        left = left
            .iter()
            .flat_map(|&whole| {
                [
                    span(whole.from, whole.to.min(hole.from)),
                    span(whole.from.max(hole.to), whole.to),
                ]
            })
            .filter(|part| !part.is_empty())
            .collect();
    }
    left
}

/// The instants that are in both.
pub fn common(spans: &[Span], other: &[Span]) -> Vec<Span> {
    without(spans, &without(spans, other))
}
