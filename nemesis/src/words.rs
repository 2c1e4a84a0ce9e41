//! The words that scenario files may use, and the one that was meant where a wrong one stands.

/// The named points of the workload `document`, in the order in which a client passes them.
pub const POINTS: &[&str] = &[
    "after-acquire",
    "before-read",
    "after-read",
    "before-write",
    "after-write",
    "before-release",
    "after-release",
];

/// The workloads that a scenario can name.
pub const WORKLOADS: &[&str] = &["document"];

/// The properties that a scenario can name as its `controls`.
pub const PROPERTIES: &[&str] = &[
    "mutual-exclusion",
    "exclusive-belief",
    "token-order",
    "no-stale-write",
    "no-lost-update",
    "document",
    "progress",
    "efficiency",
];

/// The functions of a client that a trigger can wait for.
pub const FUNCTIONS: &[&str] = &["acquire", "extend", "release", "held", "read", "write"];

/// How an operation can end, as a trigger names it.
pub const OUTCOMES: &[&str] = &["ok", "fail", "info"];

/// The kinds of locks to which a fault can be confined by `only`.
pub const ONLY: &[&str] = &["kept-alive"];

/// How many names are listed where none is near.
const LISTED_MAX: usize = 16;

/// Whether a name is one of `names`, which are called `kind` in messages.
pub(crate) fn known<S: AsRef<str>>(kind: &str, name: &str, names: &[S]) -> Result<(), String> {
    if names.iter().any(|known| known.as_ref() == name) {
        return Ok(());
    }
    Err(format!("unknown {kind} `{name}`; {}", instead(name, names)))
}

/// The end of a message about a wrong name: the name that was probably meant, or else those that there are.
pub(crate) fn instead<S: AsRef<str>>(found: &str, names: &[S]) -> String {
    if let Some(name) = nearest(found, names) {
        return format!("did you mean `{name}`?");
    }
    if names.is_empty() {
        return "there is none".to_owned();
    }
    let listed: Vec<String> = names
        .iter()
        .take(LISTED_MAX)
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    let more = if names.len() > LISTED_MAX {
        ", …"
    } else {
        ""
    };
    format!("there is {}{more}", listed.join(", "))
}

/// The name that is fewest edits away from `found`, if it is near enough to have been meant.
pub fn nearest<'n, S: AsRef<str>>(found: &str, names: &'n [S]) -> Option<&'n str> {
    let plain = |name: &str| name.to_lowercase().replace(['_', ' '], "-");
    let found = plain(found);
    let length = found.chars().count();
    let near_enough = (length / 3).max(1);
    // A name needs at least as many edits as it is longer or shorter: what is far too long is not compared at all.
    let may_be_near = |name: &&S| name.as_ref().chars().count().abs_diff(length) <= near_enough;
    names
        .iter()
        .filter(may_be_near)
        .map(|name| (edits(&found, &plain(name.as_ref())), name.as_ref()))
        .filter(|(edits, _)| *edits <= near_enough)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

/// The optimal string alignment distance: how many letters have to be put in, taken out, replaced, or swapped with
/// their neighbour to make `b` of `a` (Damerau 1964, each substring edited at most once).
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits_and_swaps() {
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("until", "until"), 0);
        assert_eq!(edits("untill", "until"), 1);
        assert_eq!(edits("utnil", "until"), 1);
        assert_eq!(edits("pause", "crash"), 4);
    }

    #[test]
    fn finds_the_name_that_was_meant() {
        assert_eq!(nearest("before_write", POINTS), Some("before-write"));
        assert_eq!(nearest("Before-Wrtie", POINTS), Some("before-write"));
        assert_eq!(
            nearest("no-stale-writes", PROPERTIES),
            Some("no-stale-write")
        );
        assert_eq!(nearest("c3", &["c1", "c2"]), Some("c1"));
        assert_eq!(nearest("elephant", POINTS), None);
    }

    #[test]
    fn lists_the_names_where_none_is_near() {
        assert_eq!(
            instead("elephant", OUTCOMES),
            "there is `ok`, `fail`, `info`"
        );
        assert_eq!(instead("elephant", &[] as &[&str]), "there is none");
    }
}
