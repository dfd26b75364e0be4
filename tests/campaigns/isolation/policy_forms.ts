/**
 * Lists statements over a table with policies that random queries do not include: changes, and
 * oracles for hidden rows. `{i}` is the number of a post, `{r}` a room, `{h}` the mark of a hidden
 * post, `{o}` the user whose rights apply, and `{l}` a label that no other statement contains.
 * Every new mark is a hash of the label, so no two posts have the same mark, and no later
 * statement can compute a hidden mark from a mark that its caller sees.
 */
import type { Chance } from "../../../scripts/support/chance.ts";

const POST_FORMS: readonly string[] = [
  // These statements change posts.
  "INSERT INTO posts VALUES ({i}, {r}, CURRENT_USER(), md5('{l}')) RETURNING id, mark",
  "INSERT INTO posts VALUES ({i}, {r}, '{o}', md5('{l}'))",
  "INSERT INTO posts VALUES ({i}, {r}, '{o}', md5('{l}')) ON CONFLICT (id) DO NOTHING RETURNING *",
  "INSERT INTO posts VALUES ({i}, {r}, '{o}', md5('{l}')) ON CONFLICT (id) DO UPDATE SET mark = md5('{l}' || posts.mark) RETURNING *",
  "INSERT INTO posts SELECT id + 100, room, author, md5('{l}' || mark) FROM posts WHERE id = {i}",
  "UPDATE posts SET mark = md5('{l}' || mark) WHERE id = {i} RETURNING *",
  "UPDATE posts SET room = {r}, mark = md5('{l}' || mark) WHERE id > {i}",
  "UPDATE posts SET author = 'bob', mark = md5('{l}' || mark) WHERE id = {i} RETURNING mark",
  "UPDATE posts AS a SET mark = md5('{l}' || b.mark) FROM posts b WHERE a.id = {i} AND b.id = a.id + 1 RETURNING a.mark, b.mark",
  "DELETE FROM posts WHERE id = {i} RETURNING *",
  "DELETE FROM posts WHERE room = {r} AND id % 5 = 0",
  "DELETE FROM posts USING posts b WHERE posts.id = {i} AND b.id = posts.id + 1 RETURNING b.mark",
  "MERGE INTO posts USING (VALUES ({i}, {r})) AS s (id, room) ON posts.id = s.id WHEN MATCHED THEN UPDATE SET mark = md5('{l}' || posts.mark) WHEN NOT MATCHED THEN INSERT (id, room, author, mark) VALUES (s.id, s.room, '{o}', md5('{l}'))",
  "MERGE INTO posts USING (VALUES ({i})) AS s (id) ON posts.id = s.id WHEN MATCHED THEN DELETE",
  "TRUNCATE TABLE posts",
  "BEGIN; UPDATE posts SET mark = md5('{l}' || mark); SELECT * FROM posts; ROLLBACK",
  "BEGIN; DELETE FROM posts; INSERT INTO posts VALUES ({i}, {r}, '{o}', md5('{l}')); SELECT * FROM posts; ROLLBACK",
  // These statements fail only if a hidden post is visible.
  "SELECT CASE WHEN EXISTS (SELECT 1 FROM posts WHERE mark = '{h}') THEN 1 / 0 END",
  "SELECT CAST(mark AS INT) FROM posts WHERE mark <> ''",
  "SELECT mark::int FROM posts WHERE author <> '{o}'",
  "SELECT 1 / (id - {i}) FROM posts",
  "SELECT (SELECT mark FROM posts WHERE id = {i})",
  "SELECT (SELECT mark FROM posts)",
  "SELECT * FROM posts WHERE id = {i}",
  "SELECT * FROM posts WHERE id IN ({i}, 1, 2, 3, 4, 5)",
  "SELECT mark FROM heads WHERE id >= {i}",
  "SELECT a.mark, b.mark FROM posts a LEFT JOIN posts b ON b.id = a.id + 1",
  "SELECT room, count(*), string_agg(mark, ',') FROM posts GROUP BY room",
  "SELECT max(mark), min(id), max(_seq) FROM posts",
  "SELECT *, _seq, _deleted FROM posts WHERE _deleted = true",
  "SELECT * FROM posts FOR SYSTEM_TIME AS OF NOW()",
  "WITH RECURSIVE r AS (SELECT id, mark FROM posts WHERE id = {i} UNION SELECT p.id, p.mark FROM r JOIN posts p ON p.id = r.id + 1) SELECT * FROM r",
  "SELECT * FROM members",
  "SELECT count(*) FROM posts p JOIN members m ON m.room = p.room",
  "INSERT INTO members VALUES ({r}, '{o}', true)",
  "UPDATE members SET member = '{o}'",
  "INSERT INTO notes VALUES ({i}, {i})",
  "DELETE FROM notes",
  // These statements use views that run with their owners' rights.
  "SELECT * FROM mine",
  "SELECT CAST(mark AS INT) FROM mine",
  "SELECT 1 / (id - {i}) FROM mine",
  "SELECT p.mark, m.mark FROM posts p FULL JOIN mine m ON m.id = p.id + 1",
  "SELECT author FROM mine",
  "COPY mine TO STDOUT",
  "SELECT row_to_json(i) FROM ids i",
  "SELECT mark FROM ids",
  "SELECT 1 / (id - {i}) FROM ids WHERE room = {r}",
  "SELECT * FROM ids i LEFT JOIN posts p ON p.id = i.id",
  "ALTER VIEW mine SET (access_level = 'PUBLIC')",
  "CREATE OR REPLACE VIEW ids WITH (security_invoker = false, access_level = 'PUBLIC') AS SELECT id, room, mark FROM posts",
  "SELECT * FROM information_schema.views",
  "SHOW POLICIES",
  "SHOW POLICIES ON posts",
  "SHOW STATS FOR TABLE posts",
  "SHOW MANIFEST",
  "DESCRIBE posts",
  "SELECT * FROM system.policies",
  "CREATE POLICY spy ON posts USING (true)",
  "ALTER POLICY p1 ON posts USING (true)",
  "DROP POLICY p1 ON posts",
  "ALTER TABLE posts SET (ACCESS_LEVEL = 'PUBLIC')",
  "CREATE VIEW spy AS SELECT * FROM posts",
  "COPY (SELECT * FROM posts) TO STDOUT",
  "COPY posts TO STDOUT",
  "EXPLAIN ANALYZE SELECT * FROM posts WHERE mark = '{h}'",
];

/**
 * Matches definitions. If a dba runs such a statement, it succeeds, and the actual policies then
 * differ from the policies that the campaign knows.
 */
const DEFINING = /^(?:CREATE|ALTER|DROP|TRUNCATE|INSERT INTO members|UPDATE members)/;

/** Returns a random form with its placeholders filled in. */
export function postForm(
  chance: Chance,
  parts: {
    id: number;
    room: number;
    hidden: string;
    owner: string;
    label: string;
    mayDefine: boolean;
  },
): string {
  const forms = parts.mayDefine ? POST_FORMS.filter((form) => !DEFINING.test(form)) : POST_FORMS;
  return chance
    .pick(forms)
    .replaceAll("{i}", String(parts.id))
    .replaceAll("{r}", String(parts.room))
    .replaceAll("{h}", parts.hidden)
    .replaceAll("{o}", parts.owner)
    .replaceAll("{l}", parts.label);
}
