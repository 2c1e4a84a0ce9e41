//! `fencepost`: the thin end of the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(harness::cli::main(std::env::args_os()).code())
}
