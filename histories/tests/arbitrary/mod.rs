//! Any header and any event, as proptest makes them up.

use std::borrow::Cow;

use histories::{
    Clause, Deed, Effect, Event, Expectation, Function, Hazard, Header, Kind, Plan, PlannedFault,
    Promise, Shows, Until, When, Workload,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Number, Value};

/// A header with something in every field.
pub fn header() -> Header {
    let fault = PlannedFault {
        fault: "pause".into(),
        on: "c1".into(),
        does: vec![Effect::of(Deed::Stops)],
        shows: Shows::from([("states".to_owned(), Expectation::only('T'))]),
        when: When::Point {
            client: "c1".into(),
            point: "before-write".into(),
            nth_grant: 2,
        },
        until: Until {
            after_ms: Some(1500),
            ..Until::default()
        },
        with: Map::from_iter([("jitter_ms".to_owned(), Value::from(2.5))]),
    };
    let workload = Workload {
        name: "document".into(),
        work_ms: 5,
        rest_ms: 20,
        retry_ms: 10,
        rounds: 3,
    };
    let plan = Plan {
        scenario: "paused-client".into(),
        lock: "redis-set".into(),
        topology: "redis".into(),
        storage: "postgres".into(),
        policy: "fenced".into(),
        write_condition: Some("token".into()),
        seed: u64::MAX,
        clients: 2,
        ttl_ms: 1000,
        progress_bound_ms: 5000,
        limit_ms: 30_000,
        controls: vec!["no-stale-write".into()],
        workload,
        faults: vec![fault],
    };
    let names = |of: &str| [("s1".to_owned(), of.to_owned())].into();
    Header {
        fencepost: histories::FORMAT_VERSION,
        run: "0193f1de-5a00-7000-8000-000000000001".into(),
        started: "2025-11-30T12:00:00Z".into(),
        seed: u64::MAX,
        plan,
        contract: vec![Clause {
            property: "progress".into(),
            promise: Promise::NotPromised,
            under: vec![Hazard::ServerLost],
            why: "its only server is gone".into(),
        }],
        heartbeat_ms: Some(5),
        servers: names("8.0.2"),
        images: names("sha256:0123"),
        machine: names("a \"quoted\" fact\nof two lines"),
    }
}

fn text() -> impl Strategy<Value = Cow<'static, str>> {
    // What runs write, what needs escapes, and whatever else there is.
    prop_oneof![
        "[a-z0-9.-]{0,12}",
        "[\"\\\\\n\u{0}-\u{1f}äß\u{2028}😀{},:]{0,8}",
        any::<String>()
    ]
    .prop_map(Cow::Owned)
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|float| Number::from_f64(float).map_or(Value::Null, Value::Number)),
        text().prop_map(|text| Value::from(text.into_owned())),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            object(inner).prop_map(Value::Object)
        ]
    })
}

fn object(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let keys = text().prop_map(Cow::into_owned);
    btree_map(keys, values, 0..4).prop_map(|members| members.into_iter().collect())
}

fn kind() -> impl Strategy<Value = Kind> {
    use Kind::*;
    prop::sample::select(vec![Invoke, Ok, Fail, Info])
}

fn function() -> impl Strategy<Value = Function> {
    use Function::*;
    prop::sample::select(vec![
        Acquire, Extend, Release, Held, Lost, Renewed, Work, Read, Write, Point, Inject, Heal, Log,
        Accepted, Exit, Stall,
    ])
}

/// Any event: no thought is given to what is plausible.
pub fn event() -> impl Strategy<Value = Event<'static>> {
    let number = || option::of(prop_oneof![0..100_u64, any::<u64>()]);
    let words = || option::of(text());
    (
        (any::<u64>(), text(), any::<u64>(), kind(), function()),
        (
            words(),
            words(),
            words(),
            words(),
            words(),
            words(),
            words(),
        ),
        (
            number(),
            number(),
            number(),
            number(),
            number(),
            number(),
            number(),
            number(),
            number(),
            number(),
        ),
        (option::of(any::<bool>()), option::of(any::<bool>())),
        option::of(any::<usize>()),
        option::of(vec(text().prop_map(Cow::into_owned), 0..3)),
        option::of(object(json())),
    )
        .prop_map(|(must, texts, numbers, flags, step, on, evidence)| {
            let mut event = Event::new(must.0, must.1, must.2, must.3, must.4);
            (event.lock, event.document, event.value, event.point) =
                (texts.0, texts.1, texts.2, texts.3);
            (event.fault, event.engine, event.error) = (texts.4, texts.5, texts.6);
            (event.grant, event.token, event.validity) = (numbers.0, numbers.1, numbers.2);
            (event.ttl_ms, event.wait_ms, event.version) = (numbers.3, numbers.4, numbers.5);
            (event.based_on, event.entries, event.nth) = (numbers.6, numbers.7, numbers.8);
            event.stalled_ns = numbers.9;
            (event.held, event.lost) = flags;
            (event.step, event.on, event.evidence) = (step, on, evidence);
            let does = event.on.as_ref().and_then(|on| on.first());
            event.does = does.map(|to| {
                vec![Effect {
                    effect: Deed::DelaysPackets,
                    to: Some(to.clone()),
                    each_ms: numbers.0,
                }]
            });
            event
        })
}

/// A few of them.
pub fn events() -> impl Strategy<Value = Vec<Event<'static>>> {
    vec(event(), 0..12)
}
