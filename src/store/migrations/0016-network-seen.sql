-- Where sandboxes wanted to go that no rule allows: the host as it was named, or its address. At most so many rows for each sandbox.
CREATE TABLE network_seen (
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    host TEXT NOT NULL,
    port BIGINT NOT NULL,
    protocol TEXT NOT NULL,
    is_refused BIGINT NOT NULL CHECK (is_refused IN (0, 1)),
    rule TEXT,
    attempts BIGINT NOT NULL,
    first_at BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    PRIMARY KEY (sandbox_id, host, port, protocol, is_refused)
);
