-- Packages over the runtime that a snapshot stands on, as sandboxes have them.
ALTER TABLE snapshots ADD COLUMN dependencies TEXT;
ALTER TABLE snapshots ADD COLUMN packages TEXT;
