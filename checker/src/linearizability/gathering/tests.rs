//! What becomes of entries, and where a lease's end stands.

use histories::entries::Entries;

use super::*;
use crate::models::lease_mutex::{self, LeaseMutex};
use crate::models::register::{Operation, Register};

fn gathered<M: Recorded>(
    model: M,
    nil: bool,
    history: &str,
) -> Result<Gathered<M>, GatheringError> {
    let mut entries = Entries::new(history.as_bytes()).expect("a history");
    let mut gathering = Gathering::new(model, nil);
    while let Some(entry) = entries.next().expect("entries") {
        gathering.push(&entry)?;
    }
    gathering.finish()
}

fn line(process: u32, kind: &str, f: &str, value: &str) -> String {
    format!("{{:process {process}, :type :{kind}, :f :{f}, :value {value}}}\n")
}

/// `(operation, line, invoked, returned, certain)` of each call of the one object.
fn register(history: &str, nil: bool) -> Vec<(Operation, u64, u32, u32, bool)> {
    let mut gathered =
        gathered(Register::new(&Value::Nil), nil, history).expect("a history of a register");
    let object = gathered.objects.remove(0);
    let told = |call: &Call<Operation>| {
        (
            call.operation,
            call.id,
            call.invoked,
            call.returned,
            call.certain,
        )
    };
    object.history.calls().iter().map(told).collect()
}

#[test]
fn a_completion_belongs_to_what_its_process_invoked() {
    let history = line(0, "invoke", "write", "7")
        + &line(1, "invoke", "read", "nil")
        + &line(1, "ok", "read", "7")
        + &line(0, "ok", "write", "7");
    let expected = [
        (Operation::Write(1), 1, 0, 3, true),
        (Operation::Read(1), 2, 1, 2, true),
    ];
    // The value that was read is met first.
    assert_eq!(register(&history, false), expected);
}

#[test]
fn what_nobody_learned_is_uncertain_and_lasts() {
    let history = line(0, "invoke", "write", "7")
        + &line(0, "info", "write", "7")
        + &line(1, "invoke", "write", "8")
        + &line(2, "invoke", "read", "nil")
        + &line(3, "invoke", "write", "9")
        + &line(3, "fail", "write", "9");
    let expected = [
        (Operation::Write(1), 1, 0, NEVER, false),
        (Operation::Write(2), 3, 2, NEVER, false),
    ];
    assert_eq!(register(&history, false), expected);
}

#[test]
fn a_read_of_nil_tells_nothing_where_the_format_says_so() {
    let history = line(0, "invoke", "write", "7")
        + &line(1, "invoke", "read", "nil")
        + &line(1, "ok", "read", "nil");
    assert_eq!(register(&history, true).len(), 1);
    assert_eq!(register(&history, false).len(), 2);
}

#[test]
fn entries_that_fit_nothing_are_refused() {
    let twice = line(0, "invoke", "read", "nil") + &line(0, "invoke", "write", "1");
    let unasked = line(0, "ok", "read", "1");
    let error = |history: &str| {
        gathered(Register::new(&Value::Nil), false, history)
            .err()
            .map(|error| error.to_string())
    };
    let told = error(&twice).expect("two at once");
    assert!(
        told.contains("process 0 invokes `write`") && told.contains("line 1"),
        "{told}"
    );
    let told = error(&unasked).expect("nothing was asked");
    assert!(
        told.contains("`read` of process 0 returns and is not in flight"),
        "{told}"
    );
    let other = line(0, "invoke", "write", "1") + &line(0, "ok", "read", "1");
    let told = error(&other).expect("another operation");
    assert!(told.contains("process 0 returns `read`"), "{told}");
    let other = line(0, "invoke", "write", "1") + &line(0, "ok", "write", "2");
    let told = error(&other).expect("another value");
    assert_eq!(told, "`write` of 1 returns as one of 2");
    let filled = line(0, "invoke", "write", "nil") + &line(0, "ok", "write", "2");
    assert_eq!(error(&filled), None);
    assert_eq!(error(&line(0, "info", "read", "nil")), None);
}

#[test]
fn a_lease_ends_where_its_time_is_however_late_it_is_told() {
    let at = |time: u64, line: String| line.replacen('{', &format!("{{:time {time}, "), 1);
    let history = at(10, line(0, "invoke", "acquire", "nil"))
        + &at(30, line(1, "invoke", "acquire", "nil"))
        + &at(40, line(0, "ok", "acquire", "{:validity 20}"))
        + &at(50, line(1, "ok", "acquire", "{:validity 90}"))
        + &at(60, line(1, "invoke", "release", "nil"))
        + &at(70, line(1, "ok", "release", "nil"));
    let gathered = gathered(LeaseMutex::new(false), false, &history).expect("a history of leases");
    let calls = gathered.objects[0].history.calls();
    let ends: Vec<(u32, u32)> = calls
        .iter()
        .filter(|call| matches!(call.operation, lease_mutex::Operation::Expire { .. }))
        .map(|call| (call.invoked, call.returned))
        .collect();
    // That of process 0 stands between the first two events; process 1 gave its own back before its time.
    assert_eq!(ends, [(1, NEVER)]);
    assert_eq!((gathered.operations, gathered.unknown), (3, 0));
    assert_eq!(
        [0, 2, 3].map(|position| gathered.events_before(position)),
        [0, 1, 2]
    );
}
