-- Whose things are inside an organisation: a person or a service by name, as its keys say; NULL: nobody's in particular. Indexes leave those out, so
-- that whoever has one key for everything pays nothing.
ALTER TABLE sandboxes ADD COLUMN member TEXT;
ALTER TABLE executions ADD COLUMN member TEXT;
ALTER TABLE streams ADD COLUMN member TEXT;
ALTER TABLE events ADD COLUMN member TEXT;
ALTER TABLE snapshots ADD COLUMN member TEXT;
CREATE INDEX sandboxes_by_member ON sandboxes (organisation, member, deleted_at, created_at, id) WHERE member IS NOT NULL;
CREATE INDEX sandboxes_alive_by_member ON sandboxes (organisation, member, created_at, id) WHERE member IS NOT NULL AND ended_at = 0;
CREATE INDEX executions_by_member ON executions (organisation, member, created_at) WHERE member IS NOT NULL;
CREATE INDEX streams_by_member ON streams (organisation, member, created_at, id) WHERE member IS NOT NULL;
CREATE INDEX snapshots_by_member ON snapshots (organisation, member, created_at, id) WHERE member IS NOT NULL;

-- By which key a command was run.
ALTER TABLE executions ADD COLUMN key_id TEXT;

-- What a key may do, for whom, and how much of it; 0: no bound. Runtimes are packed strings, NULL: all of them.
ALTER TABLE keys ADD COLUMN member TEXT;
ALTER TABLE keys ADD COLUMN made_by TEXT;
ALTER TABLE keys ADD COLUMN runtimes TEXT;
ALTER TABLE keys ADD COLUMN has_no_network BIGINT NOT NULL DEFAULT 0 CHECK (has_no_network IN (0, 1));
ALTER TABLE keys ADD COLUMN selector TEXT;
ALTER TABLE keys ADD COLUMN max_sandboxes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN max_memory_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN max_cpu_millicores BIGINT NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN max_disk_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN max_runs_per_day BIGINT NOT NULL DEFAULT 0;
-- Of a token: the one sandbox it opens.
ALTER TABLE keys ADD COLUMN sandbox_id TEXT REFERENCES sandboxes (id) ON DELETE CASCADE;
CREATE INDEX keys_by_sandbox ON keys (sandbox_id);
CREATE INDEX keys_by_maker ON keys (made_by) WHERE made_by IS NOT NULL;
-- Keys from before there were scopes do what they did.
UPDATE keys SET scopes = CASE WHEN scopes = 'admin' THEN 'read run manage admin organisation' ELSE 'read run manage organisation' END;

-- The same bounds for all of an organisation together.
ALTER TABLE organisations ADD COLUMN max_sandboxes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE organisations ADD COLUMN max_memory_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE organisations ADD COLUMN max_cpu_millicores BIGINT NOT NULL DEFAULT 0;
ALTER TABLE organisations ADD COLUMN max_disk_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE organisations ADD COLUMN max_runs_per_day BIGINT NOT NULL DEFAULT 0;

-- Counted by member too ('' for none).
DROP TABLE sandbox_counts;
CREATE TABLE sandbox_counts (
    organisation TEXT NOT NULL,
    tenant TEXT NOT NULL,
    scope TEXT NOT NULL,
    project TEXT NOT NULL,
    member TEXT NOT NULL,
    class TEXT NOT NULL,
    n BIGINT NOT NULL,
    PRIMARY KEY (organisation, tenant, scope, project, member, class)
);
INSERT INTO sandbox_counts (organisation, tenant, scope, project, member, class, n)
    SELECT organisation, coalesce(tenant, ''), coalesce(scope, ''), coalesce(project, ''), '',
           CASE WHEN ended_at = 0 THEN 'alive' ELSE state END, count(*)
    FROM sandboxes GROUP BY 1, 2, 3, 4, 5, 6;

ALTER TABLE usage RENAME TO usage_before;
CREATE TABLE usage (
    organisation TEXT NOT NULL,
    project TEXT NOT NULL,
    member TEXT NOT NULL,
    minute_at BIGINT NOT NULL,
    executions BIGINT NOT NULL,
    cpu_ms BIGINT NOT NULL,
    memory_mib_ms BIGINT NOT NULL,
    egress_bytes BIGINT NOT NULL,
    PRIMARY KEY (organisation, project, member, minute_at)
);
INSERT INTO usage (organisation, project, member, minute_at, executions, cpu_ms, memory_mib_ms, egress_bytes)
    SELECT organisation, project, '', minute_at, executions, cpu_ms, memory_mib_ms, egress_bytes FROM usage_before;
DROP TABLE usage_before;
