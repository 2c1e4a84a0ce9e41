//! Real servers for a test: a site without clients.

use std::net::SocketAddr;
use std::path::PathBuf;

use containers::site::{Host, Site, SiteRequest};
use containers::topologies::TOPOLOGIES;

/// The servers of a topology.
pub struct Servers {
    /// The topology's name.
    pub topology: &'static str,
    /// The lock's servers.
    pub addresses: Vec<SocketAddr>,
}

/// Starts the servers of a topology, runs a test against them on a single thread, as clients do, and removes them.
pub fn with(topology: &str, test: impl AsyncFnOnce(&Servers)) {
    if containers::docker_or_skip().is_none() {
        return;
    }
    let topology = TOPOLOGIES
        .iter()
        .find(|known| known.name == topology)
        .expect("the topology exists");
    let out_dir = tempfile::tempdir().unwrap();
    let request = SiteRequest {
        run: uuid::Uuid::now_v7().to_string(),
        topology,
        clients: 0,
        out_dir: out_dir.path().to_owned(),
        exe: PathBuf::from(env!("CARGO_BIN_EXE_fencepost")),
    };
    let containers = tokio::runtime::Runtime::new().unwrap();
    let site = containers.block_on(Site::start(request)).unwrap();
    let servers = Servers {
        topology: topology.name,
        addresses: site.servers().filter_map(address).collect(),
    };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(test(&servers));
    containers.block_on(site.stop()).unwrap();
}

fn address(host: &Host) -> Option<SocketAddr> {
    let service = host.service()?;
    Some(SocketAddr::from((host.address, service.port())))
}
