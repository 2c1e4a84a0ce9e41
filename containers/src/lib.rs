//! Where it happens: Docker, the images, the hosts and their agents, and the clean-up.

pub mod agent;
pub mod bundle;
mod docker;
mod error;
pub mod images;
pub mod owner;
mod progress;
mod replies;
mod runtime_directory;
pub mod services;
mod silence;
pub mod site;
mod sweep;
pub mod topologies;

pub use docker::{Engine, EngineFacts, docker_or_skip, engine, engine_telling};
pub use error::{Error, is_limit_of_files};
pub use progress::Progress;
pub use runtime_directory::RuntimeDirectory;
pub use sweep::{Swept, Which, sweep, sweep_blocking, sweep_own_blocking};
