//! Histories of every version of the format stay readable for ever.

use std::path::Path;

use histories::{Cut, Ending, Event, Function, Header, Kind, Reader};

fn read(name: &str) -> (Header, Vec<Event<'static>>, Ending) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let mut reader = Reader::open(path).unwrap();
    let mut events = Vec::new();
    while let Some(event) = reader.next().unwrap() {
        events.push(event.into_owned());
    }
    (reader.header().clone(), events, reader.ending().unwrap())
}

#[test]
fn version_1() {
    let (header, events, ending) = read("v1/paused-client.jsonl");
    assert_eq!((header.fencepost, header.seed), (1, 42));
    assert_eq!(header.plan.faults[0].fault, "pause");
    assert_eq!(header.servers["s1"], "8.0.2");
    assert_eq!(ending, Ending::Complete { events: 84 });
    assert!(events.is_sorted_by_key(|event| event.t));

    // c2 writes between c1's read and c1's write, which is based on what c1 read.
    let writes: Vec<_> = events
        .iter()
        .filter(|event| event.f == Function::Write)
        .map(|event| (&*event.process, event.kind, event.based_on, event.version))
        .collect();
    let late = [
        ("c2", Kind::Invoke, Some(2), None),
        ("c2", Kind::Ok, None, Some(3)),
        ("c1", Kind::Invoke, Some(2), None),
        ("c1", Kind::Ok, None, Some(4)),
    ];
    assert_eq!(writes[4..8], late);
    let evidence: Vec<_> = events
        .iter()
        .filter_map(|event| event.evidence.as_ref())
        .collect();
    assert_eq!(evidence[0]["states"], "TT");
    assert_eq!(events.last().unwrap().entries, Some(6));

    let compressed = read("v1/paused-client.jsonl.zst");
    assert_eq!(compressed, (header.clone(), events.clone(), ending));

    let truncated = read("v1/paused-client-truncated.jsonl");
    let ending = Ending::Truncated {
        events: 49,
        why: Cut::PartialLine,
    };
    assert_eq!(truncated, (header, events[..49].to_vec(), ending));
}
