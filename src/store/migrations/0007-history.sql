-- Whether output of an execution was kept for as long as output is, or gave way to newer one, and is gone.
ALTER TABLE executions ADD COLUMN is_output_expired BIGINT NOT NULL DEFAULT 0 CHECK (is_output_expired IN (0, 1));

-- Output of commands that have ended in sandboxes that live on, oldest first.
CREATE INDEX streams_of_living ON streams (completed_at, id) WHERE expires_at = 0 AND completed_at <> 0;
