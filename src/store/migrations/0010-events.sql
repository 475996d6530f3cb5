-- Every event has a number of its own among those of all sandboxes (serial), given in the transaction that writes it: so the order of numbers is that of
-- commits. Events stay when their sandbox is forgotten, and some have none: whose they are stands in their own row.
CREATE TABLE events_of_all (
    serial BIGINT NOT NULL PRIMARY KEY,
    id TEXT NOT NULL,
    sandbox_id TEXT,
    number BIGINT NOT NULL,
    organisation TEXT NOT NULL,
    tenant TEXT,
    scope TEXT,
    project TEXT,
    type TEXT NOT NULL,
    reason TEXT,
    detail TEXT,
    created_at BIGINT NOT NULL
);
INSERT INTO events_of_all (serial, id, sandbox_id, number, organisation, tenant, scope, project, type, reason, detail, created_at)
    SELECT row_number() OVER (ORDER BY created_at, sandbox_id, number), id, sandbox_id, number, organisation, tenant, scope, project, type, reason,
           detail, created_at
    FROM events;
DROP TABLE events;
ALTER TABLE events_of_all RENAME TO events;
CREATE UNIQUE INDEX events_by_sandbox ON events (sandbox_id, number) WHERE sandbox_id IS NOT NULL;

-- One row. The last number that was given; the last that may have been forgotten: above it none is missing; and since which start of the machine
-- they are counted without a gap.
CREATE TABLE event_numbers (
    id BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    last BIGINT NOT NULL,
    forgotten BIGINT NOT NULL,
    boot TEXT NOT NULL
);
INSERT INTO event_numbers (id, last, forgotten, boot) SELECT 1, coalesce(max(serial), 0), 0, '' FROM events;
