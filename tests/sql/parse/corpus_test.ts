/**
 * Verifies that the parser reads statements that were not written to test it as two other parsers
 * do, and that a printed statement parses to the same tree.
 *
 * This file lists the permitted differences between the parsers, with reasons.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../src/base/errors.ts";
import type { Statement } from "../../../src/sql/parse/ast/ast.ts";
import { parseStatements } from "../../../src/sql/parse/parser.ts";
import { statementToSql } from "../../../src/sql/parse/print/print.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { shareOf } from "../../support/thoroughness.ts";
import { bare, type Json, masked } from "./bare.ts";
import {
  generatedStatements,
  requestsOfCases,
  statementsOfSlt,
  statementsOfWrittenCases,
} from "./corpus.ts";
import { libraryTreeIfRead, treeForLibrary } from "./library_oracle.ts";
import { postgresTree, postgresTreeIfRead, printedForPostgres } from "./postgres_oracle.ts";

const GENERATED = 400;
const TIMEOUT_MS = 60_000;
// The maximum length of a text that is passed to the parser library, whose running time grows much
// faster than the length.
const LIBRARY_LENGTH_MAX = 90;
const LIBRARY_LEAST = 2500;
// The corpora that are not passed to the parser library, because their statements repeat a few
// forms with different names and values.
const LIBRARY_REPEATED: ReadonlySet<string> = new Set(["slt", "written cases"]);
const LIBRARY_ONE_OF = 4;

/**
 * Statements that Tidemark accepts but PostgreSQL does not, recognised by words that only Tidemark
 * supports.
 */
const OWN: readonly RegExp[] = [
  /\b(?:CREATE|DROP) NAMESPACE\b/,
  /\bCREATE TOPIC\b/,
  /^USE \w+;/,
  /\b(?:CREATE|DROP) (?:USER|SHARED|STREAM) TABLE\b/,
  /\bCREATE USER \w+ WITH PASSWORD '.*' ROLE\b/,
  /\bALTER USER \w+ SET PASSWORD\b/,
  /\bDROP USER \w+ PURGE\b/,
  /\bEXECUTE AS\b/,
  /^SUBSCRIBE TO\b/,
  /^KILL\b/,
  /\bCURRENT_(?:USER|ROLE)\(\)/,
  /^STORAGE (?:FLUSH|COMPACT)\b/,
  /^SHOW (?:TABLES|STATS)\b/,
  /^DESCRIBE\b/,
  /\bAUTO_INCREMENT\b/,
  /\bFLUSH_POLICY=/,
];

/** A long run of EXCEPT is parsed as a single EXCEPT of a union. */
const LONG_EXCEPT = /(?:\bEXCEPT (?:ALL )?SELECT \d+ ){9}/;

/**
 * Statements that PostgreSQL's grammar rejects, whereas Tidemark rejects them only during binding.
 */
const REFUSED_LATER: readonly RegExp[] = [
  /BETWEEN CURRENT ROW AND 1 PRECEDING/,
  /FROM num FETCH FIRST 1 ROW WITH TIES/,
  /\bcoalesce\(\)/,
  /\bnullif\(1\)/,
];

/**
 * Statements that Tidemark's grammar rejects, whereas PostgreSQL rejects them only when it runs
 * them.
 */
const REFUSED_EARLIER: readonly RegExp[] = [
  /^REFRESH MATERIALIZED VIEW CONCURRENTLY .* WITH NO DATA$/,
  /^(?:ALTER|CREATE) FUNCTION .*\b(?:IMMUTABLE VOLATILE|STABLE IMMUTABLE|STRICT CALLED)\b/,
  /\bxml(?:attributes|forest)\(1\b/,
];

/** A value that is outside its range. The parser checks it, in place of the binder. */
const FILLFACTOR = /\bfillfactor = \d\b/;

/** Matches a statement whose attributes the parser checks, in place of the binder. */
const AGGREGATE = /\bCREATE\s+(?:OR\s+REPLACE\s+)?AGGREGATE\b/i;

/** Statements whose syntax trees differ intentionally. */
const OTHERWISE: readonly { readonly of: RegExp; readonly because: string }[] = [
  { of: AGGREGATE, because: "its attributes are printed in one order and one syntax" },
  {
    of: /^(?:CREATE|ALTER|DROP) USER\b/,
    because: "users are named by strings; a role is one word",
  },
  {
    of: /^CREATE (?:OR REPLACE )?FUNCTION\b/,
    because: "its clauses are printed in one order, and its body as a string",
  },
  {
    of: /^ALTER (?:FUNCTION|PROCEDURE|ROUTINE)\b.*\b(?:COST|LEAKPROOF|PARALLEL|RESTRICT|SECURITY)\b/,
    because: "clauses that only advise the planner are not kept",
  },
  {
    of: /^CREATE (?:OR REPLACE )?RECURSIVE VIEW\b/,
    because: "the query around the recursion selects * instead of naming the columns",
  },
  {
    of: /\bINDEX .* USING (?:brin|hash)\b/,
    because: "a sorted index takes the place of BRIN and hash indexes",
  },
  { of: /^COMMENT ON COLLATION\b/, because: "a collation is kept as a type of text" },
  { of: /^RESET\b/, because: "a setting is reset by setting it to its default" },
  { of: /^EXPLAIN\b/, because: "every option is printed, and PostgreSQL's tree has those written" },
  { of: /\bORDER BY \w+ USING\b/, because: "an order by an operator is one of ASC and DESC" },
  {
    of: /\bSET \([^=]*\) = \((?!SELECT)/,
    because: "an assignment of a row is one of each of its columns",
  },
  { of: /\bINDEX CONCURRENTLY\b/, because: "no build keeps writers waiting, so it is not kept" },
  {
    of: /\bCOLLATE "(?:C|POSIX)"|\bWITH \(fillfactor\b/,
    because: "text compares by code point, and a file is full, so neither is kept",
  },
  {
    of: /\b(?:FROM|INTO|JOIN|TABLE|UPDATE) (?:ONLY \(?\w|\w+ \*)/,
    because: "no table inherits from another, so neither ONLY nor an asterisk is kept",
  },
  {
    of: /\b(?:UNIQUE|KEY)(?: \([^)]*\))?(?: NOT)? DEFERRABLE\b/,
    because: "every key is compared once all rows of a statement are known, so it is not kept",
  },
  { of: /::\w+\[\d/, because: "the length of an array type means nothing, and is not kept" },
  { of: /~~/, because: "LIKE has one form, however it is spelled" },
  {
    of: /\(\w+\[\d+\]\)\.\w/,
    because: "an element and its field are printed as one list of parts",
  },
  { of: /\)\.\w+\)[[.]/, because: "parentheses around a part change nothing, and are not kept" },
  {
    of: /\bIS (?:NOT )?(?:NF\w+ )?NORMALIZED\b|\bcollation for\b/,
    because: "it is printed as the function that it is, which PostgreSQL has in pg_catalog",
  },
  {
    of: /\b(?:PRESERVE|STRIP) WHITESPACE\b/,
    because: "XML keeps its whitespace either way, so the words are not kept",
  },
];

/**
 * Statements that the parser library parses incorrectly; `library_oracle_test.ts` explains how.
 */
const LIBRARY_FAULTS: readonly { readonly of: RegExp; readonly because: string }[] = [
  { of: /^(?:CREATE|ALTER) SEQUENCE\b/, because: "it forgets the order of options" },
  {
    of: /^(?:CREATE|ALTER) TYPE\b/,
    because: "it knows enum types only, under a name of their own",
  },
  {
    of: /^ALTER TABLE .*\bRENAME TO\b|^TRUNCATE\b|^COMMENT ON TABLE\b/,
    because: "its nodes have other types and members",
  },
  {
    of: /^(?:ALTER|CREATE) TABLE .*\bCOLLATE\b/,
    because: "the collation is part of the column, while here it is part of the type",
  },
  {
    of: /^CREATE TABLE .*\bREFERENCES\b/,
    because: "the reference of a column has a node of its own, while here it is a foreign key",
  },
  { of: /^CREATE (?:UNIQUE )?INDEX\b/, because: "it takes every key for an expression" },
  { of: /\bFOR (?:NO KEY )?UPDATE\b|\bFOR (?:KEY )?SHARE\b/, because: "it has no list of tables" },
  { of: /\bUNION\b.*\b(?:UNION|ORDER|LIMIT|OFFSET)\b/s, because: "UNION leans to the right" },
  {
    of: /^WITH RECURSIVE\b/,
    because: "its tree has room for one entry, without a list of columns",
  },
  {
    of: /^(?:CREATE (?:OR REPLACE )?|DROP )FUNCTION\b/,
    because: "it keeps a body as a string, and drops a single function",
  },
  {
    of: /^(?:CREATE|DROP|COMMENT ON) MATERIALIZED VIEW\b/,
    because: "it has a tree of its own, while the rows here are those of a table",
  },
  { of: /^SHOW\b/, because: "any word is the name of a variable" },
  { of: /\bFETCH FIRST ROW\b/, because: "FIRST is the name of a column" },
  { of: /\bnormalize\(.*, NF/, because: "the form is the name of a column" },
  {
    of: /\binterval(?: '[^']*')? (?:YEAR|MONTH|DAY|HOUR|MINUTE|SECOND)\b/i,
    because: "the fields of an interval are an alias",
  },
  { of: /\bROW\(/, because: "it is the call of a function" },
  {
    of: /\bxml(?:parse|serialize)\(/i,
    because: "DOCUMENT and CONTENT are the type of a literal",
  },
  { of: /\bxml(?:element|forest)\(/i, because: "it is the call of a function, without names" },
  { of: /\bU&['"]/i, because: "it is a column u and an operator" },
  { of: /::\w+\[\d/, because: "the length of an array type is the index of an element" },
  { of: /-[\d.]+::\w+::/, because: "the number that it negates is below one cast only" },
];

const sources: readonly (readonly [string, readonly string[]])[] = [
  ["cases", await requestsOfCases()],
  ["slt", await statementsOfSlt()],
  ["written cases", await statementsOfWrittenCases()],
  ["generated", generatedStatements(GENERATED, 1)],
];
/** The texts that are parsed and compared. */
const compared = sources.map(([of, texts]) => [of, shareOf(texts, { oneOf: 18 })] as const);
const library = compared.flatMap(([of, texts]) =>
  LIBRARY_REPEATED.has(of) ? texts.filter((_, i) => i % LIBRARY_ONE_OF === 0) : texts,
);

test.each(compared)(
  "parseStatements reads %s with the same meaning as PostgreSQL",
  (_, texts) => {
    let count = 0;
    for (const text of texts) {
      const ours = statementsOrRefusal(text);
      const theirs = postgresTreeIfRead(text);
      if (theirs === undefined) {
        expect([text, isKnown(text) || ours instanceof DatabaseError]).toEqual([text, true]);
      } else if (ours instanceof DatabaseError) {
        // Tidemark recognises the construct but does not support it, or the text contains no
        // statement.
        const isEarly = REFUSED_EARLIER.some((words) => words.test(text));
        const refusal = isEarly ? "INVALID_SQL" : "UNSUPPORTED_FEATURE";
        const isOfAggregate = AGGREGATE.test(text) && ours.code === "INVALID_DEFINITION";
        const isOutOfRange = FILLFACTOR.test(text) && ours.code === "VALUE_OUT_OF_RANGE";
        const isOther = ours.code === "EMPTY_SQL" || isOfAggregate || isOutOfRange;
        const reason = isOther ? ours.code : refusal;
        expect([text, ours.code]).toEqual([text, reason]);
      } else if (!LONG_EXCEPT.test(text) && !OTHERWISE.some(({ of }) => of.test(text))) {
        expect([text, postgresTree(printedForPostgres(text))]).toEqual([text, theirs]);
        count += 1;
      }
    }
    expect(count).toBeGreaterThan(texts.length * 0.7);
  },
  TIMEOUT_MS,
);

test.each(compared)(
  "statementToSql prints %s so that it parses to the same tree",
  (_, texts) => {
    for (const text of texts) {
      const statements = statementsOrRefusal(text);
      if (statements instanceof DatabaseError) continue;
      const printed = statements.map(statementToSql);
      expect([text, treeOf(printed.join("; "))]).toEqual([text, masked(bare(statements))]);
    }
  },
  TIMEOUT_MS,
);

testThoroughly(
  "parseStatements returns the same tree as pgsql-ast-parser",
  () => {
    let count = 0;
    for (const text of new Set(library)) {
      if (text.length > LIBRARY_LENGTH_MAX) continue;
      if (LIBRARY_FAULTS.some(({ of }) => of.test(text))) continue;
      const theirs = libraryTreeIfRead(text);
      if (theirs === undefined || statementsOrRefusal(text) instanceof DatabaseError) continue;
      expect([text, treeForLibrary(text)]).toEqual([text, theirs]);
      count += 1;
    }
    expect(count).toBeGreaterThan(LIBRARY_LEAST);
  },
  TIMEOUT_MS,
);

test("every listed difference is needed by some statement", () => {
  const texts = sources.flatMap(([, of]) => of);
  const known = [...OTHERWISE, ...LIBRARY_FAULTS].map(({ of }) => of);
  for (const of of [...OWN, ...REFUSED_LATER, ...REFUSED_EARLIER, ...known]) {
    expect([of.source, texts.some((text) => of.test(text))]).toEqual([of.source, true]);
  }
});

function isKnown(text: string): boolean {
  return [...OWN, ...REFUSED_LATER].some((words) => words.test(text));
}

function treeOf(text: string): Json {
  return bare(parseStatements(text));
}

/**
 * Parses a text. Returns its statements, or the error with which the parser refuses it.
 *
 * @throws any error other than a refusal
 */
function statementsOrRefusal(text: string): readonly Statement[] | DatabaseError {
  try {
    return parseStatements(text);
  } catch (error) {
    if (error instanceof DatabaseError) return error;
    throw error;
  }
}
