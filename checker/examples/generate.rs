//! Writes a generated history as Jepsen's EDN to standard output:
//!
//! ```sh
//! cargo run --release -p checker --example generate -- owner-aware-mutex --operations 1000000 > history.edn
//! cargo run --release -p checker --example generate -- cas-register --operations 1000 --unknown 27 --broken
//! ```

use std::io::{BufWriter, Write};

use clap::{Parser, ValueEnum};
use histories::entries::Export;

#[path = "../benches/generators/mod.rs"]
mod generators;

use generators::{Shape, lock, register};

/// A history that some clients make, and that is right, or broken at one place.
#[derive(Parser)]
struct Arguments {
    /// Of what
    of: Of,
    /// How many operations are begun
    #[arg(long, default_value_t = 1000)]
    operations: u64,
    /// How many clients have one in flight
    #[arg(long, default_value_t = 5)]
    clients: usize,
    /// How many operations have an outcome that nobody learns
    #[arg(long, default_value_t = 0)]
    unknown: u64,
    /// How many values a register with compare-and-set takes
    #[arg(long, default_value_t = 5)]
    values: u64,
    /// Break it in its middle
    #[arg(long)]
    broken: bool,
    /// The same seed gives the same history
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Of {
    /// A lock that its owner alone releases
    OwnerAwareMutex,
    /// A lock with tokens
    FencedMutex,
    /// A lock whose grants are leases
    LeaseMutex,
    /// A register, each value of which is written once
    Register,
    /// A register with compare-and-set
    CasRegister,
}

fn main() -> Result<(), histories::WriteError> {
    let arguments = Arguments::parse();
    let shape = Shape {
        operations: arguments.operations,
        clients: arguments.clients,
        unknown: arguments.unknown,
        broken: arguments.broken,
        seed: arguments.seed,
    };
    let mut export = Export::new(BufWriter::new(std::io::stdout().lock()));
    let mut result = Ok(());
    let mut each = |entry: &histories::entries::Entry<'_>| {
        if result.is_ok() {
            result = export.write(entry);
        }
    };
    match arguments.of {
        Of::OwnerAwareMutex => lock::generate(shape, lock::Grants::Plain, &mut each),
        Of::FencedMutex => lock::generate(shape, lock::Grants::Fenced, &mut each),
        Of::LeaseMutex => lock::generate(shape, lock::Grants::Leased, &mut each),
        Of::Register => register::generate(shape, register::Values::Unique, &mut each),
        Of::CasRegister => {
            register::generate(shape, register::Values::Few(arguments.values), &mut each)
        }
    }
    result?;
    let _ = export.finish()?.flush();
    Ok(())
}
