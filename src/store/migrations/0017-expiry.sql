-- What becomes of a sandbox whose time is up, and what a front keeps with it.
ALTER TABLE sandboxes ADD COLUMN on_expiry TEXT NOT NULL DEFAULT 'wait' CHECK (on_expiry IN ('wait', 'end', 'pause', 'drop_box'));
ALTER TABLE sandboxes ADD COLUMN front_data TEXT;

-- What a caller calls a command, to find it again.
ALTER TABLE executions ADD COLUMN tag TEXT;
