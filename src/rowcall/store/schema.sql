-- The tables of a rowcall store. Times are ISO-8601 UTC text with milliseconds, all of one width.
-- Plain SQL on jobs is welcome: count by status, list errors, set rows back to pending.

CREATE TABLE jobs (
    rowid            INTEGER PRIMARY KEY,           -- the order of the input
    id               TEXT NOT NULL,                 -- the key, unique within its kind
    kind             TEXT NOT NULL,
    batch            TEXT NOT NULL,
    request          INTEGER NOT NULL,              -- requests.id
    input_hash       TEXT NOT NULL,                 -- of the values that the request uses
    status           TEXT NOT NULL DEFAULT 'pending'
                     CHECK (status IN ('pending', 'running', 'done', 'failed', 'cancelled')),
    attempts         INTEGER NOT NULL DEFAULT 0,    -- calls charged to it; back to 0 with an edit or a retry by hand
    crashes          INTEGER NOT NULL DEFAULT 0,    -- processes that died with it in hand, since the last settle
    epoch            INTEGER NOT NULL DEFAULT 0,    -- the number of its latest claim; only ever goes up
    session          INTEGER,                       -- who runs it
    pass             INTEGER,                       -- the reading of the input that brought it; NULL: any run may take it
    error            TEXT CHECK (length(error) <= 500),
    reason           TEXT,
    run_after        TEXT,                          -- NULL: never called; else not to be called before
    wait_ms          INTEGER,                       -- how long that wait was when it began
    created_at       TEXT NOT NULL,
    updated_at       TEXT NOT NULL,
    http_status      INTEGER,                       -- this and what follows: of its last call
    request_id       TEXT,
    latency_ms       REAL,
    input_tokens     INTEGER,
    output_tokens    INTEGER,
    cached_tokens    INTEGER,
    reasoning_tokens INTEGER,
    cost             INTEGER,                       -- nano-dollars (10^-9 $); NULL: no price known; so everywhere
    UNIQUE (kind, id)
) STRICT;

-- What is claimable: never-called rows in input order, waiting ones by the end of their wait.
CREATE INDEX jobs_pending ON jobs (kind, pass, run_after) WHERE status = 'pending';
CREATE INDEX jobs_running ON jobs (session, crashes) WHERE status = 'running';
CREATE INDEX jobs_reason ON jobs (kind, reason) WHERE reason IS NOT NULL OR status = 'failed';

-- A status set back by hand: the row is claimable at once by any run (where its payload was pruned, by the next run that
-- reads its record again), and no late answer to an old claim takes it.
-- rowcall's own ways back to pending raise the epoch themselves.
CREATE TRIGGER jobs_set_back AFTER UPDATE OF status ON jobs
WHEN NEW.status = 'pending' AND OLD.status IN ('done', 'failed', 'cancelled') AND NEW.epoch = OLD.epoch
BEGIN
    UPDATE jobs SET run_after = NULL, wait_ms = NULL, error = NULL, reason = NULL, session = NULL, crashes = 0,
        epoch = epoch + 1, pass = CASE WHEN NEW.rowid IN (SELECT job FROM payloads) THEN NULL ELSE 0 END
    WHERE rowid = NEW.rowid;
END;

-- What all records of a kind send, without the record.
CREATE TABLE requests (
    id         INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL,
    hash       TEXT NOT NULL,
    adopted_as INTEGER,                             -- answers made with it count for that one too
    used       INTEGER NOT NULL,                    -- a counter: the highest is the latest
    UNIQUE (kind, hash)
) STRICT;

CREATE TABLE payloads (
    job    INTEGER PRIMARY KEY,
    record TEXT NOT NULL                            -- JSON
) STRICT;

-- Every answer that was paid for. A job's current one is the newest, not superseded, with its request and input_hash.
CREATE TABLE results (
    id               INTEGER PRIMARY KEY,
    job              INTEGER NOT NULL,
    epoch            INTEGER NOT NULL,
    request          INTEGER NOT NULL,
    input_hash       TEXT NOT NULL,
    superseded       INTEGER NOT NULL DEFAULT 0,
    batch            TEXT NOT NULL,
    at               TEXT NOT NULL,
    input_tokens     INTEGER NOT NULL,
    output_tokens    INTEGER NOT NULL,
    cached_tokens    INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    cost             INTEGER,
    value            TEXT NOT NULL,                 -- JSON
    origin           INTEGER,                       -- results.id of the twin's answer that was given on; NULL: called for
    UNIQUE (job, epoch)
) STRICT;

-- Calls that gave no answer.
CREATE TABLE tries (
    job              INTEGER NOT NULL,
    epoch            INTEGER NOT NULL,
    at               TEXT NOT NULL,
    class            TEXT NOT NULL,
    reason           TEXT NOT NULL,
    message          TEXT NOT NULL,
    charged          INTEGER NOT NULL,
    http_status      INTEGER,
    request_id       TEXT,
    latency_ms       REAL,
    input_tokens     INTEGER NOT NULL,
    output_tokens    INTEGER NOT NULL,
    cached_tokens    INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    cost             INTEGER,
    body             TEXT,
    PRIMARY KEY (job, epoch)
) STRICT, WITHOUT ROWID;

-- What was handed out in a batch file, as it was then: an answer counts only while that is still what is asked.
CREATE TABLE handed_out (
    job        INTEGER NOT NULL,
    request    INTEGER NOT NULL,
    input_hash TEXT NOT NULL,
    at         TEXT NOT NULL,
    answered   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job, request, input_hash)
) STRICT, WITHOUT ROWID;

-- What a kind has used in all, failed and superseded calls too: kept as it grows, so that nobody has to add it up.
CREATE TABLE totals (
    kind             TEXT PRIMARY KEY,
    attempts         INTEGER NOT NULL DEFAULT 0,
    input_tokens     INTEGER NOT NULL DEFAULT 0,
    output_tokens    INTEGER NOT NULL DEFAULT 0,
    cached_tokens    INTEGER NOT NULL DEFAULT 0,
    reasoning_tokens INTEGER NOT NULL DEFAULT 0,
    cost             INTEGER
) STRICT;

-- Running processes. A dead one's lock file (<database>-session-<id>) is free, or its beat stands still.
CREATE TABLE sessions (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,   -- never used again
    host       TEXT NOT NULL,
    pid        INTEGER NOT NULL,
    beat       INTEGER NOT NULL DEFAULT 0,
    started_at TEXT NOT NULL,
    beat_at    TEXT NOT NULL
) STRICT;

CREATE TABLE runs (
    id          INTEGER PRIMARY KEY,
    kind        TEXT NOT NULL,
    pass        INTEGER NOT NULL,
    session     INTEGER NOT NULL,
    started_at  TEXT NOT NULL,
    ended_at    TEXT,
    stop_reason TEXT,
    settings    TEXT NOT NULL,                      -- JSON, no secrets
    totals      TEXT NOT NULL DEFAULT '{}'          -- JSON
) STRICT;

CREATE INDEX runs_kind ON runs (kind);

-- For people: a job, its record and its current answer.
CREATE VIEW records AS
SELECT jobs.*,
    payloads.record,
    CASE WHEN jobs.status = 'done' THEN (
        SELECT value FROM results
        WHERE job = jobs.rowid AND request = jobs.request AND input_hash = jobs.input_hash AND superseded = 0
        ORDER BY epoch DESC LIMIT 1
    ) END AS answer
FROM jobs LEFT JOIN payloads ON payloads.job = jobs.rowid;
