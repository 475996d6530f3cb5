-- What sandboxes are kept as: snapshots, checkpoints, and the layers both are made of.

CREATE TABLE snapshots (
    id TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('building', 'ready', 'failed', 'deleted')),
    organisation TEXT NOT NULL,
    tenant TEXT,
    scope TEXT,
    project TEXT,
    key_id TEXT,
    name TEXT NOT NULL,
    tag TEXT,
    description TEXT,
    message TEXT,
    is_public BIGINT NOT NULL CHECK (is_public IN (0, 1)),
    parent_id TEXT,
    sandbox_id TEXT,
    runtime TEXT NOT NULL,
    layers TEXT NOT NULL,
    env TEXT NOT NULL,
    metadata TEXT,
    git TEXT,
    content_hash TEXT,
    upload_secret TEXT,
    size_bytes BIGINT NOT NULL,
    file_count BIGINT NOT NULL,
    error TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT NOT NULL,
    CHECK ((deleted_at <> 0) = (state = 'deleted'))
);
CREATE INDEX snapshots_by_organisation ON snapshots (organisation, created_at, id);
CREATE INDEX snapshots_by_name ON snapshots (organisation, name, tag, created_at) WHERE deleted_at = 0;
CREATE INDEX snapshots_public ON snapshots (created_at, id) WHERE is_public = 1;

CREATE TABLE checkpoints (
    id TEXT NOT NULL PRIMARY KEY,
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    parent TEXT NOT NULL,
    layer TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (sandbox_id, name)
);

-- Who needs a layer: a snapshot, a checkpoint or a sandbox, by id. One that nobody needs goes. One that was made of others, for
-- stacks to be shorter, knows their names.
CREATE TABLE layers (
    name TEXT NOT NULL PRIMARY KEY,
    merged_of TEXT,
    size_bytes BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX layers_merged ON layers (merged_of) WHERE merged_of IS NOT NULL;
CREATE TABLE layer_uses (
    layer TEXT NOT NULL REFERENCES layers (name),
    user_id TEXT NOT NULL,
    PRIMARY KEY (layer, user_id)
);
CREATE INDEX layer_uses_by_user ON layer_uses (user_id);

-- What lies under a sandbox's own files, top first; NULL: its runtime alone.
ALTER TABLE sandboxes ADD COLUMN layers TEXT;
