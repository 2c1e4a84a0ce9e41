//! What a run adds to a history in the end, and few tests are about: its clients end, and the storage's log is read.

use std::collections::BTreeSet;

use histories::{Event, Function, Kind, Seal};

use super::{Timeline, does};

/// The operation of the log's reading.
const LOG: u64 = 1 << 40;

impl Timeline {
    /// The same history with that added, where the text says nothing of it. One that is cut stays as it is.
    pub(crate) fn completed(&self) -> Timeline {
        let mut whole = self.clone();
        if self.seal != Seal::Cut {
            whole.fill_values();
            whole.fill_log();
            whole.read_log();
            whole.end_clients();
        }
        whole
    }

    fn end(&self) -> u64 {
        self.events.last().map_or(0, |event| event.t)
    }

    fn end_clients(&mut self) {
        let ended = |event: &Event<'_>| match event.f {
            Function::Exit => vec![event.process.to_string()],
            Function::Inject if event.does == Some(does("crash")) => {
                event.on.clone().unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let ended: BTreeSet<String> = self.events.iter().flat_map(ended).collect();
        let clients: BTreeSet<String> = self
            .events
            .iter()
            .map(|event| event.process.to_string())
            .filter(|process| process.starts_with('c') && !ended.contains(process))
            .collect();
        let end = self.end();
        let exit = |process| {
            let mut exit = Event::new(end, process, 0, Kind::Info, Function::Exit);
            exit.error = Some("exit 0".into());
            exit
        };
        self.events.extend(clients.into_iter().map(exit));
    }

    /// Gives writes values of their own, and reads those of the versions that they return.
    fn fill_values(&mut self) {
        for event in &mut self.events {
            if event.f == Function::Write && event.kind == Kind::Invoke && event.value.is_none() {
                event.value = Some(format!("value of {}", event.op).into());
            }
        }
        let made: Vec<Event<'static>> = self
            .events
            .iter()
            .filter(|event| matches!(event.f, Function::Write | Function::Accepted))
            .filter(|event| event.kind == Kind::Ok)
            .cloned()
            .collect();
        let sent: Vec<Event<'static>> = self.writes(Kind::Invoke).cloned().collect();
        let value_of = |version: Option<u64>| {
            let maker = made.iter().find(|made| made.version == version)?;
            let write = sent.iter().find(|write| write.op == maker.op)?;
            write.value.clone()
        };
        for event in &mut self.events {
            if event.f == Function::Read && event.kind == Kind::Ok && event.value.is_none() {
                event.value = value_of(event.version).or(Some("".into()));
            }
        }
    }

    /// The events of writes, of which the completions lack the values.
    fn writes(&self, kind: Kind) -> impl Iterator<Item = &Event<'static>> {
        let write = move |event: &&Event<'_>| event.f == Function::Write && event.kind == kind;
        self.events.iter().filter(write)
    }

    /// Gives the rows of the log what their writes sent.
    fn fill_log(&mut self) {
        let sent: Vec<Event<'static>> = self.writes(Kind::Invoke).cloned().collect();
        for row in &mut self.events {
            let asked = sent.iter().find(|asked| asked.op == row.op);
            if let (Function::Accepted, Some(asked)) = (row.f, asked) {
                row.value = row.value.take().or_else(|| asked.value.clone());
                row.token = row.token.or(asked.token);
            }
        }
    }

    /// Reads the log, unless the text does or has a write of unknown outcome.
    fn read_log(&mut self) {
        let begun = self.writes(Kind::Invoke).count();
        let known = self.writes(Kind::Ok).count() + self.writes(Kind::Fail).count();
        if begun > known || self.events.iter().any(|event| event.f == Function::Log) {
            return;
        }
        let at = |op, kind, f| Event::new(self.end(), histories::STORAGE, op, kind, f);
        let mut log = vec![at(LOG, Kind::Invoke, Function::Log)];
        for accepted in self
            .writes(Kind::Ok)
            .filter(|event| event.version.is_some())
        {
            let mut asked = self
                .writes(Kind::Invoke)
                .filter(|asked| asked.op == accepted.op);
            let Some(asked) = asked.next() else {
                continue;
            };
            let mut row = at(accepted.op, Kind::Ok, Function::Accepted);
            row.version = accepted.version;
            (row.document, row.value, row.token) =
                (asked.document.clone(), asked.value.clone(), asked.token);
            log.push(row);
        }
        let mut done = at(LOG, Kind::Ok, Function::Log);
        done.entries = Some(log.len() as u64 - 1);
        log.push(done);
        self.events.extend(log);
    }
}
