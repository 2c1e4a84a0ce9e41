//! Reads one `[[fault]]` of a scenario.

use containers::topologies::Topology;

use super::length::Length;
use super::table::{Found, Problems, Table};
use super::{Given, WantedEvent, WantedFault, WantedUntil, WantedWhen};
use crate::faults::{self, FAULTS, Fault, Parameter, Takes};
use crate::validation::{Cast, ranges, sense};
use crate::words::{FUNCTIONS, ONLY, OUTCOMES, POINTS};

/// How much longer than `lasts` an `until` that waits for an event may wait, where it does not say.
const PATIENCE: Length = Length::from_ttl_and_ms(10, 5_000);

/// What the rest of the scenario has to say to a fault.
pub(super) struct Surroundings {
    pub cast: Cast,
    pub ttl_ms: u64,
    /// The topologies that the scenario names, or all.
    pub topologies: Vec<&'static Topology>,
    /// Whether it names none.
    pub all_topologies: bool,
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
    let wanted = WantedFault {
        fault,
        place: problems.place(at.start),
        on: on.value.clone(),
        when,
        until: until?,
        only_kept_alive: only.is_some(),
        with: with?,
    };
    problems.judge(&at, wanted.sketch().trigger());
    problems.judge(&on.at, surroundings.suits(&wanted));
    Some(Found { value: wanted, at })
}

impl Surroundings {
    /// Whether a fault makes sense on every topology that the scenario names, or on any where it names none.
    fn suits(&self, fault: &WantedFault) -> Result<(), String> {
        let not_here = |topology: &&Topology| {
            let reason = fault.sketch().not_here(topology)?;
            Some(format!("on topology `{}` {reason}", topology.name))
        };
        let reasons: Vec<String> = self.topologies.iter().filter_map(not_here).collect();
        let everywhere = reasons.len() == self.topologies.len();
        match reasons.into_iter().next() {
            Some(reason) if everywhere || !self.all_topologies => Err(reason),
            _ => Ok(()),
        }
    }
}

fn read_on(
    table: &mut Table<'_>,
    fault: &dyn Fault,
    surroundings: &Surroundings,
) -> Option<Found<String>> {
    let on = table.text("on");
    let on = table.needs("on", "name the host it strikes, like `on = \"c1\"`", on)?;
    let role = surroundings.cast.host(&on.value);
    let strikes = role.and_then(|role| sense::strikes(fault, &on.value, role));
    table.judge(&on.at, strikes).map(|()| on)
}

fn read_when(table: &mut Table<'_>, surroundings: &Surroundings) -> Option<WantedWhen> {
    let example = "{ client = \"c1\", point = \"before-write\" }, { after = \"200ms\" } or \
                   { client = \"c2\", write = \"ok\" }";
    let what = "`when`";
    let when = table.table("when", what, example);
    let mut when = table.needs("when", &format!("write it like {example}"), when)?;
    let after = when.length("after", surroundings.ttl_ms, &ranges::AFTER_MS);
    let grant = when.whole("grant", &ranges::GRANT);
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
    let client = client.filter(|client| {
        let known = surroundings.cast.client(&client.value);
        table.judge(&client.at, known).is_some()
    });
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
    let end = sense::end(fault, until.is_some());
    let Some(mut until) = until else {
        if let Err(needed) = end {
            table.needs::<()>("until", &format!("{needed}; write it like {example}"), None)?;
        }
        return (!table.has("until")).then(WantedUntil::default);
    };
    until.judge(&until.at, end)?;
    let lasts = until.length("lasts", surroundings.ttl_ms, &ranges::LASTS_MS);
    let event = read_until_event(&mut until, "event", fault, on, surroundings);
    let takeover = read_until_event(&mut until, "takeover", fault, on, surroundings);
    let at_most = until.length("at_most", surroundings.ttl_ms, &ranges::LASTS_MS);
    check_until(
        &until,
        lasts.as_ref(),
        at_most.as_ref(),
        surroundings.ttl_ms,
    );
    until.finish();
    let waits = event.is_some() || takeover.is_some();
    let least = lasts
        .as_ref()
        .map_or(Length::default(), |found| found.value);
    let longest = || least.plus(PATIENCE, 1);
    Some(WantedUntil {
        lasts: lasts.map(|found| found.value),
        event,
        takeover,
        at_most: at_most
            .map(|found| found.value)
            .or_else(|| waits.then(longest).flatten()),
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
    if let (Some(event), Some(on)) = (&event, on) {
        let waits = sense::waits_for(fault, &on.value, &event.client);
        table.judge(&table.at, waits);
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
            .length(name, ttl_ms, &ranges::PARAMETER_MS)
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
            let found = table.whole(name, &ranges::PORT)?;
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
    let on = on.map(|on| on.value.as_str());
    let other = sense::other_host(&surroundings.cast, name, &host.value, on);
    table.judge(&host.at, other)?;
    Some(Given::Host(host.value))
}
