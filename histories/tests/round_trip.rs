//! What is written is what is read.

mod arbitrary;

use std::io::BufRead;

use arbitrary::{events, header};
use histories::{Ending, Event, Reader, Writer};
use proptest::prelude::*;

fn read<R: BufRead>(mut reader: Reader<R>) -> (Vec<Event<'static>>, Option<Ending>) {
    let mut events = Vec::new();
    while let Some(event) = reader.next().unwrap() {
        events.push(event.into_owned());
    }
    (events, reader.ending())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_history_in_memory(written in events()) {
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        for event in &written {
            writer.write(event).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        prop_assert_eq!(lines, written.len() + 2, "one line an event, whatever is in its texts");

        let reader = Reader::new(&bytes[..]).unwrap();
        prop_assert_eq!(reader.header(), &header());
        let complete = Some(Ending::Complete { events: written.len() as u64 });
        prop_assert_eq!(read(reader), (written, complete));
    }
}

#[test]
fn a_file_is_compressed_by_its_name_and_read_by_its_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let event = Event::new(
        1,
        "c1",
        2,
        histories::Kind::Invoke,
        histories::Function::Acquire,
    );
    for name in ["history.jsonl", "history.jsonl.zst"] {
        let path = folder.path().join(name);
        let mut writer = Writer::create(&path, &header()).unwrap();
        for _ in 0..1000 {
            writer.write(&event).unwrap();
        }
        assert_eq!(writer.events(), 1000);
        writer.finish().unwrap();

        let renamed = folder.path().join("renamed");
        std::fs::rename(&path, &renamed).unwrap();
        let compressed = std::fs::read(&renamed)
            .unwrap()
            .starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        assert_eq!(compressed, name.ends_with(".zst"));
        let reader = Reader::open(&renamed).unwrap();
        assert_eq!(reader.header(), &header());
        let (events, ending) = read(reader);
        assert_eq!(events, vec![event.clone(); 1000]);
        assert_eq!(ending, Some(Ending::Complete { events: 1000 }));
    }
}
