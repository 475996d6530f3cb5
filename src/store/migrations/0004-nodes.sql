-- Which node has it: the box, the files or the layer of a row, or the work on it. Rows from before there were nodes are this one's, whose
-- identity stands here for @node@. A row of another node is nothing to start, end, forget or clear away here.
ALTER TABLE sandboxes ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE executions ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE streams ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE snapshots ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE layers ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE idempotency ADD COLUMN node TEXT NOT NULL DEFAULT '';
UPDATE sandboxes SET node = '@node@';
UPDATE executions SET node = '@node@';
UPDATE streams SET node = '@node@';
UPDATE snapshots SET node = '@node@';
UPDATE layers SET node = '@node@';
UPDATE idempotency SET node = '@node@';

-- The number of the last event: two nodes that read max(number) at once would take the same, and one that was forgotten would be given again.
ALTER TABLE sandboxes ADD COLUMN event_count BIGINT NOT NULL DEFAULT 0;
UPDATE sandboxes SET event_count = coalesce((SELECT max(number) FROM events WHERE events.sandbox_id = sandboxes.id), 0);

-- Nobody ever wrote or read it: what must happen when follows from the timeouts.
ALTER TABLE sandboxes DROP COLUMN deadline_at;
