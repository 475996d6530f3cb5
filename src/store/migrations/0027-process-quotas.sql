-- How many processes the living sandboxes of a key, or of an organisation, may have together; 0: any number.
ALTER TABLE keys ADD COLUMN max_processes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE organisations ADD COLUMN max_processes BIGINT NOT NULL DEFAULT 0;
