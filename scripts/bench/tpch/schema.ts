/** Defines the eight tables of TPC-H, with their keys. All engines use the same definitions. */
import type { TableShape } from "../peers/engines.ts";
import type { TableName } from "./data.ts";

const DEFINITIONS: Readonly<Record<TableName, { columns: string; foreign: readonly string[] }>> = {
  region: {
    columns:
      "r_regionkey INT PRIMARY KEY, r_name VARCHAR(25) NOT NULL, r_comment VARCHAR(152) NOT NULL",
    foreign: [],
  },
  nation: {
    columns: `n_nationkey INT PRIMARY KEY, n_name VARCHAR(25) NOT NULL, n_regionkey INT NOT NULL,
      n_comment VARCHAR(152) NOT NULL`,
    foreign: ["n_regionkey"],
  },
  supplier: {
    columns: `s_suppkey INT PRIMARY KEY, s_name VARCHAR(25) NOT NULL, s_address VARCHAR(40) NOT NULL,
      s_nationkey INT NOT NULL, s_phone VARCHAR(15) NOT NULL, s_acctbal DECIMAL(15,2) NOT NULL,
      s_comment VARCHAR(101) NOT NULL`,
    foreign: ["s_nationkey"],
  },
  part: {
    columns: `p_partkey INT PRIMARY KEY, p_name VARCHAR(55) NOT NULL, p_mfgr VARCHAR(25) NOT NULL,
      p_brand VARCHAR(10) NOT NULL, p_type VARCHAR(25) NOT NULL, p_size INT NOT NULL,
      p_container VARCHAR(10) NOT NULL, p_retailprice DECIMAL(15,2) NOT NULL,
      p_comment VARCHAR(23) NOT NULL`,
    foreign: [],
  },
  partsupp: {
    columns: `ps_partkey INT NOT NULL, ps_suppkey INT NOT NULL, ps_availqty INT NOT NULL,
      ps_supplycost DECIMAL(15,2) NOT NULL, ps_comment VARCHAR(199) NOT NULL,
      PRIMARY KEY (ps_partkey, ps_suppkey)`,
    foreign: ["ps_suppkey"],
  },
  customer: {
    columns: `c_custkey INT PRIMARY KEY, c_name VARCHAR(25) NOT NULL, c_address VARCHAR(40) NOT NULL,
      c_nationkey INT NOT NULL, c_phone VARCHAR(15) NOT NULL, c_acctbal DECIMAL(15,2) NOT NULL,
      c_mktsegment VARCHAR(10) NOT NULL, c_comment VARCHAR(117) NOT NULL`,
    foreign: ["c_nationkey"],
  },
  orders: {
    columns: `o_orderkey INT PRIMARY KEY, o_custkey INT NOT NULL, o_orderstatus VARCHAR(1) NOT NULL,
      o_totalprice DECIMAL(15,2) NOT NULL, o_orderdate DATE NOT NULL,
      o_orderpriority VARCHAR(15) NOT NULL, o_clerk VARCHAR(15) NOT NULL, o_shippriority INT NOT NULL,
      o_comment VARCHAR(79) NOT NULL`,
    foreign: ["o_custkey"],
  },
  lineitem: {
    columns: `l_orderkey INT NOT NULL, l_partkey INT NOT NULL, l_suppkey INT NOT NULL,
      l_linenumber INT NOT NULL, l_quantity DECIMAL(15,2) NOT NULL,
      l_extendedprice DECIMAL(15,2) NOT NULL, l_discount DECIMAL(15,2) NOT NULL,
      l_tax DECIMAL(15,2) NOT NULL, l_returnflag VARCHAR(1) NOT NULL,
      l_linestatus VARCHAR(1) NOT NULL, l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL,
      l_receiptdate DATE NOT NULL, l_shipinstruct VARCHAR(25) NOT NULL,
      l_shipmode VARCHAR(10) NOT NULL, l_comment VARCHAR(44) NOT NULL,
      PRIMARY KEY (l_orderkey, l_linenumber)`,
    foreign: ["l_partkey, l_suppkey", "l_suppkey"],
  },
};

export const TABLES: readonly (TableShape & { readonly name: TableName })[] = Object.entries(
  DEFINITIONS,
).map(([name, { columns, foreign }]) => {
  const types = [...columns.matchAll(/\b[a-z]+_[a-z]+ (INT|VARCHAR|DECIMAL|DATE)/g)];
  const numeric = types.flatMap(([, type], position) =>
    type === "INT" || type === "DECIMAL" ? [position] : [],
  );
  return { name: name as TableName, columns, foreign, numeric: new Set(numeric) };
});
