-- An SSH key may be added by several owners, each for himself: a public key is no secret, and who adds one has not shown to have its other half.
CREATE TABLE ssh_keys_of_owners (
    organisation TEXT NOT NULL REFERENCES organisations (id),
    fingerprint TEXT NOT NULL,
    type TEXT NOT NULL,
    comment TEXT NOT NULL,
    public_key TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    name TEXT,
    member TEXT,
    key_id TEXT,
    used_at BIGINT NOT NULL DEFAULT 0
);
INSERT INTO ssh_keys_of_owners (organisation, fingerprint, type, comment, public_key, created_at, name, member, key_id, used_at)
    SELECT organisation, fingerprint, type, comment, public_key, created_at, name, member, key_id, used_at FROM ssh_keys;
DROP TABLE ssh_keys;
ALTER TABLE ssh_keys_of_owners RENAME TO ssh_keys;
CREATE UNIQUE INDEX ssh_keys_by_owner ON ssh_keys (fingerprint, organisation, coalesce(member, ''));
