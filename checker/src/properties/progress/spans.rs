//! Times of locks, and what they have in common.

/// A time in which a lock was wanted, or wanted and free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) lock: u32,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// How much of a span lies within the spans that count, in nanoseconds. Those do not overlap each other, and are ordered by
/// lock and start.
pub(super) fn counted_in(counted: &[Span], span: Span) -> u64 {
    let first = counted.partition_point(|part| (part.lock, part.end) <= (span.lock, span.start));
    let parts = counted[first..]
        .iter()
        .take_while(|part| part.lock == span.lock && part.start < span.end);
    parts
        .map(|part| {
            part.end
                .min(span.end)
                .saturating_sub(part.start.max(span.start))
        })
        .fold(0, u64::saturating_add)
}

/// Whether one of these, which are apart and ordered by lock and start, overlaps a span.
pub(super) fn overlaps(apart: &[Span], span: Span) -> bool {
    let first = apart.partition_point(|part| (part.lock, part.end) <= (span.lock, span.start));
    let next = apart.get(first);
    next.is_some_and(|part| part.lock == span.lock && part.start < span.end)
}

/// Spans apart from each other, by lock and start.
pub(super) fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut apart: Vec<Span> = Vec::new();
    for span in spans {
        match apart
            .last_mut()
            .filter(|last| last.lock == span.lock && span.start <= last.end)
        {
            Some(last) => last.end = last.end.max(span.end),
            None => apart.push(span),
        }
    }
    apart
}

/// What is left of some times when others are taken out of them. Both are apart, and ordered by lock and start.
pub(super) fn without(wanted: &[Span], held: Vec<Span>) -> Vec<Span> {
    let mut free = Vec::new();
    let mut next = 0;
    for want in wanted {
        while held
            .get(next)
            .is_some_and(|held| (held.lock, held.end) <= (want.lock, want.start))
        {
            next += 1;
        }
        let mut start = want.start;
        // A hold may reach into the next wanted time: it is left for that.
        for held in held[next..]
            .iter()
            .take_while(|held| held.lock == want.lock && held.start < want.end)
        {
            if start < held.start {
                free.push(Span {
                    start,
                    end: held.start,
                    ..*want
                });
            }
            start = held.end;
        }
        if start < want.end {
            free.push(Span { start, ..*want });
        }
    }
    free
}
