//! Rounds: what is done, what is left, and what is written down of it.

use histories::{Function, Kind};

use super::{Bench, Setting, TTL, WHOLE_ROUND, runtime};
use crate::locks::{Answer, Ask};
use crate::storages::{FENCED, SAME_TRANSACTION, Written};

#[test]
fn a_round_is_written_down_as_it_goes() {
    let mut bench = Bench::new(Setting {
        policy: &FENCED,
        ..Setting::default()
    });
    bench.round();
    assert_eq!(bench.course(), WHOLE_ROUND);

    let events = bench.events();
    assert!(events.is_sorted_by_key(|event| event.t), "{events:?}");
    let acquire = &events[0];
    assert!(acquire.op >= 10_000_001, "{acquire:?}");
    assert_eq!(acquire.lock.as_deref(), Some("the-lock"));
    assert_eq!(acquire.ttl_ms, Some(300));
    let granted = &events[1];
    assert_eq!((granted.op, granted.token), (acquire.op, Some(7)));
    assert_eq!(granted.validity, Some(acquire.t + TTL.as_nanos() as u64));
    for event in &events[2..] {
        assert_eq!(event.process, "c1");
        if event.kind == Kind::Invoke {
            assert_eq!(event.grant, Some(acquire.op), "{event:?}");
        }
    }
    let (read, write) = (&events[4], &events[5]);
    assert_eq!(
        (read.version, read.value.as_deref()),
        (Some(3), Some("before"))
    );
    assert_eq!(write.based_on, Some(3));
    assert_eq!(write.token, Some(7));
    assert_eq!(
        write.value.as_deref(),
        Some(format!("c1-{}", write.op).as_str())
    );
    assert_eq!((events[6].op, events[6].version), (write.op, Some(4)));
}

#[test]
fn values_and_operations_are_never_used_twice() {
    let mut bench = Bench::new(Setting::default());
    bench.round();
    bench.round();
    let events = bench.events();
    let begun = || events.iter().filter(|event| event.kind == Kind::Invoke);
    let mut ops: Vec<u64> = begun().map(|event| event.op).collect();
    assert!(ops.is_sorted());
    ops.dedup();
    assert_eq!(ops.len(), begun().count());
    let writes: Vec<_> = begun().filter(|event| event.f == Function::Write).collect();
    assert_ne!(writes[0].value, writes[1].value);
}

#[test]
fn a_token_is_sent_only_where_the_policy_looks_at_it() {
    let mut bench = Bench::new(Setting::default());
    bench.round();
    let events = bench.events();
    let mut writes = events.iter().filter(|event| event.f == Function::Write);
    assert!(writes.all(|event| event.token.is_none()), "{events:?}");
}

#[test]
fn a_busy_lock_certainly_was_not_granted() {
    let mut bench = Bench::new(Setting {
        answers: vec![Answer::Busy],
        ..Setting::default()
    });
    bench.round();
    assert_eq!(bench.course(), ["acquire invoke", "acquire fail"]);
    assert_eq!(bench.last(Function::Acquire).error.as_deref(), Some("busy"));
}

#[test]
fn what_was_not_answered_may_have_happened() {
    let error = "no answer".to_owned();
    let mut bench = Bench::new(Setting {
        answers: vec![Answer::Unknown {
            error: error.clone(),
        }],
        ..Setting::default()
    });
    bench.round();
    assert_eq!(bench.course(), ["acquire invoke", "acquire info"]);
    assert_eq!(
        bench.last(Function::Acquire).error.as_ref().unwrap(),
        &error
    );

    let mut bench = Bench::new(Setting {
        answers: vec![
            Answer::granted(Some(7), TTL),
            Answer::Unknown {
                error: error.clone(),
            },
        ],
        written: Written::Unknown { error },
        ..Setting::default()
    });
    bench.round();
    assert_eq!(bench.last(Function::Write).kind, Kind::Info);
    assert_eq!(bench.last(Function::Release).kind, Kind::Info);
}

#[test]
fn a_rejected_writer_learns_that_it_lost_the_lock() {
    let mut bench = Bench::new(Setting {
        answers: vec![Answer::granted(Some(7), TTL), Answer::lost("over")],
        written: Written::Rejected,
        policy: &FENCED,
        ..Setting::default()
    });
    bench.round();
    let course = bench.course();
    assert_eq!(
        course[5..],
        [
            "write invoke",
            "write fail",
            "work ok",
            "lost info",
            "release invoke",
            "release fail"
        ]
    );
    assert_eq!(
        bench.last(Function::Write).error.as_deref(),
        Some("rejected")
    );
    let acquire = bench.last(Function::Acquire);
    assert_eq!(bench.last(Function::Lost).grant, Some(acquire.op));
}

#[test]
fn a_client_that_was_told_of_its_loss_does_not_write() {
    let mut bench = Bench::new(Setting::default());
    bench
        .teller
        .send_replace(Some("the lease is over".to_owned()));
    bench.round();
    let course = bench.course();
    assert_eq!(
        course[2..],
        ["lost info", "release invoke", "release ok"],
        "it neither works nor reads nor writes"
    );
    assert_eq!(bench.last(Function::Release).kind, Kind::Ok);
    assert_eq!(
        bench.last(Function::Lost).error.as_deref(),
        Some("the lease is over")
    );
}

#[test]
fn a_loss_that_is_told_during_a_write_is_learnt_then() {
    let mut bench = Bench::new(Setting {
        loss_at_write: true,
        ..Setting::default()
    });
    bench.round();
    assert_eq!(
        bench.course()[5..9],
        ["write invoke", "work ok", "lost info", "write ok"]
    );
}

#[test]
fn a_write_in_the_locks_transaction_is_decided_by_the_release() {
    let unknown = Answer::Unknown {
        error: "no answer".to_owned(),
    };
    for (released, write) in [
        (Answer::Released, Kind::Ok),
        (Answer::lost("rolled back"), Kind::Fail),
        (unknown, Kind::Info),
    ] {
        let mut bench = Bench::new(Setting {
            answers: vec![Answer::held(None), released],
            written: Written::AtCommit { version: 4 },
            policy: &SAME_TRANSACTION,
            ..Setting::default()
        });
        bench.round();
        let said = |f: &str| format!("{f} {write:?}").to_lowercase();
        let expected = [
            "work ok".to_owned(),
            "release invoke".to_owned(),
            said("write"),
            said("release"),
        ];
        assert_eq!(bench.course()[6..], expected);
    }
}

#[test]
fn a_client_that_is_asked_to_end_does_not_rest() {
    let bench = Bench::new(Setting::default());
    let Bench {
        mut client, stop, ..
    } = bench;
    stop.send_replace(true);
    assert!(client.is_stopping());
    runtime().block_on(client.pause(3_600_000));
}

#[test]
fn whatever_the_lock_is_asked_is_written_down_with_its_answer() {
    let refused = || Answer::Refused {
        error: "no connection".to_owned(),
    };
    let answers = vec![
        Answer::granted(Some(7), TTL),
        Answer::granted(Some(7), 2 * TTL),
        Answer::lost("over"),
        Answer::held(Some(7)),
        Answer::lost("over"),
        refused(),
        refused(),
        Answer::nothing_held(),
    ];
    let mut bench = Bench::new(Setting {
        answers,
        ..Setting::default()
    });
    let grant = runtime().block_on(async {
        let client = &mut bench.client;
        let grant = client.acquire().await.unwrap().unwrap();
        let extend = Ask::Extend { ttl_ms: 600 };
        let held = &Ask::Held;
        for ask in [&extend, &extend, held, held, held, &extend, &Ask::Release] {
            let (open, answer) = client.ask(ask, Some(&grant)).await.unwrap();
            client.complete(open, &answer, Some(&grant)).unwrap();
        }
        grant
    });
    let course = bench.course();
    let completed: Vec<&String> = course[3..].iter().step_by(2).collect();
    assert_eq!(
        completed,
        [
            "extend ok",
            "extend fail",
            "held ok",
            "held ok",
            "held fail",
            "extend fail",
            "release fail"
        ]
    );

    let events = &bench.events()[2..];
    assert!(events.iter().all(|event| event.grant == Some(grant.op)));
    assert_eq!(events[0].ttl_ms, Some(600));
    let validity = events[0].t + 2 * TTL.as_nanos() as u64;
    assert_eq!(events[1].validity, Some(validity));
    assert_eq!(events[3].error.as_deref(), Some("over"));
    assert_eq!(
        [events[5].held, events[7].held, events[9].held],
        [Some(true), Some(false), None]
    );
    let lost = [&events[3], &events[11], &events[13]].map(|event| event.lost);
    assert_eq!(lost, [Some(true), None, Some(true)], "{events:?}");
}
