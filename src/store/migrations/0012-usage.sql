-- What was used, by the day (UTC), sandbox, key ('' for none) and labels; outlives the sandboxes. Rows that are old enough are merged: their sandbox is '' then.
CREATE TABLE usage_days (
    organisation TEXT NOT NULL,
    day_at BIGINT NOT NULL,
    sandbox_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    labels TEXT NOT NULL,
    member TEXT NOT NULL,
    runs BIGINT NOT NULL,
    cpu_ms BIGINT NOT NULL,
    memory_mib_ms BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    egress_bytes BIGINT NOT NULL,
    PRIMARY KEY (organisation, day_at, sandbox_id, key_id, labels, member)
);
