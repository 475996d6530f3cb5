-- Terminals are a third kind. SQLite changes no CHECK of a column, so the column is made anew.
ALTER TABLE executions ADD COLUMN next_kind TEXT NOT NULL DEFAULT 'execution' CHECK (next_kind IN ('execution', 'job', 'terminal'));
UPDATE executions SET next_kind = kind;
ALTER TABLE executions DROP COLUMN kind;
ALTER TABLE executions RENAME COLUMN next_kind TO kind;

-- Of what a terminal showed the oldest goes: a hole at the beginning of its file.
ALTER TABLE streams ADD COLUMN dropped_bytes BIGINT NOT NULL DEFAULT 0;
