//! A history that is cut or damaged anywhere is read as far as it is whole, or refused: never a panic, never an event
//! that was not written.

mod arbitrary;

use arbitrary::{events, header};
use histories::{Cut, Ending, Event, ReadError, Reader, Writer};
use proptest::prelude::*;

fn written(events: &[Event<'_>]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    for event in events {
        writer.write(event).unwrap();
    }
    writer.finish().unwrap()
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    // Flushed after every line, as a run does, so that there is something to be had of a stream that is cut.
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        std::io::Write::write_all(&mut encoder, line).unwrap();
        std::io::Write::flush(&mut encoder).unwrap();
    }
    encoder.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<(Vec<Event<'static>>, Ending), ReadError> {
    let mut reader = Reader::new(bytes)?;
    let mut events = Vec::new();
    while let Some(event) = reader.next()? {
        events.push(event.into_owned());
    }
    let ending = reader.ending().expect("an ending after the last event");
    assert_eq!(ending.events(), events.len() as u64);
    Ok((events, ending))
}

/// Where each line ends, its newline included.
fn line_ends(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len())
        .filter(|at| bytes[*at] == b'\n')
        .map(|at| at + 1)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn cut_at_any_byte(all in events()) {
        let bytes = written(&all);
        let ends = line_ends(&bytes);
        for cut in ends[0]..bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let why = if ends.contains(&cut) { Cut::NoFooter } else { Cut::PartialLine };
            let (events, ending) = read(&bytes[..cut]).unwrap();
            prop_assert_eq!(&events, &all[..whole - 1], "cut at {}", cut);
            prop_assert_eq!(ending, Ending::Truncated { events: whole as u64 - 1, why }, "cut at {}", cut);
        }
    }

}

proptest! {
    // Each case reads some thousand streams.
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn compressed_and_cut_at_any_byte(all in events()) {
        let bytes = compressed(&written(&all));
        let mut most = 0;
        for cut in 4..bytes.len() {
            match read(&bytes[..cut]) {
                Ok((events, ending)) => {
                    let why = Cut::PartialStream;
                    prop_assert_eq!(ending, Ending::Truncated { events: events.len() as u64, why });
                    prop_assert_eq!(&events, &all[..events.len()]);
                    prop_assert!(events.len() >= most, "more bytes, fewer events");
                    most = events.len();
                }
                Err(ReadError::HeaderCut { .. }) => prop_assert_eq!(most, 0),
                Err(error) => panic!("cut at {cut}: {error}"),
            }
        }
        prop_assert_eq!(most, all.len());
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_at_random_bytes(
        all in events(),
        compress in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = written(&all);
        if compress {
            bytes = compressed(&bytes);
        }
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Err(error) = read(&bytes) {
            prop_assert!(!error.to_string().contains('\n'), "{}", error);
        }
    }

    #[test]
    fn any_bytes_after_the_header(rest in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = written(&[]);
        bytes.truncate(line_ends(&bytes)[0]);
        bytes.extend(rest);
        let _ = read(&bytes);
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read(&bytes).is_err());
    }
}

#[test]
fn cut_within_the_header() {
    let bytes = written(&[]);
    assert!(matches!(read(b""), Err(ReadError::Empty { .. })));
    for cut in 1..line_ends(&bytes)[0] {
        let error = read(&bytes[..cut]).unwrap_err();
        assert!(
            matches!(error, ReadError::HeaderCut { .. }),
            "cut at {cut}: {error}"
        );
    }
}
