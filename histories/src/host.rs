//! Who is who in a run: hosts and their roles, and the processes that are no clients.

/// The process that injects and heals faults.
pub const NEMESIS: &str = "nemesis";

/// The host that keeps the document, and the process under whose name the storage's own log is read into the history when
/// the run ends.
pub const STORAGE: &str = "storage";

/// The word by which a fault strikes whichever server leads when it is injected.
pub const LEADER: &str = "leader";

/// The word for all servers of the lock service together.
pub const SERVERS: &str = "servers";

/// What a host is in a run, told from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It runs a client.
    Client,
    /// It is a server of the lock service.
    Server,
    /// It keeps the document.
    Storage,
}

impl Role {
    /// The role of the host of this name, be there such a host or not; `None` for a name of no host.
    pub fn of(host: &str) -> Option<Role> {
        match host {
            STORAGE => Some(Role::Storage),
            LEADER | SERVERS => Some(Role::Server),
            _ if numbered(host, 'c') => Some(Role::Client),
            _ if numbered(host, 's') => Some(Role::Server),
            _ => None,
        }
    }

    /// The role as a message names its hosts: "clients".
    pub fn plural(self) -> &'static str {
        match self {
            Role::Client => "clients",
            Role::Server => "servers",
            Role::Storage => "the storage",
        }
    }
}

/// Whether a name is the letter and a number from 1 on, as `c12`.
fn numbered(name: &str, letter: char) -> bool {
    name.strip_prefix(letter).is_some_and(|number| {
        !number.starts_with('0')
            && number.len() <= 4
            && number.parse::<u32>().is_ok()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The host of a process: `c1` for `c1` and for its second life `c1.2`.
pub fn host_of(process: &str) -> &str {
    process.split_once('.').map_or(process, |(host, _)| host)
}

/// Which life of its host a process is: 1 for `c1`, 2 for `c1.2`; `None` for what is no name of a life.
pub fn life_of(process: &str) -> Option<u32> {
    let Some((_, life)) = process.split_once('.') else {
        return Some(1);
    };
    let written = life.bytes().all(|byte| byte.is_ascii_digit()) && !life.starts_with('0');
    life.parse().ok().filter(|&life| written && life > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_role_from_the_name() {
        assert_eq!(Role::of("c1"), Some(Role::Client));
        assert_eq!(Role::of("c12"), Some(Role::Client));
        assert_eq!(Role::of("s5"), Some(Role::Server));
        assert_eq!(Role::of("leader"), Some(Role::Server));
        assert_eq!(Role::of("servers"), Some(Role::Server));
        assert_eq!(Role::of("storage"), Some(Role::Storage));
        for odd in ["c0", "c", "c01", "c+1", "c1.2", "x1", "", "c99999"] {
            assert_eq!(Role::of(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_second_life_has_the_same_host() {
        assert_eq!(host_of("c1.2"), "c1");
        assert_eq!(host_of("c1"), "c1");
        assert_eq!((life_of("c1"), life_of("c1.12")), (Some(1), Some(12)));
        for odd in ["c1.", "c1.1", "c1.0", "c1.02", "c1.+2", "c1.2.3", "c1.x"] {
            assert_eq!(life_of(odd), None, "{odd}");
        }
    }
}
