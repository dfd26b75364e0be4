-- The tables and rules of the club: spaces with members, and in each space a chat, a board and
-- files. start.mjs runs this once, as an administrator. From then on, people write everything by
-- themselves, with their own tokens, and the policies below are all that stands between them.

CREATE NAMESPACE club;

-- Everybody sees who there is, and people write only about themselves.
CREATE TABLE club.people (
  user_id TEXT PRIMARY KEY DEFAULT CURRENT_USER(),
  name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 40)
) WITH (OWNER_COLUMN = 'user_id');

CREATE TABLE club.spaces (
  id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(),
  name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 60),
  owner TEXT NOT NULL DEFAULT CURRENT_USER() REFERENCES club.people
) WITH (ACCESS_LEVEL = 'RESTRICTED');

CREATE TABLE club.members (
  space BIGINT REFERENCES club.spaces ON DELETE CASCADE,
  user_id TEXT REFERENCES club.people,
  PRIMARY KEY (space, user_id)
) WITH (ACCESS_LEVEL = 'RESTRICTED');
CREATE INDEX members_by_user ON club.members (user_id);

-- A space belongs to the person who made it. Its members see it, and each other.
CREATE POLICY owners ON club.spaces USING (owner = CURRENT_USER());
CREATE POLICY members_see ON club.spaces FOR SELECT
  USING (EXISTS (SELECT 1 FROM club.members m WHERE m.space = id AND m.user_id = CURRENT_USER()));
CREATE POLICY fellows_see ON club.members FOR SELECT
  USING (EXISTS (SELECT 1 FROM club.members me WHERE me.space = space AND me.user_id = CURRENT_USER()));

-- The owner decides who is a member. Members may leave.
CREATE POLICY owners_decide ON club.members
  USING (EXISTS (SELECT 1 FROM club.spaces s WHERE s.id = space AND s.owner = CURRENT_USER()));
CREATE POLICY members_leave ON club.members FOR DELETE USING (user_id = CURRENT_USER());

-- Who is in a space now, and who is typing: rows that live for seconds, under the same rule.
CREATE STREAM TABLE club.presence (
  room BIGINT, tab TEXT, person TEXT NOT NULL DEFAULT CURRENT_USER(), state JSON, beat BIGINT,
  PRIMARY KEY (room, tab)
) WITH (TTL_SECONDS = 6, ACCESS_LEVEL = 'RESTRICTED');
CREATE POLICY members_see ON club.presence FOR SELECT
  USING (EXISTS (SELECT 1 FROM club.members m WHERE m.space = room AND m.user_id = CURRENT_USER()));
CREATE POLICY members_tell ON club.presence
  USING (person = CURRENT_USER()
    AND EXISTS (SELECT 1 FROM club.members m WHERE m.space = room AND m.user_id = CURRENT_USER()));

-- The chat: members read and write; authors change and delete what they wrote.
CREATE TABLE club.messages (
  id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(),
  space BIGINT NOT NULL REFERENCES club.spaces ON DELETE CASCADE,
  author TEXT NOT NULL DEFAULT CURRENT_USER() REFERENCES club.people,
  text TEXT NOT NULL CHECK (length(text) BETWEEN 1 AND 4000),
  sent TIMESTAMPTZ NOT NULL DEFAULT now(),
  is_edited BOOLEAN NOT NULL DEFAULT FALSE
) WITH (ACCESS_LEVEL = 'RESTRICTED');
CREATE INDEX messages_by_space ON club.messages (space);
CREATE INDEX messages_by_author ON club.messages (author);
CREATE POLICY members_read ON club.messages FOR SELECT
  USING (EXISTS (SELECT 1 FROM club.members m WHERE m.space = space AND m.user_id = CURRENT_USER()));
CREATE POLICY members_write ON club.messages FOR INSERT
  WITH CHECK (author = CURRENT_USER()
    AND EXISTS (SELECT 1 FROM club.members m WHERE m.space = space AND m.user_id = CURRENT_USER()));
CREATE POLICY authors_change ON club.messages FOR UPDATE USING (author = CURRENT_USER());
CREATE POLICY authors_delete ON club.messages FOR DELETE USING (author = CURRENT_USER());

-- How far each person has read. Rows of a USER table belong to one person, so it needs no policy.
CREATE USER TABLE club.seen (space BIGINT PRIMARY KEY, message BIGINT NOT NULL);

-- The board: members do everything with cards.
CREATE TABLE club.cards (
  id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(),
  space BIGINT NOT NULL REFERENCES club.spaces ON DELETE CASCADE,
  list TEXT NOT NULL DEFAULT 'todo' CHECK (list IN ('todo', 'doing', 'done')),
  place DOUBLE NOT NULL,
  title TEXT NOT NULL CHECK (length(title) BETWEEN 1 AND 200),
  note TEXT NOT NULL DEFAULT '',
  assignee TEXT REFERENCES club.people
) WITH (ACCESS_LEVEL = 'RESTRICTED');
CREATE INDEX cards_by_space ON club.cards (space);
CREATE INDEX cards_by_assignee ON club.cards (assignee);
CREATE POLICY members ON club.cards
  USING (EXISTS (SELECT 1 FROM club.members m WHERE m.space = space AND m.user_id = CURRENT_USER()));

-- The files: members read and add; a file is removed by the person who added it, or by the owner
-- of the space.
CREATE TABLE club.files (
  id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID(),
  space BIGINT NOT NULL REFERENCES club.spaces ON DELETE CASCADE,
  added_by TEXT NOT NULL DEFAULT CURRENT_USER() REFERENCES club.people,
  added TIMESTAMPTZ NOT NULL DEFAULT now(),
  file FILE NOT NULL
) WITH (ACCESS_LEVEL = 'RESTRICTED');
CREATE INDEX files_by_space ON club.files (space);
CREATE INDEX files_by_person ON club.files (added_by);
CREATE POLICY members_read ON club.files FOR SELECT
  USING (EXISTS (SELECT 1 FROM club.members m WHERE m.space = space AND m.user_id = CURRENT_USER()));
CREATE POLICY members_add ON club.files FOR INSERT
  WITH CHECK (added_by = CURRENT_USER()
    AND EXISTS (SELECT 1 FROM club.members m WHERE m.space = space AND m.user_id = CURRENT_USER()));
CREATE POLICY removal ON club.files FOR DELETE
  USING (added_by = CURRENT_USER()
    OR EXISTS (SELECT 1 FROM club.spaces s WHERE s.id = space AND s.owner = CURRENT_USER()));
