-- The network of a sandbox as its owner wants it: rules (packed), what holds where none fits, whether refusals are only noted, bytes a second. The
-- generation counts changes. Secrets are packed strings: host, header and the sealed value, or the name of the variable that has it.
ALTER TABLE sandboxes ADD COLUMN network_allow TEXT;
ALTER TABLE sandboxes ADD COLUMN network_deny TEXT;
ALTER TABLE sandboxes ADD COLUMN network_default TEXT NOT NULL DEFAULT 'unsaid' CHECK (network_default IN ('unsaid', 'allow', 'deny'));
ALTER TABLE sandboxes ADD COLUMN network_observe BIGINT NOT NULL DEFAULT 0 CHECK (network_observe IN (0, 1));
ALTER TABLE sandboxes ADD COLUMN network_rate BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN network_secrets TEXT;
ALTER TABLE sandboxes ADD COLUMN network_generation BIGINT NOT NULL DEFAULT 0;
-- What was refused so far, and how much of its present box's own counter is in egress_bytes.
ALTER TABLE sandboxes ADD COLUMN network_refused BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN counted_egress_bytes BIGINT NOT NULL DEFAULT 0;
