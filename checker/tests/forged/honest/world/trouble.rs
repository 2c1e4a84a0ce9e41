//! The trouble that a run has once, while its first client is about to write.

use serde_json::{Value, json};

use super::{Call, Change, MS, Trouble, World};

impl World {
    /// The trouble comes, while the first client is at its point.
    pub(super) fn strike(&mut self, at: u64) {
        let lasts = self.setup.lasts_ms() * MS;
        let inject = at + MS / 100;
        let heal = inject + lasts + MS;
        self.over = Some(heal + MS);
        match self.setup.trouble {
            Trouble::Stall => {
                let process = self.clients[0].process();
                self.stand_still(&process, at, lasts);
                return self.invoke(0, Call::Write, at + lasts + MS / 10);
            }
            Trouble::StorageStall => {
                self.stand_still("storage", at, lasts);
                self.still = (at, at + lasts);
                return self.invoke(0, Call::Write, at + MS / 10);
            }
            Trouble::CutOff => self.cut_off = (inject + MS / 2, heal + MS / 2),
            Trouble::StoragePause => self.still = (inject + MS / 2, heal + MS / 2),
            _ => {}
        }
        self.changes.extend([
            (inject + MS / 2, Change::Strike),
            (heal + MS / 2, Change::Heal),
        ]);
        self.record_fault(inject, heal);
        self.pass_point(at, inject + MS, heal);
    }

    fn stand_still(&mut self, process: &str, from: u64, lasts: u64) {
        let op = self.clients[0].op();
        let stalled = json!({"stalled_ns": lasts});
        self.push(from + lasts, process, op, "info", "stall", stalled);
    }

    fn record_fault(&mut self, inject: u64, heal: u64) {
        let fields = json!({
            "step": 0, "fault": self.setup.fault(), "on": [self.setup.on()], "engine": "simulated",
            "does": self.setup.does(),
        });
        let with = |fields: &Value, evidence: Value| {
            let mut fields = fields.clone();
            fields["evidence"] = evidence;
            fields
        };
        let mut evidence = self.setup.evidence();
        if self.setup.tells_when {
            evidence["took_hold_ns"] = (inject + MS / 2).into();
        }
        let took_hold = with(&fields, evidence);
        let healed = match self.setup.tells_of_heals {
            true => fields.clone(),
            false => json!({"step": 0}),
        };
        let over = with(&healed, json!({"over": true}));
        self.push(inject, "nemesis", 1, "invoke", "inject", fields);
        self.push(inject + MS * 4 / 5, "nemesis", 1, "ok", "inject", took_hold);
        self.push(heal, "nemesis", 2, "invoke", "heal", healed);
        self.push(heal + MS * 4 / 5, "nemesis", 2, "ok", "heal", over);
    }

    /// The client reaches its point, and leaves it as the trouble lets it.
    fn pass_point(&mut self, at: u64, injected: u64, heal: u64) {
        let (grant, process) = (self.grant_of(0).op, self.clients[0].process());
        let op = self.clients[0].op();
        let fields = json!({"grant": grant, "point": "before-write", "nth": self.setup.nth});
        self.push(at, &process, op, "invoke", "point", fields.clone());
        let goes_on = match self.setup.trouble {
            Trouble::Crash => return self.die(grant, injected, heal),
            Trouble::ClientRestart => return self.die(grant, injected, injected),
            Trouble::Delay | Trouble::CutOff | Trouble::StoragePause => injected + MS / 10,
            Trouble::ClockStep | Trouble::Restart => heal + 60 * MS,
            _ => heal + MS,
        };
        self.push(goes_on, &process, op, "ok", "point", fields);
        self.invoke(0, Call::Write, goes_on + MS / 20);
        if self.setup.trouble == Trouble::Delay {
            self.clients[0].reaches = heal + MS / 2;
        }
    }

    /// The client is killed, and lives again some time after it was started.
    fn die(&mut self, grant: u64, injected: u64, started: u64) {
        self.crashed = grant;
        let process = self.clients[0].process();
        if self.setup.tells_of_kills {
            let op = self.clients[0].op();
            self.push(
                injected - MS / 2,
                &process,
                op,
                "info",
                "exit",
                json!({"error": "signal 9"}),
            );
        }
        self.clients[0].life += 1;
        self.clients[0].grant = None;
        self.invoke(0, Call::Acquire, started + 5 * MS);
    }
}
