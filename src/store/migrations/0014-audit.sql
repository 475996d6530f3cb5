-- What was changed: by whom, with which key, from where, when. Numbers are given once for each node, in the order of the answers.
CREATE TABLE audit (
    node TEXT NOT NULL,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    organisation TEXT NOT NULL,
    member TEXT,
    key_id TEXT,
    token_id TEXT,
    front TEXT NOT NULL,
    method TEXT NOT NULL,
    route TEXT NOT NULL,
    subject TEXT,
    peer TEXT,
    request_id TEXT,
    status BIGINT NOT NULL,
    PRIMARY KEY (node, number)
);
CREATE INDEX audit_by_time ON audit (at);
