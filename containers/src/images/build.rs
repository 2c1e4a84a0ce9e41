//! One build of one stage, by the daemon's classic builder, which every Engine has.

use std::collections::{HashMap, VecDeque};

use bollard::body_full;
use bollard::query_parameters::{BuildImageOptions, BuildImageOptionsBuilder};
use futures_util::StreamExt as _;

use super::context;
use crate::replies::{lost, words};
use crate::{Engine, Error, Progress};

/// How many of the last lines of a build's output stand in its error.
const LINES_IN_ERROR: usize = 20;

/// What tells programs of a proxy. A build gets these too, since its network may be the one that needs them.
const PROXIES: [&str; 6] = [
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// Builds a stage of the Dockerfile on a base image, and names the result if it gets a name.
///
/// When this is dropped the connection closes, upon which the daemon stops the build and removes its container.
///
/// # Errors
/// [`Error::Build`], with the end of the output; [`Error::DiskFull`].
pub(super) async fn build(
    engine: &Engine,
    stage: &str,
    base: &str,
    name: Option<&str>,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let context = context::archive(stage).await?;
    let mut answers = engine.docker().build_image(
        options(stage, base, name),
        None,
        Some(body_full(context.into())),
    );
    let mut output = Output::default();
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(info) => output.add(&info.stream.or(info.status).unwrap_or_default(), |line| {
                progress.detail(&format!("{stage}: {line}"));
            }),
            Err(reply) => {
                let lost = lost(&format!("building image `{stage}`"), &reply);
                return Err(lost.unwrap_or_else(|| failure(stage, &words(&reply), output)));
            }
        }
    }
    Ok(())
}

fn options(stage: &str, base: &str, name: Option<&str>) -> BuildImageOptions {
    let mut arguments = HashMap::from([("BASE".to_owned(), base.to_owned())]);
    arguments.extend(
        PROXIES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), proxy(std::env::var(name).ok()?)?))),
    );
    let options = BuildImageOptionsBuilder::default()
        .dockerfile("Dockerfile")
        .target(stage)
        .buildargs(&arguments)
        .rm(true)
        .forcerm(true);
    match name {
        Some(name) => options.t(name).build(),
        None => options.build(),
    }
}

/// A proxy, unless it listens on this machine's loopback, where no container reaches it.
fn proxy(value: String) -> Option<String> {
    let here = ["//localhost", "//127.", "//[::1]"]
        .iter()
        .any(|host| value.contains(host));
    (!here).then_some(value)
}

fn failure(stage: &str, reason: &str, output: Output) -> Error {
    let output = output.last_lines();
    if format!("{reason}\n{output}")
        .to_lowercase()
        .contains("no space left on device")
    {
        let doing = format!("building image `{stage}`");
        return Error::DiskFull {
            doing,
            reason: "no space left on device".to_owned(),
        };
    }
    Error::Build {
        stage: stage.to_owned(),
        reason: reason.to_owned(),
        output,
    }
}

/// What a build writes, which comes in pieces that are not lines and, where it went to standard error, in colour.
#[derive(Default)]
struct Output {
    last_lines: VecDeque<String>,
    begun: String,
}

impl Output {
    /// Takes a piece, and tells of each line that is now whole and not empty.
    fn add(&mut self, piece: &str, mut tell: impl FnMut(&str)) {
        self.begun.push_str(piece);
        while let Some(end) = self.begun.find('\n') {
            let line: String = self.begun.drain(..=end).collect();
            let line = plain(&line);
            if line.is_empty() {
                continue;
            }
            tell(&line);
            if self.last_lines.len() == LINES_IN_ERROR {
                self.last_lines.pop_front();
            }
            self.last_lines.push_back(line);
        }
    }

    fn last_lines(mut self) -> String {
        self.add("\n", |_| {});
        Vec::from(self.last_lines).join("\n")
    }
}

/// A line without its end, without colours (ECMA-48: CSI, parameters, one final byte `m`), and, where a progress bar
/// went over it again and again, only as it was at last.
fn plain(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let text = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        plain.push_str(text.strip_prefix('m').unwrap_or(text));
    }
    plain
        .trim_end()
        .rsplit('\r')
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_the_last_lines() {
        let mut output = Output::default();
        (1..=30).for_each(|line| output.add(&format!("line {line}\n"), |_| {}));
        output.add("and this", |line| panic!("{line} is not at its end"));
        let error = failure("redis", "returned a non-zero code: 100", output).to_string();
        assert!(
            error.contains("image `redis` does not build: returned a non-zero code: 100"),
            "{error}"
        );
        assert!(!error.contains("line 11\n"), "{error}");
        assert!(
            error.contains("line 12\n") && error.ends_with("line 30\nand this"),
            "{error}"
        );
    }

    #[test]
    fn a_full_disk_is_said_to_be_one() {
        let mut output = Output::default();
        output.add(
            "E: Write error - write (28: No space left on device)\n",
            |_| {},
        );
        let error = failure("redis", "returned a non-zero code: 100", output);
        assert!(matches!(error, Error::DiskFull { .. }), "{error:?}");
    }

    #[test]
    fn a_proxy_is_passed_on_where_a_container_reaches_it() {
        assert_eq!(
            proxy("http://proxy:3128".to_owned()),
            Some("http://proxy:3128".to_owned())
        );
        assert_eq!(
            proxy("localhost,127.0.0.1,.internal".to_owned()).as_deref(),
            Some("localhost,127.0.0.1,.internal")
        );
        assert_eq!(proxy("http://127.0.0.1:3128".to_owned()), None);
        assert_eq!(proxy("http://localhost:3128/".to_owned()), None);
    }

    #[test]
    fn pieces_become_plain_lines() {
        let mut output = Output::default();
        let mut lines = Vec::new();
        for piece in [
            "checking ... ",
            "ok\n\n",
            "\u{1b}[91mW: ",
            "old\u{1b}[0m\n",
            "10%\r50%\rdone\r\n",
            "begun",
        ] {
            output.add(piece, |line| lines.push(line.to_owned()));
        }
        assert_eq!(lines, ["checking ... ok", "W: old", "done"]);
    }
}
