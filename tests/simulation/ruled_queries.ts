/**
 * Queries for the simulation of materialised results, sent by users who see only some rows of a
 * table because of policies. Defines the table and its policy, a view that runs with its owner's
 * rights, commits that change memberships, and the same queries with the policy's conditions
 * written out, as root would send them.
 */
import type { Chance } from "../../scripts/support/chance.ts";

/** The users who follow these queries. */
export const RULED_USERS = ["ann", "ben"] as const;

const ROOMS = 4;
const POSTS = 24;

const MEMBERSHIP =
  "EXISTS (SELECT 1 FROM fuzz.members m WHERE m.room = posts.room AND m.member = CURRENT_USER())";

/** The statements that create the tables, the policy, the view and the users. */
export const RULED_SCHEMA: readonly string[] = [
  ...RULED_USERS.map((user) => `CREATE USER ${user} INTERNAL`),
  "CREATE TABLE members (room INT, member TEXT, PRIMARY KEY (room, member)) WITH (ACCESS_LEVEL = 'DBA')",
  "CREATE TABLE posts (id INT PRIMARY KEY, room INT, n INT) WITH (ACCESS_LEVEL = 'RESTRICTED')",
  `CREATE POLICY by_room ON posts USING (${MEMBERSHIP})`,
  "CREATE POLICY small ON posts FOR SELECT USING (n = 7)",
  "CREATE VIEW shown WITH (security_invoker = false, access_level = 'PUBLIC') AS " +
    `SELECT id, room FROM posts WHERE ${MEMBERSHIP}`,
  `INSERT INTO posts SELECT n, n % ${ROOMS}, n % 9 FROM generate_series(1, ${POSTS / 2}) AS g(n)`,
  "INSERT INTO members VALUES (0, 'ann'), (1, 'ann'), (1, 'ben')",
];

/** Queries in which `{posts}` stands for the table, and `{shown}` for the view. */
const QUERIES: readonly string[] = [
  "SELECT id, room, n FROM {posts} AS a",
  "SELECT id, n FROM {posts} AS a WHERE n > 2 ORDER BY id DESC LIMIT 4",
  "SELECT room, count(*) AS many, sum(n) AS total FROM {posts} AS a GROUP BY room",
  "SELECT a.id, b.id AS other FROM {posts} AS a JOIN {posts} AS b ON b.room = a.room AND b.id > a.id",
  "SELECT a.id, b.kind FROM {posts} AS a LEFT JOIN timed AS b ON b.id = a.id",
  "SELECT id, room FROM {shown} AS a",
  "SELECT a.id, b.n FROM {shown} AS a LEFT JOIN {posts} AS b ON b.id = a.id",
];

/** A query in two forms: as its user sends it, and as root would send it for the same rows. */
export interface RuledQuery {
  readonly userId: string;
  readonly sql: string;
  readonly writtenOut: string;
}

export function ruledQueryOf(chance: Chance, userId: string): RuledQuery {
  const form = chance.pick(QUERIES);
  const membership = MEMBERSHIP.replace("CURRENT_USER()", `'${userId}'`);
  return {
    userId,
    sql: form.replaceAll("{posts}", "posts").replaceAll("{shown}", "shown"),
    writtenOut: form
      .replaceAll("{posts}", `(SELECT * FROM posts WHERE ${membership} OR n = 7)`)
      .replaceAll("{shown}", `(SELECT id, room FROM posts WHERE ${membership})`),
  };
}

/** Returns a commit that changes memberships, posts, or both. */
export function ruledCommitOf(chance: Chance): string {
  const room = chance.below(ROOMS);
  const member = chance.pick(RULED_USERS);
  const id = chance.below(POSTS);
  const join = `INSERT INTO members VALUES (${room}, '${member}') ON CONFLICT DO NOTHING`;
  const leave = `DELETE FROM members WHERE room = ${room} AND member = '${member}'`;
  const post = `INSERT INTO posts VALUES (${id}, ${room}, ${chance.below(9)}) ON CONFLICT (id) DO UPDATE SET room = excluded.room, n = excluded.n`;
  return chance.pick([
    join,
    leave,
    post,
    `UPDATE posts SET room = ${room} WHERE id % 5 = ${chance.below(5)}`,
    `DELETE FROM posts WHERE id = ${id}`,
    `BEGIN; ${leave}; ${post}; COMMIT`,
    `BEGIN; ${join}; UPDATE posts SET n = n + 1 WHERE room = ${room}; COMMIT`,
  ]);
}
