-- What builds from steps keep of their steps, to begin later builds with; no user sees them.
ALTER TABLE snapshots ADD COLUMN is_step BIGINT NOT NULL DEFAULT 0 CHECK (is_step IN (0, 1));
CREATE INDEX snapshots_by_step ON snapshots (organisation, content_hash) WHERE is_step = 1;
