-- How many sandboxes there are, by owner ('' for none) and by state, those that are alive as one ('alive'): so that lists can tell how long they
-- are without reading all of it. Changed together with the rows.
CREATE TABLE sandbox_counts (
    organisation TEXT NOT NULL,
    tenant TEXT NOT NULL,
    scope TEXT NOT NULL,
    project TEXT NOT NULL,
    class TEXT NOT NULL,
    n BIGINT NOT NULL,
    PRIMARY KEY (organisation, tenant, scope, project, class)
);
INSERT INTO sandbox_counts (organisation, tenant, scope, project, class, n)
    SELECT organisation, coalesce(tenant, ''), coalesce(scope, ''), coalesce(project, ''),
           CASE WHEN ended_at = 0 THEN 'alive' ELSE state END, count(*)
    FROM sandboxes GROUP BY 1, 2, 3, 4, 5;
