-- SSH keys have a name, are somebody's, end with the API key that added them (NULL: the machine's own root did), and are looked at for use.
ALTER TABLE ssh_keys ADD COLUMN name TEXT;
ALTER TABLE ssh_keys ADD COLUMN member TEXT;
ALTER TABLE ssh_keys ADD COLUMN key_id TEXT;
ALTER TABLE ssh_keys ADD COLUMN used_at BIGINT NOT NULL DEFAULT 0;
