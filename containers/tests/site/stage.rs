//! A site for a test, and what every site has to be.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use containers::agent::Agent;
use containers::services::Service;
use containers::services::clock::{NO_OFFSET, OFFSET_FILE};
use containers::site::{Site, SiteRequest};
use containers::topologies::{self, Topology};
use tempfile::TempDir;

/// No test waits longer for anything: what takes so long will not come.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A site, and the folder that its hosts share with us.
pub struct Stage {
    pub site: Site,
    pub shared: TempDir,
}

/// The example beside this test's own binary.
fn host_agent() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let target = own.parent().and_then(Path::parent).unwrap();
    target.join("examples/host_agent")
}

pub fn request(topology: &str, clients: u32, shared: &Path) -> SiteRequest {
    SiteRequest {
        run: uuid::Uuid::now_v7().to_string(),
        topology: topologies::find(topology).unwrap(),
        clients,
        out_dir: shared.join("out"),
        exe: host_agent(),
    }
}

pub async fn start(topology: &str, clients: u32) -> Stage {
    let shared = tempfile::tempdir().unwrap();
    let site = Site::start(request(topology, clients, shared.path()))
        .await
        .unwrap();
    println!("{topology}: {:?}", site.timings);
    Stage { site, shared }
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: still not so");
        std::thread::yield_now();
    }
}

/// What is there of a run, as `docker` and the file system show it.
pub fn left_of(run: &str, runtime: &Path) -> Vec<String> {
    let label = format!("label=fencepost.run={run}");
    let mut left = Vec::new();
    for what in [&["ps", "-a"][..], &["network", "ls"], &["volume", "ls"]] {
        let listed = std::process::Command::new("docker")
            .args(what)
            .args(["-q", "--filter", &label])
            .output()
            .unwrap();
        assert!(listed.status.success());
        left.extend(
            String::from_utf8(listed.stdout)
                .unwrap()
                .lines()
                .map(str::to_owned),
        );
    }
    left.extend(runtime.exists().then(|| runtime.display().to_string()));
    left
}

pub fn runtime_of(site: &Site) -> PathBuf {
    let socket = &site.hosts[0].socket;
    socket.ancestors().nth(3).unwrap().to_path_buf()
}

/// How far the server's clock is from ours, in seconds.
fn clock_difference(service: &dyn Service, agent: &mut Agent) -> f64 {
    let theirs = service.wall_clock_ns(agent).unwrap();
    let ours = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos();
    (theirs as f64 - ours as f64) / 1e9
}

/// Every server of a site answers, tells its version and, if it can be stepped, follows a step of its clock at once.
pub fn expect_servers(site: &Site, topology: &Topology, steppable: bool) {
    let names: Vec<&str> = site.servers().map(|host| host.name.as_str()).collect();
    let planned: Vec<&str> = topology.servers.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, planned);
    for host in site.servers() {
        let service = host.service().unwrap();
        let mut agent = host.agent().unwrap();
        assert!(service.ready(&mut agent).unwrap(), "{}", host.name);
        let version = &site.versions[&host.name];
        assert!(
            version.starts_with(|first: char| first.is_ascii_digit()),
            "{version}"
        );
        assert!(clock_difference(service, &mut agent).abs() < 10.0);
        if steppable {
            agent.put(OFFSET_FILE, "+3600").unwrap();
            assert!((clock_difference(service, &mut agent) - 3600.0).abs() < 10.0);
            agent.put(OFFSET_FILE, NO_OFFSET).unwrap();
            assert!(clock_difference(service, &mut agent).abs() < 10.0);
        }
    }
}

/// Every host has bounds, and no capability that neither a fault nor its server needs.
pub fn expect_bounds(site: &Site) {
    for host in &site.hosts {
        let format = "{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}} {{.HostConfig.SecurityOpt}}";
        let asked = std::process::Command::new("docker")
            .args(["inspect", "--format", format, &host.container])
            .output()
            .unwrap();
        let bounds = String::from_utf8(asked.stdout).unwrap();
        let expected = match host.service() {
            Some(_) => "2147483648 2048 [no-new-privileges]\n",
            None => "536870912 512 [no-new-privileges]\n",
        };
        assert_eq!(bounds, expected, "{}", host.name);
        let status = ["grep", "-E", "CapBnd|NoNewPrivs", "/proc/1/status"];
        let status = host.agent().unwrap().run(status, PATIENCE).unwrap().stdout;
        // CHOWN, DAC_OVERRIDE, NET_ADMIN, SYS_NICE; for servers FOWNER, KILL, SETGID, SETUID as well.
        let bounding = match host.service() {
            Some(_) => "CapBnd:\t00000000008010eb\nNoNewPrivs:\t1\n",
            None => "CapBnd:\t0000000000801003\nNoNewPrivs:\t1\n",
        };
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&status), sorted(bounding), "{}", host.name);
    }
}
