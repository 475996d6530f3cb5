-- How long the records of one sandbox are kept, where that is not as long as the server keeps others; 0: as long as those.
ALTER TABLE sandboxes ADD COLUMN keep_ms BIGINT NOT NULL DEFAULT 0;
CREATE INDEX sandboxes_kept ON sandboxes (keep_ms) WHERE keep_ms > 0;

-- What a tenant has run in the last hours.
CREATE INDEX executions_by_tenant ON executions (organisation, tenant, created_at) WHERE tenant IS NOT NULL;
