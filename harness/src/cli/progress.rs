//! What a person sees on standard error while things go on: bars on a terminal, lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use histories::visible;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::output;
use crate::report::Page;

/// Shows progress; cheap to clone, all clones share one display.
#[derive(Clone)]
pub struct Display {
    bars: Option<Bars>,
}

#[derive(Clone)]
struct Bars {
    all: MultiProgress,
    runs: ProgressBar,
    now: ProgressBar,
}

impl Display {
    /// A display for so many runs.
    pub fn new(runs: usize) -> Display {
        let bars = std::io::stderr()
            .is_terminal()
            .then(|| Bars::new(runs as u64));
        Display { bars }
    }

    /// A display of lines alone.
    pub fn lines() -> Display {
        Display { bars: None }
    }

    /// Lines that stay.
    pub fn line(&self, text: &str) {
        match &self.bars {
            Some(bars) => output::tried(bars.all.println(Page::from(text).into_text())),
            None => text.lines().for_each(output::tell),
        }
    }

    /// What goes on at the moment: shown on a terminal only.
    pub fn now(&self, text: &str) {
        if let Some(bars) = &self.bars {
            bars.now.set_message(visible(text.trim_end()).into_owned());
        }
    }

    /// One more run is done.
    pub fn run_done(&self) {
        if let Some(bars) = &self.bars {
            bars.runs.inc(1);
        }
    }

    /// Takes the bars away.
    pub fn finish(&self) {
        if let Some(bars) = &self.bars {
            bars.runs.finish_and_clear();
            bars.now.finish_and_clear();
        }
    }
}

impl Bars {
    fn new(runs: u64) -> Bars {
        let all = MultiProgress::new();
        let style = |template: &str| {
            ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar())
        };
        let now = all.add(ProgressBar::new_spinner().with_style(style("{spinner} {wide_msg}")));
        now.enable_steady_tick(Duration::from_millis(120));
        let runs = all.add(
            ProgressBar::new(runs)
                .with_style(style("[{elapsed}] {bar:30} {pos}/{len} runs, {eta} left")),
        );
        Bars { all, runs, now }
    }
}

impl containers::Progress for Display {
    fn step(&self, what: &str) {
        self.line(what);
    }

    fn detail(&self, line: &str) {
        self.now(line);
    }
}
