-- The first tables. One text for SQLite and PostgreSQL: TEXT, BIGINT, BYTEA; times are milliseconds since 1970, 0 for never; flags are
-- 0 or 1; JSON is TEXT nobody here reads; ids are ours.

CREATE TABLE organisations (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Only hashes: a key itself is shown once and never kept.
CREATE TABLE keys (
    id TEXT NOT NULL PRIMARY KEY,
    hash BYTEA NOT NULL UNIQUE CHECK (length(hash) = 32),
    prefix TEXT NOT NULL,
    name TEXT,
    organisation TEXT NOT NULL REFERENCES organisations (id),
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL
);
CREATE INDEX keys_by_organisation ON keys (organisation, created_at, id);

-- Public keys people log in with.
CREATE TABLE ssh_keys (
    organisation TEXT NOT NULL REFERENCES organisations (id),
    fingerprint TEXT NOT NULL,
    type TEXT NOT NULL,
    comment TEXT NOT NULL,
    public_key TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organisation, fingerprint)
);
CREATE INDEX ssh_keys_by_fingerprint ON ssh_keys (fingerprint);

CREATE TABLE sandboxes (
    id TEXT NOT NULL PRIMARY KEY,
    organisation TEXT NOT NULL,
    tenant TEXT,
    scope TEXT,
    project TEXT,
    key_id TEXT,
    name TEXT,
    description TEXT,
    metadata TEXT,
    scopes TEXT,
    dependencies TEXT,
    packages TEXT,
    asked TEXT,
    mode TEXT NOT NULL CHECK (mode IN ('one_shot', 'interactive')),
    runtime TEXT NOT NULL,
    snapshot TEXT,
    command TEXT,
    execution_id TEXT,
    memory_bytes BIGINT NOT NULL,
    cpu_millicores BIGINT NOT NULL,
    disk_bytes BIGINT NOT NULL,
    max_processes BIGINT NOT NULL,
    env TEXT NOT NULL,
    box_user TEXT,
    home TEXT,
    working_directory TEXT,
    has_network BIGINT NOT NULL CHECK (has_network IN (0, 1)),
    port BIGINT NOT NULL,
    idle_timeout_ms BIGINT NOT NULL,
    execution_timeout_ms BIGINT NOT NULL,
    paused_timeout_ms BIGINT NOT NULL,
    max_executions BIGINT NOT NULL,
    on_idle TEXT NOT NULL CHECK (on_idle IN ('end', 'drop_box', 'pause')),
    state TEXT NOT NULL CHECK (state IN ('creating', 'idle', 'running', 'pausing', 'paused', 'resuming', 'stopping',
                                         'ended', 'failed', 'deleted')),
    reason TEXT,
    error TEXT,
    exit_code BIGINT NOT NULL,
    box_slot BIGINT NOT NULL,
    scratch TEXT,
    active_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    deadline_at BIGINT NOT NULL,
    execution_count BIGINT NOT NULL,
    process_count BIGINT NOT NULL,
    cpu_ms BIGINT NOT NULL,
    memory_mib_ms BIGINT NOT NULL,
    egress_bytes BIGINT NOT NULL,
    counted_cpu_ms BIGINT NOT NULL,
    counted_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    paused_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    deleted_at BIGINT NOT NULL,
    CHECK ((ended_at <> 0) = (state IN ('ended', 'failed', 'deleted'))),
    CHECK ((deleted_at <> 0) = (state = 'deleted'))
);
CREATE INDEX sandboxes_by_organisation ON sandboxes (organisation, deleted_at, created_at, id);
CREATE INDEX sandboxes_alive ON sandboxes (organisation, created_at, id) WHERE ended_at = 0;
CREATE INDEX sandboxes_ended ON sandboxes (ended_at) WHERE ended_at <> 0;

-- Executions and jobs; `number` is the process's number in its box.
CREATE TABLE executions (
    id TEXT NOT NULL PRIMARY KEY,
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('execution', 'job')),
    number BIGINT NOT NULL,
    organisation TEXT NOT NULL,
    tenant TEXT,
    scope TEXT,
    project TEXT,
    command TEXT NOT NULL,
    env TEXT,
    box_user TEXT,
    working_directory TEXT,
    metadata TEXT,
    asked TEXT,
    timeout_ms BIGINT NOT NULL,
    output_cap_bytes BIGINT NOT NULL,
    has_timestamps BIGINT NOT NULL CHECK (has_timestamps IN (0, 1)),
    stdin_stream TEXT,
    stdout_stream TEXT,
    stderr_stream TEXT,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'failed', 'timed_out', 'cancelled')),
    cause TEXT NOT NULL CHECK (cause IN ('none', 'exit', 'timeout', 'memory', 'not_found', 'not_run', 'box_ended',
                                         'cancelled')),
    exit_code BIGINT NOT NULL,
    signal BIGINT NOT NULL,
    error TEXT,
    stop_at BIGINT NOT NULL,
    stop_reason TEXT,
    stdout_bytes BIGINT NOT NULL,
    stderr_bytes BIGINT NOT NULL,
    is_truncated BIGINT NOT NULL CHECK (is_truncated IN (0, 1)),
    cpu_user_us BIGINT NOT NULL,
    cpu_system_us BIGINT NOT NULL,
    max_rss_bytes BIGINT NOT NULL,
    duration_us BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    UNIQUE (sandbox_id, number),
    CHECK ((ended_at = 0) = (state IN ('queued', 'running')))
);
CREATE INDEX executions_open ON executions (created_at, id) WHERE ended_at = 0;
CREATE INDEX executions_by_owner ON executions (organisation, created_at);

-- Bytes are in the spool, in the file of this name.
CREATE TABLE streams (
    id TEXT NOT NULL PRIMARY KEY,
    sandbox_id TEXT REFERENCES sandboxes (id),
    execution_id TEXT,
    organisation TEXT NOT NULL,
    tenant TEXT,
    scope TEXT,
    project TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('stdin', 'stdout', 'stderr', 'combined', 'user')),
    name TEXT NOT NULL,
    metadata TEXT,
    headers TEXT,
    file TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'complete')),
    size_bytes BIGINT NOT NULL,
    is_truncated BIGINT NOT NULL CHECK (is_truncated IN (0, 1)),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    completed_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    CHECK ((completed_at = 0) = (state = 'open'))
);
CREATE INDEX streams_by_organisation ON streams (organisation, created_at, id);
CREATE INDEX streams_by_sandbox ON streams (sandbox_id) WHERE sandbox_id IS NOT NULL;
CREATE INDEX streams_expiring ON streams (expires_at, id) WHERE expires_at <> 0;

-- Metadata that lists can be filtered by.
CREATE TABLE stream_labels (
    stream_id TEXT NOT NULL REFERENCES streams (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (stream_id, name)
);

CREATE TABLE events (
    id TEXT NOT NULL,
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    organisation TEXT NOT NULL,
    tenant TEXT,
    scope TEXT,
    project TEXT,
    type TEXT NOT NULL,
    reason TEXT,
    detail TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (sandbox_id, number)
);

-- What was used, by the minute; outlives the sandboxes that used it.
CREATE TABLE usage (
    organisation TEXT NOT NULL,
    project TEXT NOT NULL,
    minute_at BIGINT NOT NULL,
    executions BIGINT NOT NULL,
    cpu_ms BIGINT NOT NULL,
    memory_mib_ms BIGINT NOT NULL,
    egress_bytes BIGINT NOT NULL,
    PRIMARY KEY (organisation, project, minute_at)
);

-- Requests that must happen once, however often they are sent.
CREATE TABLE idempotency (
    organisation TEXT NOT NULL,
    realm TEXT NOT NULL,
    key TEXT NOT NULL,
    request_hash BYTEA NOT NULL CHECK (length(request_hash) = 32),
    state TEXT NOT NULL CHECK (state IN ('pending', 'done')),
    subject_id TEXT,
    answer TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (organisation, realm, key)
);
CREATE INDEX idempotency_by_age ON idempotency (created_at);
