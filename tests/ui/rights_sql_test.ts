/**
 * Tests the statements about rights that the page creates. User input can never turn into a
 * different statement.
 */
import { expect, test } from "bun:test";
import {
  createInvitationSql,
  createPolicySql,
  createTokenSql,
  dropPolicySql,
  dropSql,
  linkSql,
  setRoleSql,
  tableSql,
} from "../../ui/src/rights_sql.ts";

const POLICY = { table: tableSql("chat", "messages"), name: "p", roles: [], using: "", check: "" };

test("createPolicySql writes only the clauses that the command supports", () => {
  const draft = { ...POLICY, roles: ["user"], using: " a = 1 ", check: "b = 2" };
  expect(createPolicySql({ ...draft, command: "SELECT" })).toBe(
    'CREATE POLICY "p" ON "chat"."messages" FOR SELECT TO user\n  USING (a = 1)',
  );
  expect(createPolicySql({ ...draft, command: "INSERT" })).toBe(
    'CREATE POLICY "p" ON "chat"."messages" FOR INSERT TO user\n  WITH CHECK (b = 2)',
  );
  expect(createPolicySql({ ...draft, command: "ALL", roles: [] })).toBe(
    'CREATE POLICY "p" ON "chat"."messages" FOR ALL\n  USING (a = 1)\n  WITH CHECK (b = 2)',
  );
});

test("names and strings are quoted", () => {
  expect(dropPolicySql('a"; DROP TABLE x', tableSql('s"', "t"))).toBe(
    'DROP POLICY "a""; DROP TABLE x" ON "s"""."t"',
  );
  expect(dropSql("TOKEN", "order")).toBe('DROP TOKEN "order"');
  expect(setRoleSql("o'hara", "dba")).toBe("ALTER USER 'o''hara' SET ROLE dba");
  const link = { user: "o'hara", provider: "idp", subject: "it's" };
  expect(linkSql("ADD", link)).toBe(
    `ALTER USER 'o''hara' ADD OAUTH '{"provider":"idp","subject":"it''s"}'`,
  );
  expect(linkSql("DROP", { ...link, subject: "" })).toBe(
    `ALTER USER 'o''hara' DROP OAUTH '{"provider":"idp"}'`,
  );
  const token = { name: "t", user: "o'hara", expires: "90 days", scopes: ["READ", "ACT"] };
  expect(createTokenSql({ ...token, namespaces: " shop, chat ," })).toBe(
    "CREATE TOKEN \"t\" FOR USER 'o''hara' EXPIRES IN '90 days' SCOPES (READ, ACT, NAMESPACE \"shop\", NAMESPACE \"chat\")",
  );
  expect(createTokenSql({ ...token, expires: " ", scopes: [], namespaces: "" })).toBe(
    "CREATE TOKEN \"t\" FOR USER 'o''hara' EXPIRES NEVER",
  );
  expect(createInvitationSql({ name: "spring", uses: "20", expires: "7 days" })).toBe(
    "CREATE INVITATION \"spring\" USES 20 EXPIRES IN '7 days'",
  );
  expect(createInvitationSql({ name: "spring", uses: "", expires: "" })).toBe(
    'CREATE INVITATION "spring" EXPIRES NEVER',
  );
});
