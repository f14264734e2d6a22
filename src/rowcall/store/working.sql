-- What lets processes without an input work on what others brought in.

-- What a run is for: run reads and works, enqueue only reads, work only works.
ALTER TABLE runs ADD COLUMN role TEXT NOT NULL DEFAULT 'run';

-- How the calls of a kind are made: the config that brought its records in, and the files it refers to; no secrets.
CREATE TABLE recipes (
    kind   TEXT PRIMARY KEY,
    at     TEXT NOT NULL,
    recipe TEXT NOT NULL                            -- JSON
) STRICT, WITHOUT ROWID;
