//! What runs came to: one list, from the worst on, that makes the words of the matrix, its counts and the exit status.

use std::collections::BTreeSet;

use checker::Answer;

use super::text::Mark;
use super::{Class, Judgement};
use crate::exit::Exit;

/// What a run, or the runs of a cell, came to.
pub struct Standing {
    /// Its word in the matrix.
    pub word: &'static str,
    /// What the closing line says of the runs that came to it.
    counted: &'static str,
    /// How it is to be looked upon.
    pub mark: Mark,
    /// The exit status that it leads to.
    pub exit: Exit,
    /// What shows it.
    pub shown_by: Shown,
}

/// What shows that runs stand so.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    /// Any run with a property of this class.
    Class(Class),
    /// That no run shows a violation that the scenario is there to show.
    MissedControl,
    /// Any run at all.
    AnyRun,
    /// That there is no run.
    Nothing,
}

/// From the worst on: runs stand as the first that is shown, but for limits, which count as shown if any run shows them.
static STANDINGS: &[Standing] = &[
    Standing::new(
        "BROKEN",
        "broke a promise",
        Mark::Bad,
        Exit::Broken,
        Shown::Class(Class::Broken),
    ),
    Standing::new(
        "unknown",
        "unknown",
        Mark::Doubtful,
        Exit::Inconclusive,
        Shown::Class(Class::Unknown),
    ),
    Standing::new(
        "unspecified",
        "unspecified",
        Mark::Doubtful,
        Exit::Inconclusive,
        Shown::Class(Class::Unspecified),
    ),
    Standing::new(
        "limit not shown",
        "not shown",
        Mark::Doubtful,
        Exit::Inconclusive,
        Shown::MissedControl,
    ),
    Standing::new(
        "limit shown",
        "showed a known limit",
        Mark::Known,
        Exit::Kept,
        Shown::Class(Class::LimitShown),
    ),
    Standing::new("kept", "kept", Mark::Good, Exit::Kept, Shown::AnyRun),
    Standing::new(
        "not run",
        "not run",
        Mark::Doubtful,
        Exit::Inconclusive,
        Shown::Nothing,
    ),
];

impl Standing {
    const fn new(
        word: &'static str,
        counted: &'static str,
        mark: Mark,
        exit: Exit,
        shown_by: Shown,
    ) -> Standing {
        Standing {
            word,
            counted,
            mark,
            exit,
            shown_by,
        }
    }

    /// How these runs stand.
    pub fn of(runs: &[Judgement]) -> &'static Standing {
        STANDINGS
            .iter()
            .find(|standing| standing.is_shown(runs))
            .expect("there are runs, or there are none")
    }

    fn is_shown(&self, runs: &[Judgement]) -> bool {
        match self.shown_by {
            Shown::Class(class) => runs.iter().any(|run| has(run, class)),
            Shown::MissedControl => !missed_controls(runs).is_empty(),
            Shown::AnyRun => !runs.is_empty(),
            Shown::Nothing => runs.is_empty(),
        }
    }

    /// How many of the runs that stand so show it.
    pub fn count(&self, runs: &[Judgement]) -> usize {
        match self.shown_by {
            Shown::Class(class) => runs.iter().filter(|run| has(run, class)).count(),
            Shown::AnyRun => runs.len(),
            Shown::MissedControl | Shown::Nothing => 0,
        }
    }
}

/// A run of which nothing is said does not tell either: it is not kept for want of a property.
pub fn has(run: &Judgement, class: Class) -> bool {
    let tells = !run.properties.is_empty() && run.outcome != Answer::Unknown;
    run.has(class) || (class == Class::Unknown && !tells)
}

/// The violations that runs are there to show, and that none of them does.
pub fn missed_controls(runs: &[Judgement]) -> Vec<&str> {
    let shows = |run: &Judgement, control: &str| {
        run.property(control)
            .is_some_and(|property| property.class == Class::LimitShown)
    };
    let controls: BTreeSet<&str> = runs
        .iter()
        .flat_map(|run| run.controls.iter().map(String::as_str))
        .collect();
    let missed = |control: &&str| !runs.iter().any(|run| shows(run, control));
    controls.into_iter().filter(missed).collect()
}

/// `12 kept, 4 showed a known limit, 0 broke a promise, …`: every run counts once, as the worst that it came to.
pub fn tally<'j>(runs: impl Iterator<Item = &'j Judgement>) -> String {
    let stand: Vec<&Standing> = runs
        .map(|run| Standing::of(std::slice::from_ref(run)))
        .collect();
    let of_runs = STANDINGS
        .iter()
        .filter(|standing| !matches!(standing.shown_by, Shown::Nothing));
    let counts = of_runs.map(|standing| {
        let count = stand.iter().filter(|other| other.word == standing.word);
        format!("{} {}", count.count(), standing.counted)
    });
    counts.collect::<Vec<_>>().join(", ")
}

/// The exit status of a history by its contract, as far as it tells alone: a limit that it does not show, another of its
/// cell may show.
pub fn by_contract(run: &Judgement) -> Exit {
    let exit = |standing: &Standing| match standing.shown_by {
        Shown::Class(class) if has(run, class) => standing.exit,
        _ => Exit::Kept,
    };
    STANDINGS.iter().map(exit).max().unwrap_or(Exit::Kept)
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use super::*;
    use crate::report::judge;

    /// A run whose first properties have these classes, and whose others were kept.
    pub fn run_with(classes: &[Class]) -> Judgement {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../histories/corpus/v1");
        let mut run = judge(&Path::new(corpus).join("paused-client.jsonl")).unwrap();
        run.controls.clear();
        for (index, property) in run.properties.iter_mut().enumerate() {
            property.class = classes.get(index).copied().unwrap_or(Class::Kept);
        }
        run
    }

    #[test]
    fn the_worst_of_what_runs_show_is_how_they_stand() {
        let word = |runs: &[Judgement]| Standing::of(runs).word;
        assert_eq!(word(&[]), "not run");
        assert_eq!(word(&[run_with(&[])]), "kept");
        let limits = run_with(&[Class::LimitShown, Class::LimitNotShown]);
        assert_eq!(word(&[limits]), "limit shown");
        let unknown = run_with(&[Class::LimitShown, Class::Unknown]);
        assert_eq!(word(&[run_with(&[]), unknown]), "unknown");
        let broken = run_with(&[Class::Unknown, Class::Broken]);
        assert_eq!(word(&[broken, run_with(&[])]), "BROKEN");
    }

    #[test]
    fn what_nobody_said_is_not_green() {
        for classes in [
            &[Class::Unspecified][..],
            &[Class::LimitShown, Class::Unspecified],
        ] {
            let run = run_with(classes);
            let standing = Standing::of(std::slice::from_ref(&run));
            assert_eq!(
                (standing.word, standing.exit),
                ("unspecified", Exit::Inconclusive)
            );
        }
    }

    #[test]
    fn a_run_of_which_nothing_is_said_is_not_kept() {
        let mut empty = run_with(&[]);
        empty.properties.clear();
        let standing = Standing::of(std::slice::from_ref(&empty));
        assert_eq!(standing.word, "unknown");
        assert_eq!(by_contract(&empty), Exit::Inconclusive);
    }

    #[test]
    fn a_control_is_missed_only_where_no_run_shows_it() {
        let with_control = |class| {
            let mut run = run_with(&[class]);
            run.controls = vec![run.properties[0].name.clone()];
            run
        };
        let (missed, shown) = (
            with_control(Class::LimitNotShown),
            with_control(Class::LimitShown),
        );
        let standing = Standing::of(std::slice::from_ref(&missed));
        assert_eq!(
            (standing.word, standing.exit),
            ("limit not shown", Exit::Inconclusive)
        );
        assert_eq!(Standing::of(&[missed.clone(), shown]).word, "limit shown");
        assert_eq!(by_contract(&missed), Exit::Kept);
        // Another run's controls count as well.
        let runs = [run_with(&[]), missed];
        assert_eq!(
            missed_controls(&runs),
            [runs[0].properties[0].name.as_str()]
        );
    }

    #[test]
    fn a_run_is_told_in_the_words_of_the_matrix() {
        let mut missed = run_with(&[Class::LimitShown, Class::LimitNotShown]);
        missed.controls = vec![missed.properties[1].name.clone()];
        let mut runs = vec![run_with(&[]), missed];
        runs.extend(
            [
                Class::Broken,
                Class::Unknown,
                Class::Unspecified,
                Class::LimitShown,
            ]
            .map(|class| run_with(&[class])),
        );
        for run in runs {
            let line = run.line();
            let (_, told) = line.split_once("): ").expect("a seed");
            let word = Standing::of(std::slice::from_ref(&run)).word;
            assert_eq!(told.split(": ").next(), Some(word), "{line}");
            if word == "limit not shown" {
                assert!(told.ends_with(&run.controls[0]), "{line}");
            }
        }
    }

    #[test]
    fn by_contract_only_what_was_promised_or_is_not_known_counts() {
        for (classes, exit) in [
            (&[][..], Exit::Kept),
            (&[Class::LimitShown, Class::LimitNotShown], Exit::Kept),
            (&[Class::LimitShown, Class::Unknown], Exit::Inconclusive),
            (&[Class::Unknown, Class::Broken], Exit::Broken),
            (&[Class::Unspecified], Exit::Inconclusive),
            (&[Class::LimitShown, Class::Unspecified], Exit::Inconclusive),
            (&[Class::Unspecified, Class::Broken], Exit::Broken),
        ] {
            assert_eq!(by_contract(&run_with(classes)), exit, "{classes:?}");
        }
    }
}
