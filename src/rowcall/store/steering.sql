-- What several processes on one store share while they run.

-- Rates and rests of an API, by GCRA: debt is the theoretical arrival time. Seconds of the host's monotonic clock,
-- which all its processes share and which no change of the time of day moves; at says when that was written, since the
-- clock begins anew with each start of the machine.
CREATE TABLE limits (
    target TEXT NOT NULL,                           -- scheme, host and port
    what   TEXT NOT NULL,                           -- requests, tokens, input, output; rest: nothing leaves before debt
    per    REAL NOT NULL,                           -- the unit, in seconds
    debt   REAL NOT NULL,
    at     REAL NOT NULL,
    PRIMARY KEY (target, what, per)
) STRICT, WITHOUT ROWID;

-- What a person set for live runs.
CREATE TABLE settings (
    kind  TEXT NOT NULL,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    keep  INTEGER NOT NULL,                         -- whether runs that begin later follow it too
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
