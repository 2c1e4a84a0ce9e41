//! From a history's file to a judgement, by a model that is named or guessed.

use std::io::BufRead;

use histories::entries::{Entries, Entry, Format, Value};
use histories::{Ending, Place, ReadError};

use crate::error::CheckError;
use crate::linearizability::Limits;
use crate::linearizability::judge::{Judge, Judgement};
use crate::models::{Kind, Seen, Setup};

/// So many entries are looked at before a model is guessed; if later ones do not fit, all are.
const ENTRIES_TO_GUESS_BY: usize = 1000;

/// By what a history is to be judged.
#[derive(Clone, Default)]
pub struct Request {
    /// The model; without one it is guessed, where the operations make it plain.
    pub model: Option<&'static Kind>,
    /// How it is set up. What a read of nil tells goes by the history's format, whatever is said here.
    pub setup: Setup,
}

/// What is found of a history's file.
pub struct Checked {
    /// The history's format.
    pub format: Format,
    /// The model that it was judged by.
    pub model: &'static Kind,
    /// Whether the model was guessed.
    pub guessed: bool,
    /// What is found. Of a file that is cut, or tells of no operation, nothing is said to hold.
    pub judgement: Judgement,
}

/// Reads a history of any format and judges it. `open` gives a reader at its beginning; it is called again where a guess was
/// wrong, and where the entries turn out not to be in the order of their times: they are sorted in memory then.
///
/// # Errors
/// When the history cannot be read, the model does not have one of its operations, or none is named and none is plain.
pub fn check<R: BufRead>(
    mut open: impl FnMut() -> Result<Entries<R>, ReadError>,
    request: &Request,
    limits: &Limits<'_>,
) -> Result<Checked, CheckError> {
    let quick = Pass::begin(open()?, request, ENTRIES_TO_GUESS_BY).and_then(Pass::read);
    let read = match quick {
        Err(CheckError::Entry { .. } | CheckError::NoModel { .. }) if request.model.is_none() => {
            Pass::begin(open()?, request, usize::MAX)?.read()?
        }
        other => other?,
    };
    match read {
        Read::InOrder(pass) => pass.judge(limits),
        Read::OutOfOrder => match Pass::sorted(open()?, request)?.read()? {
            Read::InOrder(pass) => pass.judge(limits),
            Read::OutOfOrder => unreachable!("what is sorted is in order"),
        },
    }
}

/// One reading of a history.
struct Pass<R: BufRead> {
    entries: Entries<R>,
    /// What was read ahead, with where it stands.
    ahead: Vec<(Place, Entry<'static>)>,
    model: &'static Kind,
    guessed: bool,
    judge: Box<dyn Judge>,
}

/// What a reading comes to.
enum Read<R: BufRead> {
    InOrder(Pass<R>),
    OutOfOrder,
}

impl<R: BufRead> Pass<R> {
    /// Begins, having looked at so many entries if the model has to be guessed.
    fn begin(
        mut entries: Entries<R>,
        request: &Request,
        look_at: usize,
    ) -> Result<Self, CheckError> {
        entries = entries.with_holds();
        let look_at = if request.model.is_some() { 0 } else { look_at };
        let ahead = read_ahead(&mut entries, look_at)?;
        Pass::with(entries, ahead, request)
    }

    /// Begins with all entries, in the order of their times.
    fn sorted(mut entries: Entries<R>, request: &Request) -> Result<Self, CheckError> {
        entries = entries.with_holds();
        let mut ahead = read_ahead(&mut entries, usize::MAX)?;
        ahead.sort_by_key(|(_, entry)| entry.time);
        Pass::with(entries, ahead, request)
    }

    fn with(
        entries: Entries<R>,
        ahead: Vec<(Place, Entry<'static>)>,
        request: &Request,
    ) -> Result<Self, CheckError> {
        let model = match request.model {
            Some(model) => model,
            None => guess(&ahead, &entries)?,
        };
        let mut setup = request.setup.clone();
        setup.nil_read_tells_nothing = entries.format().nil_read_tells_nothing();
        if setup.initial.is_none() && entries.format() == Format::Fencepost {
            // An untouched document has the empty value.
            setup.initial = Some(Value::Text("".into()));
        }
        let judge = model
            .judge(&setup)
            .map_err(|misfit| CheckError::Setup(misfit.to_string()))?;
        Ok(Pass {
            entries,
            ahead,
            model,
            guessed: request.model.is_none(),
            judge,
        })
    }

    /// Reads to the end.
    fn read(mut self) -> Result<Read<R>, CheckError> {
        let format = self.entries.format();
        let model = self.model;
        let concerns =
            |entry: &Entry<'_>| format != Format::Fencepost || model.functions.contains(&&*entry.f);
        let mut latest = 0;
        for (place, entry) in self.ahead.drain(..) {
            let time = entry.time.unwrap_or(latest);
            if time < latest {
                return Ok(Read::OutOfOrder);
            }
            latest = time;
            if concerns(&entry) {
                self.judge
                    .push(&entry)
                    .map_err(|source| CheckError::Entry { place, source })?;
            }
        }
        loop {
            let pushed = match self.entries.next()? {
                None => return Ok(Read::InOrder(self)),
                Some(entry) if entry.time.is_some_and(|time| time < latest) => {
                    return Ok(Read::OutOfOrder);
                }
                Some(entry) => {
                    latest = entry.time.unwrap_or(latest);
                    if concerns(&entry) {
                        self.judge.push(&entry)
                    } else {
                        Ok(())
                    }
                }
            };
            pushed.map_err(|source| CheckError::Entry {
                place: self.entries.place(),
                source,
            })?;
        }
    }

    fn judge(self, limits: &Limits<'_>) -> Result<Checked, CheckError> {
        let place = self.entries.place();
        let mut judgement = self
            .judge
            .finish(limits)
            .map_err(|source| CheckError::Entry { place, source })?;
        if !matches!(self.entries.ending(), Some(Ending::Complete { .. })) {
            judgement.doubt("the history is cut, and what is missing may break it");
        }
        if let Some(flaw) = self.entries.flaw()
            && self.model.functions.contains(&"acquire")
        {
            judgement.doubt(flaw);
        }
        if judgement.operations == 0 {
            judgement.doubt("no operation of the history tells anything");
        }
        Ok(Checked {
            format: self.entries.format(),
            model: self.model,
            guessed: self.guessed,
            judgement,
        })
    }
}

fn read_ahead<R: BufRead>(
    entries: &mut Entries<R>,
    count: usize,
) -> Result<Vec<(Place, Entry<'static>)>, CheckError> {
    let mut ahead = Vec::new();
    while ahead.len() < count {
        let Some(entry) = entries.next()? else {
            break;
        };
        let entry = entry.into_owned();
        ahead.push((entries.place(), entry));
    }
    Ok(ahead)
}

fn guess<R: BufRead>(
    ahead: &[(Place, Entry<'static>)],
    entries: &Entries<R>,
) -> Result<&'static Kind, CheckError> {
    let mut seen = Seen::default();
    ahead.iter().for_each(|(_, entry)| seen.add(entry));
    seen.model().ok_or_else(|| {
        let mut place = entries.place();
        (place.line, place.column) = (0, 0);
        CheckError::NoModel {
            place,
            functions: seen.functions(),
        }
    })
}
