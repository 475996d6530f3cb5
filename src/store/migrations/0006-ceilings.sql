-- Streams of users are counted when one is made; outputs of commands, of which there are many more, are not.
CREATE INDEX streams_of_users ON streams (organisation) WHERE kind = 'user';
