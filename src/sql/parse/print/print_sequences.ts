/**
 * Prints definitions of sequences as SQL.
 */
import type { SequenceDefinition, SequenceOption } from "../ast/ast.ts";
import { dataTypeText, nameText, qnameText } from "./print_expressions.ts";

export function sequenceText(statement: SequenceDefinition): string {
  switch (statement.type) {
    case "create sequence": {
      const ine = statement.ifNotExists === true ? "IF NOT EXISTS " : "";
      const options = sequenceOptionsText(statement.options);
      const temporary = statement.temporary === true ? "TEMPORARY " : "";
      return `CREATE ${temporary}SEQUENCE ${ine}${qnameText(statement.name)}${options}`;
    }
    case "alter sequence": {
      const ie = statement.ifExists === true ? "IF EXISTS " : "";
      const { name, options, renamedTo } = statement;
      const change =
        renamedTo === undefined
          ? sequenceOptionsText(options)
          : ` RENAME TO ${nameText(renamedTo.name)}`;
      return `ALTER SEQUENCE ${ie}${qnameText(name)}${change}`;
    }
    case "drop sequence": {
      const { cascade } = statement;
      const ie = statement.ifExists === true ? "IF EXISTS " : "";
      const behaviour = cascade === undefined ? "" : ` ${cascade.toUpperCase()}`;
      return `DROP SEQUENCE ${ie}${statement.names.map(qnameText).join(", ")}${behaviour}`;
    }
  }
}

/** Prints the options, each preceded by a space. */
export function sequenceOptionsText(options: readonly SequenceOption[]): string {
  return options.map((option) => ` ${optionText(option)}`).join("");
}

function optionText(option: SequenceOption): string {
  switch (option.type) {
    case "as":
      return `AS ${dataTypeText(option.dataType)}`;
    case "cycle":
      return option.cycles ? "CYCLE" : "NO CYCLE";
    case "owned by": {
      const { column } = option;
      if (column === undefined) return "OWNED BY NONE";
      return `OWNED BY ${qnameText(column.table)}.${nameText(column.name.name)}`;
    }
    case "sequence name":
      return `SEQUENCE NAME ${qnameText(option.name)}`;
    case "minvalue":
    case "maxvalue":
      return option.value === undefined
        ? `NO ${option.type.toUpperCase()}`
        : `${option.type.toUpperCase()} ${option.value}`;
    case "increment":
      return `INCREMENT BY ${option.value}`;
    case "start":
      return `START WITH ${option.value}`;
    case "restart":
      return option.value === undefined ? "RESTART" : `RESTART WITH ${option.value}`;
    case "cache":
      return `CACHE ${option.value}`;
  }
}
