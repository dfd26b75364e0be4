/**
 * Names of an outer query in an inner one.
 *
 * A query inside an expression reads what it needs of the row around it through captures: values
 * that the expression hands to it at each evaluation. A name that is two queries away is captured
 * by the one between them first, so an inner query depends on its captures and on nothing else.
 */
import { defined } from "../../../base/assert.ts";
import type { ExprRef } from "../../parse/ast/ast.ts";
import { ExpressionPlaces } from "../alike.ts";
import type { Correlation, Place } from "../binding.ts";
import type { BoundCapture, BoundExpression } from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";

/** Collects what one inner query reads of the expression around it. */
export class Captures implements Correlation {
  readonly place: Place;
  readonly list: BoundCapture[] = [];
  /** Where a value is in the list. */
  #places = new ExpressionPlaces();

  constructor(place: Place) {
    this.place = place;
  }

  capture(value: BoundExpression): BoundExpression {
    const place = this.#places.find(value);
    const known = place === undefined ? undefined : this.list[place];
    if (known !== undefined) return { kind: "outer", type: value.type, id: known.id };
    const { id } = this.place.statement.newColumn({ name: "", type: value.type });
    this.list.push({ id, value });
    this.#places.add(value);
    return { kind: "outer", type: value.type, id };
  }

  mark(): () => void {
    const { length } = this.list;
    const undoOuter = this.place.outer?.mark();
    return () => {
      this.list.length = length;
      this.#places = new ExpressionPlaces(this.list.map(({ value }) => value));
      undoOuter?.();
    };
  }
}

/**
 * What a query that is declared in one query and read in an inner one finds around it: names mean
 * what they mean where it is declared, and their values are handed on to where it is read.
 */
export class PassedOn implements Correlation {
  readonly declared: Correlation;
  readonly #read: Correlation;

  /** @param read Of a query inside the one that `declared` is around. */
  constructor(declared: Correlation, read: Correlation) {
    this.declared = declared;
    this.#read = read;
  }

  get place(): Place {
    return this.declared.place;
  }

  capture(value: BoundExpression): BoundExpression {
    return this.handOn(this.declared.capture(value));
  }

  mark(): () => void {
    const undoDeclared = this.declared.mark();
    const undoRead = this.#read.mark();
    return () => {
      undoDeclared();
      undoRead();
    };
  }

  /** How the inner query reads what the declaring one reads as `value`. */
  handOn(value: BoundExpression): BoundExpression {
    return handed(value, this.declared, this.#read);
  }
}

/**
 * The query around the declaration of a query that is read where `outer` is the query around it.
 */
export function declaredOf(outer: Correlation | undefined): Correlation | undefined {
  return outer instanceof PassedOn ? declaredOf(outer.declared) : outer;
}

/** A value of the query that `from` is around, as the query that `to` is around reads it. */
function handed(value: BoundExpression, from: Correlation, to: Correlation): BoundExpression {
  if (from === to) return value;
  if (to instanceof PassedOn) return to.handOn(handed(value, from, to.declared));
  const around = defined(to.place.outer, "an inner query has the outer one around it");
  return to.capture(handed(value, from, around));
}

/** What a name means that the query of the place does not know; undefined if no query does. */
export function resolveOuter(
  ref: ExprRef,
  outer: Correlation | undefined,
): BoundExpression | undefined {
  if (outer === undefined) return undefined;
  const { place } = outer;
  const column = place.scope.lookup(ref);
  const value: BoundExpression | undefined =
    column === undefined ? resolveOuter(ref, place.outer) : columnValue(column);
  return value === undefined ? undefined : outer.capture(value);
}
