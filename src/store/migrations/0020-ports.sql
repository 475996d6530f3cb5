-- Ports of sandboxes that are reached from outside: under a name of their own, and by a port of this machine (0: by none). Of a token only
-- its hash is kept. A row stays for a while after its port was given up (released_at), so that the host's port is not handed out at once.
CREATE TABLE exposed_ports (
    id TEXT NOT NULL PRIMARY KEY,
    node TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    port BIGINT NOT NULL CHECK (port BETWEEN 0 AND 65535),
    protocol TEXT NOT NULL CHECK (protocol IN ('http', 'tcp')),
    host_port BIGINT NOT NULL CHECK (host_port BETWEEN 0 AND 65535),
    is_private BIGINT NOT NULL CHECK (is_private IN (0, 1)),
    token_hash BYTEA NOT NULL CHECK (length(token_hash) = 32),
    token_expires_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    released_at BIGINT NOT NULL
);
CREATE INDEX exposed_ports_by_node ON exposed_ports (node, released_at);
