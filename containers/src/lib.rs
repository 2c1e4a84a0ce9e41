//! Where it happens: Docker, the images, the hosts and their agents, and the clean-up.

pub mod agent;
mod error;
pub mod services;
pub mod site;
pub mod topologies;

pub use error::Error;
