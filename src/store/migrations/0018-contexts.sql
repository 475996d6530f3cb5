-- Interpreters of code are a fourth kind. SQLite changes no CHECK of a column, so the column is made anew.
ALTER TABLE executions ADD COLUMN next_kind TEXT NOT NULL DEFAULT 'execution' CHECK (next_kind IN ('execution', 'job', 'terminal', 'context'));
UPDATE executions SET next_kind = kind;
ALTER TABLE executions DROP COLUMN kind;
ALTER TABLE executions RENAME COLUMN next_kind TO kind;
