-- Directories of the host that a sandbox has: packed strings, three for each ("ro" or "rw", there, in the sandbox).
ALTER TABLE sandboxes ADD COLUMN mounts TEXT;
