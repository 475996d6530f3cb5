-- Who is told of events over HTTP, and how far that is (cursor). The secret is what deliveries are signed with.
CREATE TABLE webhooks (
    id TEXT NOT NULL PRIMARY KEY,
    node TEXT NOT NULL,
    organisation TEXT NOT NULL,
    tenant TEXT,
    scope TEXT,
    project TEXT,
    member TEXT,
    key_id TEXT,
    name TEXT,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    kinds TEXT NOT NULL,
    sandbox_id TEXT,
    is_enabled BIGINT NOT NULL CHECK (is_enabled IN (0, 1)),
    disabled_reason TEXT,
    event_cursor BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    failing_since BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    delivery_count BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX webhooks_by_organisation ON webhooks (organisation, created_at, id);

-- The last deliveries of each, one row for each event, whatever number of attempts it took.
CREATE TABLE webhook_deliveries (
    id TEXT NOT NULL PRIMARY KEY,
    webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    event_serial BIGINT NOT NULL,
    event_kind TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('failing', 'delivered', 'failed')),
    status BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    error TEXT,
    duration_ms BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (webhook_id, number)
);
