//! Reads one `[[fault]]` of a scenario.

use std::ops::Range;

use containers::topologies::Topology;

use super::length::Length;
use super::sense;
use super::table::{Found, Problems, Table};
use super::{Given, WantedEvent, WantedFault, WantedUntil, WantedWhen};
use crate::faults::{self, FAULTS, Fault, Lasting, Parameter, Takes};
use crate::hosts::{LEADER, Role, SERVERS, STORAGE};
use crate::words::{FUNCTIONS, ONLY, OUTCOMES, POINTS, instead};

/// How long an `until` that waits for an event may wait, where it does not say.
const AT_MOST: Length = Length::from_ttl_and_ms(10, 5_000);

/// What the rest of the scenario has to say to a fault.
pub(super) struct Surroundings {
    pub clients: u32,
    pub ttl_ms: u64,
    /// The topologies that the scenario names, or all.
    pub topologies: Vec<&'static Topology>,
    /// Whether it names none.
    pub all_topologies: bool,
}

impl Surroundings {
    fn clients(&self) -> Vec<String> {
        (1..=self.clients)
            .map(|number| format!("c{number}"))
            .collect()
    }

    /// All names that a fault can be `on`.
    fn hosts(&self) -> Vec<String> {
        let mut hosts = self.clients();
        for topology in &self.topologies {
            for (server, _) in topology.servers {
                if !hosts.iter().any(|host| host == server) {
                    hosts.push((*server).to_owned());
                }
            }
        }
        if self.topologies.iter().any(|topology| topology.has_leader) {
            hosts.push(LEADER.to_owned());
        }
        hosts.push(STORAGE.to_owned());
        hosts
    }
}

/// `None` only where a problem was added.
pub(super) fn read(
    mut table: Table<'_>,
    surroundings: &Surroundings,
    problems: &Problems<'_>,
) -> Option<Found<WantedFault>> {
    let at = table.at.clone();
    let names: Vec<&str> = FAULTS.iter().map(|fault| fault.name()).collect();
    let name = table.name("fault", "fault", &names);
    let name = table.needs(
        "fault",
        "name what goes wrong, like `fault = \"pause\"`",
        name,
    )?;
    let fault = faults::find(&name.value)?;
    let on = read_on(&mut table, fault, surroundings);
    let when = read_when(&mut table, surroundings);
    let until = read_until(&mut table, fault, on.as_ref(), surroundings);
    let only = table.name("only", "kind of lock", ONLY);
    let with = read_parameters(&mut table, fault, on.as_ref(), surroundings);
    table.finish();
    let (on, when) = (on?, when?);
    let wanted = Found {
        value: WantedFault {
            fault,
            place: problems.place(at.start),
            on: on.value.clone(),
            when,
            until: until?,
            only_kept_alive: only.is_some(),
            with: with?,
        },
        at,
    };
    sense::check_trigger(&wanted, problems);
    sense::check_topologies(&wanted, &on.at, surroundings, problems);
    Some(wanted)
}

fn read_on(
    table: &mut Table<'_>,
    fault: &dyn Fault,
    surroundings: &Surroundings,
) -> Option<Found<String>> {
    let on = table.text("on");
    let on = table.needs("on", "name the host it strikes, like `on = \"c1\"`", on)?;
    let role = check_host(table, &on, surroundings)?;
    if fault.strikes().contains(&role) {
        return Some(on);
    }
    let strikes: Vec<&str> = fault.strikes().iter().map(|role| role.plural()).collect();
    let message = format!(
        "`{}` strikes {}, not `{}`",
        fault.name(),
        strikes.join(" and "),
        on.value
    );
    table.complain(&on.at, message);
    None
}

/// The role of a host; complains if there is no such host.
fn check_host(
    table: &Table<'_>,
    host: &Found<String>,
    surroundings: &Surroundings,
) -> Option<Role> {
    let hosts = surroundings.hosts();
    let role = Role::of(&host.value);
    if role.is_some() && hosts.contains(&host.value) {
        return role;
    }
    if role == Some(Role::Client) {
        check_client(table, host, surroundings);
        return None;
    }
    let kind = if role.is_some() { "server" } else { "host" };
    let message = format!(
        "unknown {kind} `{}`; {}",
        host.value,
        instead(&host.value, &hosts)
    );
    table.complain(&host.at, message);
    None
}

fn check_client(table: &Table<'_>, client: &Found<String>, surroundings: &Surroundings) -> bool {
    let clients = surroundings.clients();
    let known = clients.contains(&client.value);
    if !known {
        let message = format!(
            "unknown client `{}` of {} (`clients = {}`); {}",
            client.value,
            surroundings.clients,
            surroundings.clients,
            instead(&client.value, &clients)
        );
        table.complain(&client.at, message);
    }
    known
}

fn read_when(table: &mut Table<'_>, surroundings: &Surroundings) -> Option<WantedWhen> {
    let example = "{ client = \"c1\", point = \"before-write\" }, { after = \"200ms\" } or \
                   { client = \"c2\", write = \"ok\" }";
    let what = "`when`";
    let when = table.table("when", what, example);
    let mut when = table.needs("when", &format!("write it like {example}"), when)?;
    let after = when.length("after", surroundings.ttl_ms, 0);
    let grant = when.whole("grant", 1..=1_000_000);
    let point = when.name("point", "point", POINTS);
    let (has_after, has_point) = (when.has("after"), when.has("point"));
    let event = read_event(&mut when, surroundings, !has_after && !has_point);
    let stray = match (has_after, has_point) {
        (true, true) => Some("`after` and `point` exclude each other"),
        (true, false) if when.has("client") => Some("`after` waits for no client"),
        (_, false) if when.has("grant") => Some("`grant` belongs to a `point`"),
        _ if (has_after || has_point) && !when.all_of(FUNCTIONS).is_empty() => {
            Some("a time or a `point` and a completion exclude each other")
        }
        _ => None,
    };
    let at = when.at.clone();
    if let Some(stray) = stray {
        when.complain(&at, format!("{what} of a fault is one trigger: {stray}"));
    }
    when.finish();
    match (has_after, has_point) {
        (true, _) => after.map(|after| WantedWhen::After(after.value)),
        (false, true) => Some(WantedWhen::Point {
            client: event.client?,
            point: point?.value,
            grant: grant.map_or(1, |grant| grant.value),
        }),
        (false, false) => event.whole().map(WantedWhen::Event),
    }
}

/// A client and what it completes, each as far as it could be read.
struct PartialEvent {
    client: Option<String>,
    completion: Option<(String, String)>,
}

impl PartialEvent {
    fn whole(self) -> Option<WantedEvent> {
        let (f, outcome) = self.completion?;
        Some(WantedEvent {
            client: self.client?,
            f,
            outcome,
        })
    }
}

/// Reads `client` and a function; complains if there is no function where one is `needed`, or more than one.
fn read_event(table: &mut Table<'_>, surroundings: &Surroundings, needed: bool) -> PartialEvent {
    let client = table.text("client");
    let client = if table.has("after") {
        client
    } else {
        table.needs("client", "name the client, like `client = \"c2\"`", client)
    };
    let client = client.filter(|client| check_client(table, client, surroundings));
    let functions = table.all_of(FUNCTIONS);
    if let [_, second, ..] = functions.as_slice() {
        table.complain(
            &second.at,
            format!("`{}` is a second function: one is waited for", second.value),
        );
    }
    let completion = functions.first().and_then(|function| {
        let outcome = table.name(function.value, "outcome", OUTCOMES)?;
        Some((function.value.to_owned(), outcome.value))
    });
    if needed && functions.is_empty() && !table.has_strangers() {
        let message = format!(
            "{} waits for nothing: add what the client completes, like `write = \"ok\"`",
            table.what()
        );
        table.complain(&table.at, message);
    }
    PartialEvent {
        client: client.map(|client| client.value),
        completion,
    }
}

fn read_until(
    table: &mut Table<'_>,
    fault: &dyn Fault,
    on: Option<&Found<String>>,
    surroundings: &Surroundings,
) -> Option<WantedUntil> {
    let example = "{ lasts = \"ttl + 200ms\" } or { event = { client = \"c2\", write = \"ok\" } }";
    let until = table.table("until", "`until`", example);
    let name = fault.name();
    let Some(mut until) = until else {
        if table.has("until") {
            return None;
        }
        if fault.lasting() == Lasting::Bounded {
            let until = format!("a `{name}` must end before the run can; write it like {example}");
            table.needs::<()>("until", &until, None)?;
        }
        return Some(WantedUntil::default());
    };
    if fault.lasting() == Lasting::Moment {
        let message = format!("a `{name}` is over as soon as it has happened: it takes no `until`");
        until.complain(&until.at, message);
        return None;
    }
    let lasts = until.length("lasts", surroundings.ttl_ms, 1);
    let event = read_until_event(&mut until, "event", fault, on, surroundings);
    let takeover = read_until_event(&mut until, "takeover", fault, on, surroundings);
    let at_most = until.length("at_most", surroundings.ttl_ms, 1);
    check_until(
        &until,
        lasts.as_ref(),
        at_most.as_ref(),
        surroundings.ttl_ms,
    );
    until.finish();
    let waits = event.is_some() || takeover.is_some();
    Some(WantedUntil {
        lasts: lasts.map(|found| found.value),
        event,
        takeover,
        at_most: at_most
            .map(|found| found.value)
            .or(waits.then_some(AT_MOST)),
    })
}

fn read_until_event(
    until: &mut Table<'_>,
    key: &str,
    fault: &dyn Fault,
    on: Option<&Found<String>>,
    surroundings: &Surroundings,
) -> Option<WantedEvent> {
    let example = "{ client = \"c2\", write = \"ok\" }";
    let mut table = until.table(key, format!("`{key}`"), example)?;
    let event = read_event(&mut table, surroundings, true).whole();
    if let Some(event) = &event
        && fault.stops_its_client()
        && on.is_some_and(|on| on.value == event.client)
    {
        let message = format!(
            "`{}` keeps `{}` from completing anything: wait for another client",
            fault.name(),
            event.client
        );
        table.complain(&table.at, message);
    }
    table.finish();
    event
}

/// Complains about an `until` whose parts do not fit together.
fn check_until(
    until: &Table<'_>,
    lasts: Option<&Found<Length>>,
    at_most: Option<&Found<Length>>,
    ttl_ms: u64,
) {
    let waits = until.has("event") || until.has("takeover");
    if until.has("event") && until.has("takeover") {
        until.complain(&until.at, "`event` and `takeover` exclude each other");
    }
    if until.has("takeover") && !until.has("lasts") {
        let message =
            "`takeover` needs `lasts` beside it, for locks that pass to nobody while they are held";
        until.complain(&until.at, message);
    }
    if !waits && !until.has("lasts") && !until.has_strangers() {
        until.complain(&until.at, "`until` names no end: add `lasts` or `event`");
    }
    if let (Some(lasts), Some(at_most)) = (lasts, at_most)
        && at_most.value.ms(ttl_ms) < lasts.value.ms(ttl_ms)
    {
        let message = format!(
            "`at_most` ({}) is less than `lasts` ({})",
            at_most.value, lasts.value
        );
        until.complain(&at_most.at, message);
    }
}

/// The parameters of a fault stand beside its other keys or in `with`.
fn read_parameters(
    table: &mut Table<'_>,
    fault: &dyn Fault,
    on: Option<&Found<String>>,
    surroundings: &Surroundings,
) -> Option<Vec<(Parameter, Given)>> {
    let mut with = table.table(
        "with",
        format!("`with` of `{}`", fault.name()),
        "{ step = \"+30s\" }",
    );
    let mut given = Vec::new();
    let mut complete = true;
    for parameter in fault.parameters() {
        let name = parameter.name;
        let place = match &mut with {
            Some(with) if with.has(name) => with,
            _ => &mut *table,
        };
        match read_parameter(place, parameter, on, surroundings) {
            Some(value) => given.push((*parameter, value)),
            None if place.has(name) => complete = false,
            None if parameter.needed => {
                place.needs::<()>(name, parameter.summary, None);
                complete = false;
            }
            None => {}
        }
    }
    if let Some(mut with) = with {
        let names: Vec<&str> = fault
            .parameters()
            .iter()
            .map(|parameter| parameter.name)
            .collect();
        let beside = table.all_of(&names);
        for found in with.all_of(&names) {
            if beside.iter().any(|beside| beside.value == found.value) {
                with.complain(
                    &found.at,
                    format!("`{}` stands twice in this fault", found.value),
                );
            }
        }
        with.finish();
    }
    complete.then_some(given)
}

fn read_parameter(
    table: &mut Table<'_>,
    parameter: &Parameter,
    on: Option<&Found<String>>,
    surroundings: &Surroundings,
) -> Option<Given> {
    let (name, ttl_ms) = (parameter.name, surroundings.ttl_ms);
    match parameter.takes {
        Takes::Length => table
            .length(name, ttl_ms, 1)
            .map(|found| Given::Length(found.value)),
        Takes::Step => {
            let found = table.signed_length(name, ttl_ms)?;
            if found.value.ms(ttl_ms) == 0 {
                table.complain(&found.at, format!("`{name}` is a step of nothing"));
                return None;
            }
            Some(Given::Length(found.value))
        }
        Takes::Port => {
            let found = table.whole(name, 1..=u64::from(u16::MAX))?;
            u16::try_from(found.value).ok().map(Given::Port)
        }
        Takes::Host => read_other_host(table, name, on, surroundings),
    }
}

fn read_other_host(
    table: &mut Table<'_>,
    name: &str,
    on: Option<&Found<String>>,
    surroundings: &Surroundings,
) -> Option<Given> {
    let host = table.text(name)?;
    if host.value == SERVERS {
        return Some(Given::Host(host.value));
    }
    check_host(table, &host, surroundings)?;
    let complain = |at: &Range<usize>, message: String| {
        table.complain(at, message);
        None
    };
    if host.value == LEADER {
        return complain(
            &host.at,
            format!("`{name}` must be one host for the whole run, not `{LEADER}`"),
        );
    }
    if on.is_some_and(|on| on.value == host.value) {
        return complain(&host.at, format!("`{name}` must be another host than `on`"));
    }
    Some(Given::Host(host.value))
}
