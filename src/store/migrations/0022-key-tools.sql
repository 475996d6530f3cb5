-- A key for tools of models: which, as words; NULL: it is none of those and opens every protocol.
ALTER TABLE keys ADD COLUMN tools TEXT;
-- Rules, packed, of which every rule that a network of its sandboxes allows must be one; NULL: any.
ALTER TABLE keys ADD COLUMN network_allow TEXT;
