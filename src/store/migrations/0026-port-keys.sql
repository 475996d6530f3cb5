-- The key that a private port's token was made for, and ends with; NULL: none.
ALTER TABLE exposed_ports ADD COLUMN key_id TEXT;
