-- Labels of sandboxes: as they are told ("name=value", packed), and once more as rows that lists are narrowed by.
ALTER TABLE sandboxes ADD COLUMN labels TEXT;
CREATE TABLE sandbox_labels (
    sandbox_id TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (sandbox_id, name)
);
CREATE INDEX sandbox_labels_by_name ON sandbox_labels (name, value, sandbox_id);

-- Which living sandbox a name stands for.
CREATE INDEX sandboxes_by_name ON sandboxes (organisation, name) WHERE ended_at = 0 AND name IS NOT NULL;
