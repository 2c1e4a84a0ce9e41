//! Where it happens: Docker, the images, the hosts and their agents, and the clean-up.

mod error;

pub use error::Error;
