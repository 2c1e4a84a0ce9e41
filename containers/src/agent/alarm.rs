//! The alarm of a process: what its output says when somebody else has laid hands on it.

/// How much of one line is looked at.
const LONGEST: usize = 4 * 1024;

/// Listens to the output of one process.
#[derive(Default)]
pub struct Alarm {
    /// Any of these in a line is the alarm.
    phrases: Vec<String>,
    /// The line that is not whole yet.
    line: Vec<u8>,
    heard: Option<String>,
}

impl Alarm {
    /// One that was not heard yet.
    pub fn new(phrases: &[String]) -> Alarm {
        Alarm {
            phrases: phrases.to_vec(),
            ..Alarm::default()
        }
    }

    /// Takes in what the process wrote next.
    pub fn listen(&mut self, output: &[u8]) {
        if self.phrases.is_empty() || self.heard.is_some() {
            return;
        }
        for piece in output.split_inclusive(|&byte| byte == b'\n') {
            let room = LONGEST.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.take_line(&String::from_utf8_lossy(&line));
            }
        }
    }

    fn take_line(&mut self, line: &str) {
        let is_alarm = self.phrases.iter().any(|phrase| line.contains(phrase));
        if is_alarm && self.heard.is_none() {
            self.heard = Some(line.trim().to_owned());
        }
    }

    /// The first line that was the alarm.
    pub fn heard(&self) -> Option<&str> {
        self.heard.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(phrases: &[&str], outputs: &[&str]) -> Option<String> {
        let phrases: Vec<String> = phrases.iter().map(|&phrase| phrase.to_owned()).collect();
        let mut alarm = Alarm::new(&phrases);
        for output in outputs {
            alarm.listen(output.as_bytes());
        }
        alarm.heard().map(str::to_owned)
    }

    #[test]
    fn the_first_line_with_a_phrase_is_the_alarm_however_it_comes() {
        let outputs = ["ready\n12 FATAL: en", "ded by hand\nFATAL: ended again\n"];
        let first = Some("12 FATAL: ended by hand".to_owned());
        assert_eq!(heard(&["started", "ended"], &outputs), first);
        assert_eq!(heard(&["stopped"], &outputs), None);
        assert_eq!(heard(&[], &outputs), None);
        assert_eq!(
            heard(&["ended"], &outputs[..1]),
            None,
            "the line is not whole"
        );
    }

    #[test]
    fn of_an_endless_line_only_so_much_is_kept() {
        let mut alarm = Alarm::new(&["end".to_owned()]);
        for _ in 0..100 {
            alarm.listen(&[b'x'; 1024]);
        }
        assert_eq!(alarm.line.len(), LONGEST);
        alarm.listen(b"\nthe end\n");
        assert_eq!(alarm.heard(), Some("the end"));
    }
}
